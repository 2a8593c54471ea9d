//! What differs from run to run, by what stands for it in a row:
//!
//! | placeholder | what it stands for |
//! |---|---|
//! | `<ns>` | the row's namespace |
//! | `<u1>`, `<u2>` … | uids, in the order in which they are first seen |
//! | `<v1>` … | versions of objects, likewise: the same number is the same version |
//! | `<l1>` … | versions of lists; each is counted anew |
//! | `<n1>` … | generated names |
//! | `<c1>` … | continue tokens |
//! | `<time>`, `<time+30>` | about now, and half a minute later |
//! | `<object>` | an object that a message quotes |
//! | `<age>`, `<ip>`, `<large>`, `<current>` | an age in a table, an address of a Service, versions in a message |
//!
//! storageVersionHash and selfLink are left out, and so are managedFields but for rows that ask for
//! them: each entry is a line of who owns what then, in the order of the lines. Of the columns of a table the names
//! are kept; `tests/table` has the rest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use stint_apiserver::fields::set::read_text;

/// What the placeholders of one row stand for.
pub struct Placeholders {
    /// By placeholder.
    values: BTreeMap<String, String>,
    counts: BTreeMap<char, usize>,
    /// Times that were seen, by what was put for them: later it is no longer now.
    times: BTreeMap<String, String>,
    now: Timestamp,
    shows_managed: bool,
}

impl Placeholders {
    /// None yet, but for the namespace.
    pub fn new(namespace: &str, shows_managed: bool) -> Self {
        Placeholders {
            values: BTreeMap::from([("<ns>".to_owned(), namespace.to_owned())]),
            counts: BTreeMap::new(),
            times: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
            shows_managed,
        }
    }

