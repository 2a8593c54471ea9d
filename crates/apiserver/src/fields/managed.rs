//! Who owns which fields of an object: `metadata.managedFields`, and what a write makes of it. It
//! knows no store and no HTTP.

use std::borrow::Cow;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, HashMap, btree_map};
use std::sync::OnceLock;

use serde_json::Value;

use super::compare::Changes;
use super::set::{FieldSet, fields};
use super::tree::Place;

/// The most managers that have updated: the oldest are made one, as in kube-apiserver.
const MAX_UPDATERS: usize = 10;

/// Who owns what the oldest of too many updaters owned.
const ANCIENT: &str = "ancient-changes";

/// Who writes and does not say so.
const UNKNOWN: &str = "unknown";

/// How somebody came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By applying them.
    Apply,
    /// By any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// Somebody who owns fields.
#[derive(Clone, Debug)]
pub struct Manager<'a> {
    /// What it calls itself.
    pub name: Cow<'a, str>,
    /// How it came to own them.
    pub operation: Operation,
    /// The version in which the fields are named.
    pub api_version: Cow<'a, str>,
    /// When it last changed something, as JSON has it.
    pub time: Option<Cow<'a, str>>,
    /// By which part of the object; empty if by the whole.
    pub subresource: Cow<'a, str>,
    /// What it owns.
    pub fields: FieldSet<'a>,
    /// The same as it was read, while it is the same.
    written: Option<&'a str>,
}

/// Who is writing, and how.
#[derive(Clone, Copy, Debug)]
pub struct Author<'w> {
    /// What it calls itself; empty if it does not.
    pub name: &'w str,
    /// The version in which it writes.
    pub api_version: &'w str,
    /// The part of the object that it writes; empty if the whole.
    pub subresource: &'w str,
    /// What a write of that part never changes.
    pub resets: &'w FieldSet<'static>,
    /// When, as JSON has it.
    pub now: &'w str,
}

impl<'w> Author<'w> {
    fn name(self) -> &'w str {
        if self.name.is_empty() { UNKNOWN } else { self.name }
    }
}

/// Everybody who owns fields of an object.
#[derive(Clone, Debug, Default)]
pub struct Managed<'a> {
    managers: Vec<Manager<'a>>,
}

impl<'a> Managed<'a> {
    /// Reads a list of entries; `None` if one of them is none, which makes all of them worthless.
    pub fn read(entries: Place<'a>) -> Option<Self> {
        let mut managers: Vec<Manager<'a>> = Vec::new();
        let mut known = HashMap::new();
        for (_, entry) in entries.children() {
            let manager = read_entry(entry)?;
            match known.entry(manager.key()) {
                Occupied(at) => managers[*at.get()] = manager,
                Vacant(at) => {
                    at.insert(managers.len());
                    managers.push(manager);
                }
            }
        }
        Some(Managed { managers })
    }

    /// The same, to be written in this server's form, whoever wrote it before.
    pub fn rewritten(mut self) -> Self {
        self.managers.iter_mut().for_each(|manager| manager.written = None);
        self
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.managers.is_empty()
    }

    /// The managers.
    pub fn managers(&self) -> &[Manager<'a>] {
        &self.managers
    }

