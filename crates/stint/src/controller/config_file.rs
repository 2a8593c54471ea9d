//! The file of `--config`: settings by the names of the options, and the place of what is wrong.

use stint_api::decode::suggest::closest;
use stint_api::decode::{NodeValue, documents};

use crate::line_index::LineIndex;

/// A setting of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileSetting {
    pub(super) name: String,
    /// As on the command line.
    pub(super) value: String,
    pub(super) line: usize,
}

/// Reads the settings of a file, of those that are known; or what is wrong, with its line.
pub(super) fn read(text: &str, known: &[String]) -> Result<Vec<FileSetting>, Vec<String>> {
    let lines = LineIndex::new(text);
    let line_of = |at: usize| lines.position(text, at).line;
    let mut all = documents(text);
    let Some(document) = all.next() else { return Ok(Vec::new()) };
    if !document.problems.is_empty() {
        let told = document.problems.iter().map(|problem| {
            let help = problem.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line_of(problem.span.start), problem.message)
        });
        return Err(told.collect());
    }
    if all.next().is_some() {
        return Err(vec!["there is more than one document: keep one".to_owned()]);
    }
    let Some(root) = document.root else { return Ok(Vec::new()) };
    let NodeValue::Map(entries) = root.value else {
        return Err(vec!["line 1: it must be a mapping, such as `max-inflight: 100`".to_owned()]);
    };
    let (mut settings, mut wrong) = (Vec::new(), Vec::new());
    for entry in entries {
        let line = line_of(entry.key_span.start);
        if !known.contains(&entry.key) {
            let meant = closest(&entry.key, known.iter().map(String::as_str));
            let help = meant.map_or_else(
                || "the names are those of the options, without --".to_owned(),
                |meant| format!("did you mean \"{meant}\"?"),
            );
            wrong.push(format!("line {line}: unknown field \"{}\"; {help}", entry.key));
            continue;
        }
        match written(&entry.value.value) {
            Some(value) => settings.push(FileSetting { name: entry.key, value, line }),
            None => wrong.push(format!(
                "line {line}: {}: give a text, a number, true or false, or a list of texts",
                entry.key
            )),
        }
    }
    if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
}

/// A value as it is written on the command line.
fn written(value: &NodeValue) -> Option<String> {
    match value {
        NodeValue::Null | NodeValue::Map(_) => None,
        NodeValue::Bool(is_so) => Some(is_so.to_string()),
        NodeValue::Number(number) => Some(number.to_string()),
        NodeValue::String(text) => Some(text.clone()),
        NodeValue::List(items) => {
            let texts: Option<Vec<String>> = items
                .iter()
                .map(|item| match &item.value {
                    NodeValue::List(_) => None,
                    value => written(value),
                })
                .collect();
            texts.map(|texts| texts.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<String> {
        ["max-inflight", "namespace", "leader-elect", "lease-duration"].map(str::to_owned).into()
    }

    #[test]
    fn settings_are_read_with_their_lines() {
        let text = "# how many\nmax-inflight: 64\nnamespace: [a, b]\nleader-elect: false\n";
        let settings = read(text, &known()).expect("it is right");
        let rows: Vec<(&str, &str, usize)> =
            settings.iter().map(|it| (&*it.name, &*it.value, it.line)).collect();
        assert_eq!(
            rows,
            [("max-inflight", "64", 2), ("namespace", "a,b", 3), ("leader-elect", "false", 4)]
        );
        assert_eq!(read("", &known()), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_a_suggestion() {
        let rows = [
            ("maxInflight: 1\n", "line 1: unknown field \"maxInflight\"; did you mean"),
            ("namespace: a\nwhatever: 1\n", "line 2: unknown field \"whatever\"; the names"),
            ("namespace: {a: b}\n", "line 1: namespace: give a text"),
            ("- a\n", "line 1: it must be a mapping"),
            ("namespace: a\nnamespace: b\n", "line 2: "),
            ("a: [\n", "line "),
            ("namespace: a\n---\nnamespace: b\n", "more than one document"),
        ];
        for (text, expected) in rows {
            let wrong = read(text, &known()).expect_err(text).join("\n");
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }
}