    /// Tells what time it was where the next answer comes from.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// A text with everything that the placeholders in it stand for.
    pub fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (placeholder, value) in &self.values {
            text = text.replace(placeholder, value);
        }
        text
    }

    /// The same in all of a JSON value.
    pub fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(map) => Value::Object(
                map.iter().map(|(key, value)| (self.fill(key), self.fill_all(value))).collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// An answer with placeholders for what differs.
    pub fn put(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => self.put_map(map, false),
            Value::Array(items) => items.iter().map(|item| self.put(item)).collect(),
            Value::String(text) => Value::String(self.put_text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// An event of a watch. How far a bookmark is depends on what else happens, also where it is the
    /// row of a table; and a table has the version of what is in its only row.
    pub fn put_event(&mut self, event: &Value) -> Value {
        let mut event = event.clone();
        let is_bookmark = event["type"] == "BOOKMARK";
        let object = &mut event["object"];
        if is_bookmark {
            object["metadata"]["resourceVersion"] = "0".into();
            let rows = object.get_mut("rows").and_then(Value::as_array_mut);
            for row in rows.into_iter().flatten() {
                row["object"]["metadata"]["resourceVersion"] = "0".into();
            }
        } else if object.get("rows").is_some() {
            object["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        }
        self.put(&event)
    }

    fn put_map(&mut self, map: &Map<String, Value>, is_of_list: bool) -> Value {
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let is_list = map.contains_key("items")
            || map.contains_key("rows")
            || text("kind").is_some_and(|kind| kind == "Table" || kind.ends_with("List"));
        if let (Some(base), Some(name)) = (text("generateName"), text("name")) {
            let base = &base[..base.len().min(58)];
            if name.starts_with(base) && name.len() == base.len() + 5 {
                self.known('n', name);
            }
        }
        let mut put = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("managedFields", Value::Array(entries)) if self.shows_managed => {
                    let mut lines: Vec<String> =
                        entries.iter().map(|entry| self.put_manager(entry)).collect();
                    lines.sort();
                    lines.into()
                }
                ("managedFields" | "storageVersionHash" | "selfLink", _) => continue,
                ("resourceVersion", Value::String(version)) if is_version(version) => {
                    if is_of_list {
                        Value::String(self.fresh('l', version))
                    } else {
                        Value::String(self.known('v', version))
                    }
                }
                ("continue", Value::String(token)) => Value::String(self.fresh('c', token)),
                ("columnDefinitions", Value::Array(columns)) => {
                    columns.iter().map(|column| column["name"].clone()).collect()
                }
                ("cells", Value::Array(cells)) => {
                    cells.iter().map(|cell| self.put_cell(cell)).collect()
                }
                ("metadata", Value::Object(map)) => self.put_map(map, is_list),
                _ => self.put(value),
            };
            put.insert(self.put_text(key), value);
        }
        Value::Object(put)
    }

    /// Who owns what, in a line: `Apply m v1 <time> status: .status.phase`.
    fn put_manager(&mut self, entry: &Value) -> String {
        let fields = read_text(&entry["fieldsV1"].to_string()).expect("a set of fields");
        let mut paths: Vec<String> =
            fields.paths().iter().map(|path| self.put_text(path)).collect();
        paths.sort();
        let texts = ["operation", "manager", "apiVersion", "time", "subresource"];
        let texts: Vec<String> = texts
            .iter()
            .filter_map(|name| entry[name].as_str())
            .map(|text| self.put_text(text))
            .collect();
        format!("{}: {}", texts.join(" "), paths.join(" "))
    }

    fn put_cell(&mut self, cell: &Value) -> Value {
        let seconds = cell.as_str().and_then(|cell| cell.strip_suffix('s'));
        if seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok()) {
            return "<age>".into();
        }
        self.put(cell)
    }

    /// A text with placeholders.
    pub fn put_text(&mut self, text: &str) -> String {
        if let Some(time) = self.put_time(text) {
            return time;
        }
        let mut text = replace_uids(text, |uid| self.known('u', uid));
        for (placeholder, value) in &self.values {
            if placeholder.starts_with("<n") {
                text = text.replace(value, placeholder);
            }
        }
        text = put_addresses(&put_object(&text));
        for (before, after, placeholder) in [
            ("Too large resource version: ", ",", "<large>"),
            ("Too large resource version: <large>, current: ", "", "<current>"),
        ] {
            if let Some((start, number)) = number_between(&text, before, after) {
                text.replace_range(start..start + number.len(), placeholder);
            }
        }
        if let Some((start, number)) = number_between(&text, "in record (", ")") {
            let placeholder = self.known('v', &number);
            text.replace_range(start..start + number.len(), &placeholder);
        }
        text
    }

    /// A time from this year on; earlier ones were sent by the row.
    fn put_time(&mut self, text: &str) -> Option<String> {
        let time: Timestamp = text.parse().ok()?;
        let year: u32 = text.get(..4)?.parse().ok()?;
        if year < 2026 {
            return None;
        }
        let seconds = time.as_second() - self.now.as_second();
        let put = self.times.entry(text.to_owned()).or_insert_with(|| {
            if seconds <= 5 {
                "<time>".to_owned()
            } else {
                format!("<time{:+}>", (seconds + 5).div_euclid(10) * 10)
            }
        });
        Some(put.clone())
    }

    fn known(&mut self, kind: char, value: &str) -> String {
        let found = self.values.iter().find(|(placeholder, known)| {
            placeholder[1..].starts_with(kind) && *placeholder != "<ns>" && *known == value
        });
        match found {
            Some((placeholder, _)) => placeholder.clone(),
            None => self.fresh(kind, value),
        }
    }

    fn fresh(&mut self, kind: char, value: &str) -> String {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let placeholder = format!("<{kind}{count}>");
        self.values.insert(placeholder.clone(), value.to_owned());
        placeholder
    }
}

/// A text with something else for each uid in it.
pub fn replace_uids(text: &str, mut other: impl FnMut(&str) -> String) -> String {
    const LENGTH: usize = 36;
    let mut put = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match rest.get(..LENGTH).filter(|part| is_uid(part)) {
            Some(uid) => {
                put.push_str(&other(uid));
                rest = &rest[LENGTH..];
            }
            None => {
                put.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    put
}

fn is_version(text: &str) -> bool {
    text != "0" && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uid(text: &str) -> bool {
    text.char_indices().all(|(position, c)| match position {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_digit() || ('a'..='f').contains(&c),
    })
}

/// An object that a message quotes, whatever is in it.
fn put_object(text: &str) -> String {
    let Some(start) = text.find(r#""{\"apiVersion\""#) else { return text.to_owned() };
    let mut is_escaped = false;
    let end = text[start + 1..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    let Some(end) = end else { return text.to_owned() };
    format!("{}\"<object>\"{}", &text[..start], &text[start + end + 2..])
}

/// Addresses of Services: the last two parts are the server's choice.
fn put_addresses(text: &str) -> String {
    let Some(start) = text.find("10.96.") else { return text.to_owned() };
    let rest = &text[start..];
    let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    format!("{}<ip>{}", &text[..start], put_addresses(&rest[end..]))
}

/// The number between two texts, and where it starts.
fn number_between(text: &str, before: &str, after: &str) -> Option<(usize, String)> {
    let start = text.find(before)? + before.len();
    let rest = &text[start..];
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!number.is_empty() && rest[number.len()..].starts_with(after)).then_some((start, number))
}