    pub(super) fn managers_mut(&mut self) -> &mut Vec<Manager<'a>> {
        &mut self.managers
    }

    /// Somebody with the same identity.
    fn find(&mut self, like: &Manager<'_>) -> Option<&mut Manager<'a>> {
        self.managers.iter_mut().find(|known| known.is(like))
    }

    /// What a write that is no apply makes of it. Managers of another version are asked for by
    /// that; those of a version that there is not any more are forgotten.
    pub fn update(
        &mut self,
        changes: Changes<'a>,
        author: Author<'a>,
        in_version: &mut dyn FnMut(&str) -> Option<Changes<'a>>,
    ) {
        let Changes { removed, modified, added } = changes.without(author.resets);
        let written = modified.union(added);
        // What was written and what was removed, in other versions.
        let mut elsewhere = HashMap::new();
        self.managers.retain_mut(|manager| {
            if manager.api_version == author.api_version {
                return manager.lose(&written, &removed);
            }
            let found = elsewhere.entry(manager.api_version.clone()).or_insert_with(|| {
                in_version(&manager.api_version).map(|changes| (changes.written(), changes.removed))
            });
            found.as_ref().is_some_and(|(written, removed)| manager.lose(written, removed))
        });
        let taken = written.minus(never_owned());
        if !taken.is_empty() {
            let manager = Manager {
                name: Cow::Borrowed(author.name()),
                operation: Operation::Update,
                api_version: Cow::Borrowed(author.api_version),
                time: Some(Cow::Borrowed(author.now)),
                subresource: Cow::Borrowed(author.subresource),
                fields: taken,
                written: None,
            };
            self.add(manager);
        }
        self.merge_oldest();
    }

    /// Adds what somebody owns from now on to what it owned before.
    fn add(&mut self, manager: Manager<'a>) {
        match self.find(&manager) {
            Some(found) => {
                let before = std::mem::take(&mut found.fields);
                *found = Manager { fields: manager.fields.union(before), ..manager };
            }
            None => self.managers.push(manager),
        }
    }

    /// Makes the oldest updaters one until there are not too many.
    fn merge_oldest(&mut self) {
        let is_updater = |manager: &Manager<'a>| manager.operation == Operation::Update;
        let mut count = self.managers.iter().filter(|manager| is_updater(manager)).count();
        if count <= MAX_UPDATERS {
            return;
        }
        let (mut updaters, appliers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.managers).into_iter().partition(is_updater);
        updaters
            .sort_by_cached_key(|manager| (manager.time_or_epoch().to_owned(), manager.identity()));
        self.managers = appliers;
        // The first of each version waits for a second to be made one with.
        let mut buckets: BTreeMap<Cow<'a, str>, (Manager<'a>, Vec<FieldSet<'a>>)> = BTreeMap::new();
        let mut updaters = updaters.into_iter();
        while count > MAX_UPDATERS {
            let Some(mut manager) = updaters.next() else { break };
            match buckets.entry(manager.api_version.clone()) {
                btree_map::Entry::Vacant(bucket) => drop(bucket.insert((manager, Vec::new()))),
                btree_map::Entry::Occupied(mut bucket) => {
                    let (last, fields) = bucket.get_mut();
                    fields.push(std::mem::take(&mut manager.fields));
                    fields.push(std::mem::take(&mut last.fields));
                    *last = Manager {
                        name: Cow::Borrowed(ANCIENT),
                        subresource: Cow::Borrowed(""),
                        written: None,
                        ..manager
                    };
                    count -= 1;
                }
            }
        }
        let merged = buckets.into_values().map(|(mut manager, mut fields)| {
            fields.push(std::mem::take(&mut manager.fields));
            Manager { fields: FieldSet::union_of(fields), ..manager }
        });
        for manager in merged.chain(updaters) {
            self.add(manager);
        }
    }

    /// The list of entries as JSON; nothing, if there is none.
    pub fn write(&self) -> Option<String> {
        if self.managers.is_empty() {
            return None;
        }
        let mut sorted: Vec<&Manager<'a>> = self.managers.iter().collect();
        sorted.sort_by(|a, b| {
            (a.operation, a.time_or_epoch(), &a.name, &a.api_version, &a.subresource).cmp(&(
                b.operation,
                b.time_or_epoch(),
                &b.name,
                &b.api_version,
                &b.subresource,
            ))
        });
        let mut json = String::from("[");
        for (at, manager) in sorted.into_iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            manager.write(&mut json);
        }
        json.push(']');
        Some(json)
    }
}

impl<'a> Manager<'a> {
    /// Somebody who applies.
    pub(super) fn applier(author: Author<'a>, fields: FieldSet<'a>) -> Self {
        Manager {
            name: Cow::Borrowed(author.name()),
            operation: Operation::Apply,
            api_version: Cow::Borrowed(author.api_version),
            time: None,
            subresource: Cow::Borrowed(author.subresource),
            fields,
            written: None,
        }
    }

