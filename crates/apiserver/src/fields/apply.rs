//! Server-side apply: what an applied object makes of the one that there is, and of who owns
//! what in it. It knows no store, no HTTP and no rules of any kind.
//!
//! ```text
//!   live ─┬─ merge ──▶ merged ── prune ──▶ new ── compare with live ──▶ conflicts, or
//!   applied ─┘            ▲                                             who owns what
//!      what was applied last and is not now, unless others own it
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use stint_api::field_error::quote;

use super::check;
use super::compare::Changes;
use super::managed::{Author, Managed, Manager, Operation, never_owned};
use super::merge::{merge, without};
use super::owned::{fields_of, reconciled, with_fields_on_the_way};
use super::set::FieldSet;
use super::shape::Shape;
use super::tree::Tree;
use crate::schema::Message;

/// Where `kubectl apply` without a server's help notes what it has applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whose notes are kept up to date: that of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// Who owned what was there before anybody applied something.
const BEFORE: &str = "before-first-apply";

/// The most that all annotations may have together.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;

/// Tells how an object looks in another version; nothing, if there is no such version.
pub type InVersion<'c> = dyn Fn(&Value, &str, &str) -> Option<Value> + 'c;

/// What is applied to what.
#[derive(Clone, Copy)]
pub struct Apply<'w> {
    /// The object that there is, without managedFields; `{}` if there is none.
    pub live: &'w Value,
    /// Its managedFields, if it has any.
    pub managed: Option<&'w str>,
    /// The object that is applied.
    pub applied: &'w Value,
    /// Its message.
    pub message: Message,
    /// Who applies it.
    pub author: Author<'w>,
    /// Whether fields of others are taken from them.
    pub force: bool,
    /// How it looks in other versions.
    pub in_version: &'w InVersion<'w>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object; nothing, if it is as it was.
    pub object: Option<Value>,
    /// Its managedFields, if it has any.
    pub managed: Option<String>,
}

/// A field that is another's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// What tells the other apart.
    identity: String,
    /// The other, as a client is told.
    pub manager: String,
    /// The field.
    pub path: String,
}

/// The most conflicts that a client is told of.
const MAX_TOLD: usize = 1000;

/// What a client is told of all conflicts together.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        let Conflict { manager, path, .. } = conflict;
        return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
    }
    let mut lines = Vec::new();
    let mut last = None;
    for conflict in conflicts.iter().take(MAX_TOLD) {
        if last != Some(&conflict.identity) {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = Some(&conflict.identity);
        }
        lines.push(format!("- {}", conflict.path));
    }
    if let Some(more) = conflicts.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

impl Apply<'_> {
    /// Applies the object, or tells what stands against it.
    ///
    /// # Assumptions
    ///
    /// The applied object has no problems ([`check::problems`]).
    pub fn run(&self) -> Result<Applied, Vec<Conflict>> {
        let applied = match self.attempt() {
            Err(conflicts) if self.author.name == KUBECTL => {
                let Some(allowed) = self.allowed_by_notes() else { return Err(conflicts) };
                let left: Vec<Conflict> = conflicts
                    .into_iter()
                    .filter(|conflict| !allowed.contains(&conflict.path))
                    .collect();
                if !left.is_empty() {
                    return Err(left);
                }
                Apply { force: true, ..*self }.attempt()?
            }
            other => other?,
        };
        Ok(if self.author.name == KUBECTL { self.with_notes(applied) } else { applied })
    }

    fn attempt(&self) -> Result<Applied, Vec<Conflict>> {
        let live_text = self.live.to_string();
        let live = Tree::of(&live_text);
        let applied_text = self.applied.to_string();
        let applied = Tree::of(&applied_text);
        let entries = self.managed.map(Tree::of);
        let mut managed =
            entries.as_ref().and_then(|tree| Managed::read(tree.root())).unwrap_or_default();
        let shape = Shape::Message(self.message);
        if managed.is_empty() {
            let changes = Changes::between(None, live.root(), self.message);
            let author = Author { name: BEFORE, ..self.author };
            managed.update(changes, author, &mut |_| None);
        }
        for manager in managed.managers_mut() {
            let fields = std::mem::take(&mut manager.fields);
            manager.fields = reconciled(fields, shape);
        }
        let owned = fields_of(applied.root(), self.message).without_below(self.author.resets);
        let mut applier = Manager::applier(self.author, owned);
        let at = managed.managers().iter().position(|known| known.is(&applier));
        let last = at.map(|at| managed.managers_mut().swap_remove(at));
        let merged = merge(self.live.clone(), self.applied, self.message);
        let new = match &last {
            Some(last) => self.pruned(&merged, &managed, &applier, last),
            None => merged,
        };
        let new_text = new.to_string();
        let tree = Tree::of(&new_text);
        self.take_from_others(&mut managed, &live, &tree, &new)?;
        let is_same = *self.live == new;
        applier.time =
            if is_same { last.and_then(|last| last.time) } else { Some(self.author.now.into()) };
        let fields = applier.fields.difference(never_owned());
        applier.own(fields);
        if !applier.fields.is_empty() {
            managed.managers_mut().push(applier);
        }
        Ok(Applied { managed: managed.write(), object: (!is_same).then(|| new.clone()) })
    }

    /// Takes what is changed from those who own it, if that may be done.
    fn take_from_others<'t>(
        &self,
        managed: &mut Managed<'t>,
        live: &'t Tree<'t>,
        new: &'t Tree<'t>,
        new_value: &Value,
    ) -> Result<(), Vec<Conflict>> {
        let changes = Changes::between(Some(live.root()), new.root(), self.message);
        let changes = changes.without(self.author.resets);
        // What was written and what was removed, in each version.
        let mut by_version = HashMap::new();
        let own = Some((changes.written(), changes.removed));
        by_version.insert(Cow::Borrowed(self.author.api_version), own);
        let mut conflicts = Vec::new();
        let mut kept = Vec::new();
        for mut manager in std::mem::take(managed.managers_mut()) {
            let version = &manager.api_version;
            let found = by_version
                .entry(version.clone())
                .or_insert_with(|| self.changes_in(version, new_value));
            // If there is no such version any more, nor is there this manager.
            let Some((written, removed)) = found else { continue };
            let conflict = manager.fields.intersection(written);
            let (identity, shown) = (manager.identity(), shown(&manager));
            conflicts.extend(conflict.paths().into_iter().map(|path| {
                let (identity, manager) = (identity.clone(), shown.clone());
                Conflict { identity, manager, path }
            }));
            if manager.lose(written, removed) {
                kept.push(manager);
            }
        }
        if !self.force && !conflicts.is_empty() {
            conflicts.sort_by(|a, b| a.identity.cmp(&b.identity));
            return Err(conflicts);
        }
        *managed.managers_mut() = kept;
        Ok(())
    }

    /// What has changed from the live object to another, in another version.
    fn changes_in(
        &self,
        version: &str,
        new: &Value,
    ) -> Option<(FieldSet<'static>, FieldSet<'static>)> {
        let message = self.message_in(version)?;
        let (old, new) = (self.other(self.live, version)?, self.other(new, version)?);
        let (old, new) = (old.to_string(), new.to_string());
        let (old, new) = (Tree::of(&old), Tree::of(&new));
        let changes = Changes::between(Some(old.root()), new.root(), message);
        Some((changes.written().into_owned(), changes.removed.into_owned()))
    }

    fn other(&self, object: &Value, version: &str) -> Option<Value> {
        (self.in_version)(object, self.author.api_version, version)
    }

    fn message_in(&self, version: &str) -> Option<Message> {
        if version == self.author.api_version {
            return Some(self.message);
        }
        let kind = self.applied.get("kind").and_then(Value::as_str)?;
        crate::schema::of_kind(version, kind)
    }

    /// What is left of the merged object without what was applied last, is not applied now, and
    /// is nobody else's.
    fn pruned(
        &self,
        merged: &Value,
        others: &Managed<'_>,
        applier: &Manager<'_>,
        last: &Manager<'_>,
    ) -> Value {
        let version = &*last.api_version;
        let (Some(message), Some(merged)) = (
            self.message_in(version),
            if version == self.author.api_version {
                Some(merged.clone())
            } else {
                self.other(merged, version)
            },
        ) else {
            return merged.clone();
        };
        let shape = Shape::Message(message);
        let named = |set: &FieldSet<'_>| with_fields_on_the_way(&set.clone().into_owned(), shape);
        let last_set = named(&last.fields);
        let pruned = without(&merged, &last_set, message);
        let all = set_of(&merged, message);
        // What somebody owns comes back.
        let mut owned = owned_by_version(others.managers().iter().chain([applier]));
        let here = owned.remove(version).unwrap_or_default();
        let kept = named(&set_of(&pruned, message)).union(named(&here));
        let pruned = without(&merged, &named(&all).difference(&kept), message);
        let pruned = self.owned_in_other_versions(&merged, pruned, version, owned);
        // What was not applied last is not taken away either.
        let gone = named(&all).difference(&named(&set_of(&pruned, message)));
        let pruned = without(&merged, &gone.intersection(&last_set), message);
        if version == self.author.api_version {
            return pruned;
        }
        (self.in_version)(&pruned, version, self.author.api_version).unwrap_or(pruned)
    }

    /// Gives back what is owned under the names of other versions.
    fn owned_in_other_versions(
        &self,
        merged: &Value,
        mut pruned: Value,
        version: &str,
        owned: BTreeMap<&str, FieldSet<'static>>,
    ) -> Value {
        for (other, owned) in owned {
            let convert = |object: &Value| (self.in_version)(object, version, other);
            let (Some(message), Some(all), Some(left)) =
                (self.message_in(other), convert(merged), convert(&pruned))
            else {
                continue;
            };
            let shape = Shape::Message(message);
            let named = |set: FieldSet<'static>| with_fields_on_the_way(&set, shape);
            let kept = named(set_of(&left, message)).union(named(owned));
            let gone = named(set_of(&all, message)).difference(&kept);
            let back = without(&all, &gone, message);
            pruned = (self.in_version)(&back, other, version).unwrap_or(pruned);
        }
        pruned
    }

    /// The fields that kubectl has applied before without the server's help, and that are still
    /// as it has applied them.
    fn allowed_by_notes(&self) -> Option<HashSet<String>> {
        let notes = self.live.pointer("/metadata/annotations")?.get(LAST_APPLIED)?.as_str()?;
        let notes: Value = serde_json::from_str(notes).ok()?;
        let is_same_version = notes.get("apiVersion")?.as_str()? == self.author.api_version;
        if !is_same_version || check::problems(&notes, self.message).is_some() {
            return None;
        }
        let (notes, live) = (notes.to_string(), self.live.to_string());
        let (notes, live) = (Tree::of(&notes), Tree::of(&live));
        let changes = Changes::between(Some(notes.root()), live.root(), self.message);
        let allowed = fields_of(notes.root(), self.message)
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed);
        Some(allowed.paths().into_iter().collect())
    }

    /// Notes what was applied where kubectl has noted it before.
    fn with_notes(&self, applied: Applied) -> Applied {
        let has_notes = |object: &Value| {
            let annotations = object.pointer("/metadata/annotations");
            let notes = annotations.and_then(|all| all.get(LAST_APPLIED)).and_then(Value::as_str);
            notes.is_some_and(|notes| !notes.is_empty())
        };
        let Applied { object, managed } = applied;
        if !has_notes(object.as_ref().unwrap_or(self.live)) {
            return Applied { object, managed };
        }
        let mut noted = self.applied.clone();
        if let Some(Value::Object(annotations)) = noted.pointer_mut("/metadata/annotations") {
            annotations.remove(LAST_APPLIED);
        }
        let mut notes = noted.to_string();
        for (c, escaped) in [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")] {
            notes = notes.replace(c, escaped);
        }
        notes.push('\n');
        let mut object = object.unwrap_or_else(|| self.live.clone());
        if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
            annotations.insert(LAST_APPLIED.to_owned(), notes.into());
            let bytes =
                |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
            if annotations.iter().map(bytes).sum::<usize>() > MAX_ANNOTATIONS_BYTES {
                annotations.remove(LAST_APPLIED);
            }
        }
        let is_same = object == *self.live;
        Applied { object: (!is_same).then_some(object), managed }
    }
}

/// What somebody owns, by the version in which it is named.
fn owned_by_version<'m>(
    managers: impl Iterator<Item = &'m Manager<'m>>,
) -> BTreeMap<&'m str, FieldSet<'static>> {
    let mut sets: BTreeMap<&str, Vec<FieldSet<'static>>> = BTreeMap::new();
    for manager in managers {
        let fields = manager.fields.clone().into_owned();
        sets.entry(&manager.api_version).or_default().push(fields);
    }
    sets.into_iter().map(|(version, sets)| (version, FieldSet::union_of(sets))).collect()
}

fn set_of(object: &Value, message: Message) -> FieldSet<'static> {
    let text = object.to_string();
    let tree = Tree::of(&text);
    fields_of(tree.root(), message).into_owned()
}

/// Somebody as a client is told.
fn shown(manager: &Manager<'_>) -> String {
    let mut shown = quote(&manager.name);
    if !manager.subresource.is_empty() {
        shown.push_str(&format!(" with subresource {}", quote(&manager.subresource)));
    }
    if manager.operation == Operation::Update {
        shown.push_str(&format!(" using {}", manager.api_version));
    }
    shown
}