    /// Whether both are the same.
    pub(super) fn is(&self, other: &Manager<'_>) -> bool {
        self.key() == other.key()
    }

    /// What tells it apart: who applies does so in any version.
    fn key(&self) -> (Operation, Cow<'a, str>, Cow<'a, str>, Cow<'a, str>) {
        let version = match self.operation {
            Operation::Apply => Cow::Borrowed(""),
            Operation::Update => self.api_version.clone(),
        };
        (self.operation, self.name.clone(), self.subresource.clone(), version)
    }

    /// Takes away what others have written or removed. `false` if there is nothing left.
    pub(super) fn lose(&mut self, written: &FieldSet<'_>, removed: &FieldSet<'_>) -> bool {
        for lost in [written, removed] {
            if self.fields.meets(lost) {
                self.fields = std::mem::take(&mut self.fields).minus(lost);
                self.written = None;
            }
        }
        !self.fields.is_empty()
    }

    /// Sets what it owns.
    pub(super) fn own(&mut self, fields: FieldSet<'a>) {
        self.fields = fields;
        self.written = None;
    }

    /// What tells it apart, as kube-apiserver writes and sorts it.
    pub(super) fn identity(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut identity = format!(
            "{{\"manager\":{},\"operation\":\"{}\"",
            quoted(&self.name),
            self.operation.as_str()
        );
        if self.operation == Operation::Update {
            identity.push_str(&format!(",\"apiVersion\":{}", quoted(&self.api_version)));
        }
        if !self.subresource.is_empty() {
            identity.push_str(&format!(",\"subresource\":{}", quoted(&self.subresource)));
        }
        identity.push('}');
        identity
    }

    /// Times of one form have their order as texts.
    fn time_or_epoch(&self) -> &str {
        self.time.as_deref().unwrap_or("1970-01-01T00:00:00Z")
    }

    fn write(&self, json: &mut String) {
        json.push('{');
        let texts = [
            ("manager", Some(&*self.name)),
            ("operation", Some(self.operation.as_str())),
            ("apiVersion", Some(&*self.api_version)),
            ("time", self.time.as_deref()),
        ];
        for (name, value) in texts {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                push_member(json, name, value);
                json.push(',');
            }
        }
        json.push_str("\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        match self.written {
            Some(written) => json.push_str(written),
            None => self.fields.write(json),
        }
        if !self.subresource.is_empty() {
            json.push(',');
            push_member(json, "subresource", &self.subresource);
        }
        json.push('}');
    }
}

fn push_member(json: &mut String, name: &str, value: &str) {
    json.push('"');
    json.push_str(name);
    json.push_str("\":");
    json.push_str(&Value::from(value).to_string());
}

fn read_entry(entry: Place<'_>) -> Option<Manager<'_>> {
    let text = |name: &str| entry.get(name).and_then(Place::as_str).unwrap_or_default();
    let operation = match &*text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
        return None;
    }
    let (fields, written) = match entry.get("fieldsV1") {
        None => (FieldSet::default(), None),
        Some(fields_v1) => {
            let fields = FieldSet::read(fields_v1).ok()?;
            (fields, Some(fields_v1.text()))
        }
    };
    let time = entry.get("time").and_then(Place::as_str);
    let (name, subresource) = (text("manager"), text("subresource"));
    Some(Manager { name, operation, api_version, time, subresource, fields, written })
}

/// What nobody owns: it is the server's, or the object's name.
pub(super) fn never_owned() -> &'static FieldSet<'static> {
    static NEVER: OnceLock<FieldSet<'static>> = OnceLock::new();
    NEVER.get_or_init(|| {
        let mut never = FieldSet::default();
        for name in ["apiVersion", "kind", "metadata"] {
            never.insert(&fields(&[name]));
        }
        let of_metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        for name in of_metadata {
            never.insert(&fields(&["metadata", name]));
        }
        never
    })
}
