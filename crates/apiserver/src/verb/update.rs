//! Update and patch: an object is changed, or not at all.
//!
//! # Guarantees
//!
//! - A change is stored only on top of the very version it was made of. Who names a version
//!   gets a conflict if it is not the newest; for who names none the change is made again.
//! - A change that changes nothing is not stored.
//! - The last change of an object that is being deleted, after which nothing keeps it, removes
//!   it.

use bytes::Bytes;
use serde_json::Value;
use stint_api::field_error::{FieldError, quote};
use stint_api::field_path::Path;
use stint_api::quota::Counted;
use stint_store::{Condition, Revision, StoreError, Write};

use super::apply::{ApplyPatch, Made};
use super::charge::Failed;
use super::create::warn;
use super::metadata;
use super::track::{Owners, Tracked, differ_in_times_only, text};
use crate::api::{Api, Current, Written, store_failed};
use crate::decode::{Decoded, FieldValidation, Format, check_value};
use crate::kind::{AnyKind, Context, Names, Part};
use crate::object::{self, Head, Object};
use crate::patch::{Patch, PatchError, schema};
use crate::request::write_options::WriteOptions;
use crate::status::{Reason, Status};

/// How often a change is made again because somebody else was faster. Each time somebody
/// succeeds, so a hundred writers of one object all get through.
const ATTEMPTS: usize = 200;

/// What is to become of an object.
#[derive(Debug)]
pub(crate) enum Change {
    /// This.
    Replace {
        /// What it is to be.
        decoded: Decoded<Box<dyn Object>>,
        /// Whether whoever asks may also create it, if it is not there.
        may_create: Result<(), Status>,
    },
    /// What the patch makes of it.
    Patch {
        /// The patch.
        patch: Patch,
        /// What it says more than once, as the client is told.
        repeated: Vec<String>,
        /// Whether it may be about who owns what.
        is_about_owners: bool,
    },
    /// What applying this makes of it, or of nothing.
    Apply(ApplyPatch),
}

/// One try to change what is stored now.
struct Attempt<'a> {
    which: Which<'a>,
    current: &'a Current,
    /// Whether the request is about this version and no other.
    is_conditional: bool,
    /// Who owns what when it is done.
    owners: Owners,
    warnings: Vec<String>,
}

impl Attempt<'_> {
    fn written(self, stored: Bytes, revision: Revision) -> Written {
        Written { stored, revision: Some(revision), is_new: false, warnings: self.warnings }
    }

    /// Whether an object that is too large may be tried again without saying who owns what.
    fn may_lose_owners(&self, stored: &Bytes) -> bool {
        matches!(self.owners, Owners::By(_)) && object::managed(stored).is_some()
    }

    /// What a write that failed means: `None`, if it is to be tried again.
    fn failed(&self, error: StoreError) -> Result<Option<Written>, Status> {
        match error {
            StoreError::Conflict { .. } if self.is_conditional => {
                Err(Status::modified(self.which.kind.names(), self.which.name))
            }
            StoreError::Conflict { .. } => Ok(None),
            other => Err(store_failed(other)),
        }
    }
}

/// Which object, and which part of it.
#[derive(Clone, Copy)]
pub(crate) struct Which<'a> {
    pub(crate) kind: &'static dyn AnyKind,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) part: Part,
}

impl Api {
    /// Changes an object.
    pub(crate) async fn update(
        &self,
        which: Which<'_>,
        change: Change,
        options: WriteOptions,
    ) -> Result<Written, Status> {
        let Which { kind, namespace, name, part } = which;
        if let Change::Replace { decoded, .. } = &change {
            check_name(decoded.object.meta().name.as_deref(), name)?;
        }
        let is_replacement = matches!(change, Change::Replace { .. });
        let mut change = Some(change);
        for _ in 0..ATTEMPTS {
            let current = match self.current(kind, namespace, name) {
                Ok(current) => current,
                Err(missing) => {
                    let is_whole = part == Part::Whole && kind.manners().creates_on_update;
                    return match change.take() {
                        Some(Change::Replace { decoded, may_create }) if is_whole => {
                            may_create?;
                            self.create_named(kind, namespace, decoded, options).await
                        }
                        Some(Change::Apply(patch)) if part == Part::Whole => {
                            let written = self.create_applied(which, &patch, &options).await;
                            match written {
                                // Somebody else was faster: there is something to apply it to.
                                Err(status) if status.reason() == Reason::AlreadyExists => {
                                    change = Some(Change::Apply(patch));
                                    continue;
                                }
                                other => other,
                            }
                        }
                        _ => Err(missing),
                    };
                }
            };
            let wanted = change.as_ref().expect("it is taken only to return");
            let (Decoded { object: new, warnings }, owners) = match wanted {
                Change::Apply(patch) => {
                    let made =
                        self.make_applied(which, Some(&current), patch, options.validation)?;
                    check_name(made.decoded.object.meta().name.as_deref(), name)?;
                    (made.decoded, Owners::Known(made.managed))
                }
                Change::Replace { .. } | Change::Patch { .. } => {
                    let mut made = make(kind, &current, wanted, options.validation)?;
                    let repeated = metadata::drop_repeated_owners(made.object.meta_mut());
                    made.warnings.extend(repeated);
                    (made, Owners::By(options.manager.clone()))
                }
            };
            if is_replacement {
                check_uid(new.as_ref(), current.object.as_ref(), kind)?;
            }
            // A patch was made of the version that it carries, unless it names another.
            let is_conditional = is_replacement && asked_version(new.as_ref()).is_some();
            let attempt = Attempt { which, current: &current, is_conditional, owners, warnings };
            if let Some(written) = self.try_update(attempt, new, options.is_dry_run).await? {
                return Ok(written);
            }
        }
        Err(Status::modified(kind.names(), name))
    }

    /// Changes an object by its own code; for subresources that are no part of it.
    pub(crate) async fn change(
        &self,
        which: Which<'_>,
        is_dry_run: bool,
        change: impl Fn(&mut dyn Object) -> Result<(), Status>,
    ) -> Result<Written, Status> {
        for _ in 0..ATTEMPTS {
            let current = self.current(which.kind, which.namespace, which.name)?;
            let mut new = current.object.copy();
            change(new.as_mut())?;
            new.meta_mut().resource_version = None;
            let stored = which.kind.to_stored(new.as_ref(), current.managed.as_deref())?;
            let (owners, warnings) = (Owners::Known(None), Vec::new());
            let attempt =
                Attempt { which, current: &current, is_conditional: false, owners, warnings };
            if let Some(written) = self.put(attempt, stored, None, is_dry_run).await? {
                return Ok(written);
            }
        }
        Err(Status::modified(which.kind.names(), which.name))
    }

    /// Applies the rules and stores the result; `None` if somebody else was faster and the
    /// request does not care.
    async fn try_update(
        &self,
        mut attempt: Attempt<'_>,
        mut new: Box<dyn Object>,
        is_dry_run: bool,
    ) -> Result<Option<Written>, Status> {
        let Which { kind, namespace, name, part } = attempt.which;
        let names = kind.names();
        let old = &attempt.current.object;
        let version = attempt.current.entry.modified.to_string();
        match asked_version(new.as_ref()) {
            Some(asked) if asked.parse::<u64>().is_err() => {
                let why = format!("strconv.ParseUint: parsing {}: invalid syntax", quote(asked));
                return Err(Status::bad_request(why));
            }
            Some(asked) if asked != version => return Err(Status::modified(names, name)),
            Some(_) => {}
            None if kind.manners().updates_unconditionally => {
                new.meta_mut().resource_version = Some(version);
            }
            None => {
                let metadata = Path::field("metadata");
                let path = metadata.child("resourceVersion");
                let error = FieldError::invalid(&path, 0, "must be specified for an update");
                // Kubernetes names the resource here, where elsewhere it names the kind.
                return Err(Status::invalid_of(names.group, names.plural, name, &[error]));
            }
        }
        metadata::set_namespace(new.meta_mut(), names, namespace)?;
        let Tracked { managed, given } = match &attempt.owners {
            Owners::By(manager) => {
                self.tracker().track(kind, part, Some(attempt.current), new.as_mut(), manager)
            }
            Owners::Known(managed) => Tracked::known(managed.clone()),
        };
        metadata::carry_over(new.meta_mut(), old.meta());
        let _addresses =
            if kind.manners().takes_address { Some(self.addresses.lock().await) } else { None };
        let free_address = || self.free_address();
        let context = Context { gates: &self.gates, now: self.now(), free_address: &free_address };
        kind.prepare_for_update(new.as_mut(), old.as_ref(), part, &context);
        new.meta_mut().managed_fields = given;
        let errors = kind.validate_update(new.as_ref(), old.as_ref(), part, &context);
        new.meta_mut().managed_fields = None;
        if !errors.is_empty() {
            return Err(kind.invalid(name, &errors));
        }
        if part == Part::Whole {
            warn(&mut attempt.warnings, kind.change_warnings(new.as_ref(), old.as_ref()));
        }
        let counted = match part {
            Part::Whole => kind.counted_change(new.as_ref(), old.as_ref(), self.now()),
            Part::Status | Part::Finalize => None,
        };
        let is_released = metadata::is_released(new.meta()) && !kind.is_held(new.as_ref());
        // It is not stored, and to leave it out of a copy would take one.
        new.meta_mut().resource_version = None;
        let stored = self.with_owners(attempt.current, kind, new.as_ref(), managed.as_deref())?;
        if is_released {
            return self.remove(attempt, stored, is_dry_run).await;
        }
        self.put(attempt, stored, counted, is_dry_run).await
    }

    /// The stored form of a changed object. If nothing has changed but when who owns what, nothing
    /// has changed.
    fn with_owners(
        &self,
        current: &Current,
        kind: &dyn AnyKind,
        new: &dyn Object,
        managed: Option<&str>,
    ) -> Result<Bytes, Status> {
        let plain = kind.to_stored(new, None)?;
        if let (Some(managed), Some(before)) = (managed, current.managed.as_deref())
            && *plain == *object::without_managed(&current.entry.value)
            && differ_in_times_only(managed, text(before))
        {
            return Ok(current.entry.value.clone());
        }
        Ok(object::with_managed(plain.into(), managed.map(str::as_bytes)).into())
    }

    async fn put(
        &self,
        attempt: Attempt<'_>,
        stored: Bytes,
        counted: Option<Counted>,
        is_dry_run: bool,
    ) -> Result<Option<Written>, Status> {
        let Which { kind, namespace, name, .. } = attempt.which;
        let entry = &attempt.current.entry;
        let at = entry.modified;
        if is_dry_run {
            self.check_quotas(namespace, counted.as_ref())
                .map_err(|failed| failed.status(kind, name))?;
        }
        if is_dry_run || stored == entry.value {
            return Ok(Some(attempt.written(stored, at)));
        }
        let write = Write::put(entry.key.clone(), Condition::At(at), stored.clone());
        match self.write_counted(namespace, counted.clone(), write).await {
            Ok(change) => Ok(Some(attempt.written(stored, change.revision))),
            // Who owns what is worth less than the object, unless it is applied.
            Err(Failed::Store(StoreError::TooLarge { .. })) if attempt.may_lose_owners(&stored) => {
                let stored = Bytes::from(object::without_managed(&stored).into_owned());
                let write = Write::put(entry.key.clone(), Condition::At(at), stored.clone());
                match self.write_counted(namespace, counted, write).await {
                    Ok(change) => Ok(Some(attempt.written(stored, change.revision))),
                    Err(Failed::Store(error)) => attempt.failed(error),
                    Err(refused) => Err(refused.status(kind, name)),
                }
            }
            Err(Failed::Store(error)) => attempt.failed(error),
            Err(refused) => Err(refused.status(kind, name)),
        }
    }

    /// Removes an object that nothing keeps any longer. The client is shown its last change,
    /// which was never stored and so has no version of its own.
    async fn remove(
        &self,
        attempt: Attempt<'_>,
        stored: Bytes,
        is_dry_run: bool,
    ) -> Result<Option<Written>, Status> {
        let entry = &attempt.current.entry;
        let at = entry.modified;
        if is_dry_run {
            return Ok(Some(attempt.written(stored, at)));
        }
        match self.store.write(Write::delete(entry.key.clone(), Condition::At(at))).await {
            Ok(_) => Ok(Some(attempt.written(stored, at))),
            Err(error) => attempt.failed(error),
        }
    }

    /// An apply of something that is not there.
    async fn create_applied(
        &self,
        which: Which<'_>,
        patch: &ApplyPatch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let Which { kind, namespace, name, .. } = which;
        let Made { mut decoded, managed } =
            self.make_applied(which, None, patch, options.validation)?;
        let meta = decoded.object.meta_mut();
        if let Some(uid) = meta.uid.as_deref().filter(|uid| !uid.is_empty()) {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was \
                 found"
            );
            return Err(Status::conflict(kind.names(), name, why));
        }
        metadata::set_namespace(meta, kind.names(), namespace)?;
        check_name(meta.name.as_deref(), name)?;
        // There is no version that it could be on top of.
        meta.resource_version = None;
        patch.may_create.clone()?;
        self.create_owned(kind, namespace, decoded, Owners::Known(managed), options).await
    }

    /// An update of something that is not there, for a kind that takes it as a create.
    async fn create_named(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        mut decoded: Decoded<Box<dyn Object>>,
        options: WriteOptions,
    ) -> Result<Written, Status> {
        let meta = decoded.object.meta_mut();
        let name = meta.name.clone().unwrap_or_default();
        // There is no version that it could be on top of.
        meta.resource_version = None;
        if let Some(uid) = meta.uid.as_deref().filter(|uid| !uid.is_empty()) {
            let why =
                format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Status::conflict(kind.names(), &name, why));
        }
        self.create(kind, namespace, decoded, options).await
    }
}

/// What a change makes of what is stored.
fn make(
    kind: &dyn AnyKind,
    current: &Current,
    change: &Change,
    validation: FieldValidation,
) -> Result<Decoded<Box<dyn Object>>, Status> {
    match change {
        Change::Replace { decoded, .. } => {
            Ok(Decoded { object: decoded.object.copy(), warnings: decoded.warnings.clone() })
        }
        Change::Patch { patch, repeated, is_about_owners } => {
            if validation == FieldValidation::Ignore
                && !is_about_owners
                && let Some(object) = make_of_members(kind, current, patch)
            {
                check_name(object.meta().name.as_deref(), name_of(current))?;
                return Ok(Decoded { object, warnings: Vec::new() });
            }
            let names = kind.names();
            let mut text = bytes::BytesMut::new();
            let head = kind.type_head();
            let stored = kind.as_stored(&current.entry);
            let stored =
                if *is_about_owners { (&*stored).into() } else { object::without_managed(&stored) };
            object::put(&mut text, Head::Typed(&head), &stored, Some(current.entry.modified));
            if validation == FieldValidation::Ignore
                && let Some(decoded) = make_in_part(kind, &text, patch)
            {
                check_name(decoded.object.meta().name.as_deref(), name_of(current))?;
                return Ok(decoded);
            }
            let original = serde_json::from_slice(&text).map_err(Status::internal)?;
            let patched = patch.apply(original, type_of(names)).map_err(patch_failed)?;
            let decoded = kind.decode_value(patched, repeated, validation)?;
            check_name(decoded.object.meta().name.as_deref(), name_of(current))?;
            Ok(decoded)
        }
        Change::Apply(_) => unreachable!("what is applied is made elsewhere"),
    }
}

/// The same, where a kind can change some members of an object and keep the others as they were read.
/// `None` if this one cannot, or if it goes wrong.
fn make_of_members(
    kind: &dyn AnyKind,
    current: &Current,
    patch: &Patch,
) -> Option<Box<dyn Object>> {
    let named = object::members(&current.entry.value, kind.replaceable(), patch.members()?)?;
    let mut original: Value = serde_json::from_slice(&named).ok()?;
    if let Some(Value::Object(metadata)) = original.get_mut("metadata") {
        let version = Value::from(current.entry.modified.to_string());
        metadata.insert("resourceVersion".to_owned(), version);
        metadata.remove("managedFields");
    }
    let patched = patch.apply(original, type_of(kind.names())).ok()?;
    // What is kept has at most an object for every two bytes.
    check_value(&patched, current.entry.value.len() / 2).ok()?;
    let Value::Object(mut patched) = patched else { return None };
    // What the patch has taken away is not what it says nothing of.
    for name in patch.members()? {
        patched.entry(name).or_insert(Value::Null);
    }
    kind.replace(current.object.as_ref(), &patched)
}

/// The same with no more read than the patch is about: a Pod's status says nothing of its spec, which is
/// most of it. `None` if it cannot be done so, or goes wrong: then the long way says what is to be said.
fn make_in_part(
    kind: &dyn AnyKind,
    text: &[u8],
    patch: &Patch,
) -> Option<Decoded<Box<dyn Object>>> {
    let (named, others) = object::split(text, patch.members()?);
    let original = serde_json::from_slice(&named).ok()?;
    let patched = patch.apply(original, type_of(kind.names())).ok()?;
    let mut text = serde_json::to_vec(&patched).expect("JSON serialises");
    text.pop().filter(|last| *last == b'}')?;
    // Without the comma, where there is nothing before it.
    let others = if text == b"{" { others.strip_prefix(b",")? } else { &others };
    text.extend_from_slice(others);
    text.push(b'}');
    kind.decode(&text, Format::Json, FieldValidation::Ignore).ok()
}

/// What is known of the lists of a kind.
fn type_of(names: &Names) -> &'static schema::Type {
    schema::of_kind(&names.api_version(), names.kind).unwrap_or(&schema::PLAIN)
}

/// What a client is told of a patch that cannot be read or applied.
pub(crate) fn patch_failed(error: PatchError) -> Status {
    match error.status() {
        413 => Status::too_large(crate::patch::limits::MAX_PATCH_BYTES),
        422 => Status::unprocessable_patch(&error.to_string()),
        _ => Status::bad_request(error.to_string()),
    }
}

fn name_of(current: &Current) -> &str {
    current.object.meta().name.as_deref().expect("everything stored has a name")
}

/// The version that a change is to be made on top of; `0` is as good as none.
fn asked_version(new: &dyn Object) -> Option<&str> {
    new.meta().resource_version.as_deref().filter(|version| !matches!(*version, "" | "0"))
}

/// The name in an object must be that of its path.
fn check_name(given: Option<&str>, name: &str) -> Result<(), Status> {
    match given {
        None | Some("") => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        Some(given) if given != name => Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
        Some(_) => Ok(()),
    }
}

/// An update that names a uid is about that object, not about a later one of the same name.
fn check_uid(new: &dyn Object, old: &dyn Object, kind: &dyn AnyKind) -> Result<(), Status> {
    let (asked, found) = (new.meta().uid.as_deref().unwrap_or(""), old.meta().uid.as_deref());
    if asked.is_empty() || Some(asked) == found {
        return Ok(());
    }
    let name = old.meta().name.as_deref().unwrap_or("");
    let why = format!(
        "Precondition failed: UID in precondition: {asked}, UID in object meta: {}",
        found.unwrap_or("")
    );
    Err(Status::conflict(kind.names(), name, why))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use stint_store::Entry;

    use super::*;
    use crate::kinds;
    use crate::patch::PatchType;

    fn pod() -> Value {
        json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "name": "a", "labels": {"x": "1", "y": "\"},{"}, "finalizers": ["f/a", "f/b"],
            },
            "spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]},
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
        })
    }

    #[test]
    fn a_patch_of_some_members_makes_the_same_of_an_object_as_one_of_all() {
        let kind = kinds::find("", "v1", "pods").expect("there are Pods");
        let original = pod();
        let patches = [
            json!({}),
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/a"]}}),
            json!({"metadata": {"labels": {"x": null}, "uid": "u"}, "status": null}),
            json!({"spec": {"containers": [{"name": "main", "env": [{"$patch": "replace"}]}]}}),
            json!({"spec": {"nodeName": "n"}, "metadata": null}),
            json!({"nothing": {"a": 1}}),
        ];
        for patch_type in [PatchType::Merge, PatchType::Strategic] {
            for body in &patches {
                let patch = Patch::from_value(patch_type, body.clone()).expect("a patch");
                let part = make_in_part(kind, original.to_string().as_bytes(), &patch);
                let whole = patch.apply(original.clone(), type_of(kind.names()));
                let whole = whole.expect("it applies");
                let whole = kind.decode_value(whole, &[], FieldValidation::Ignore);
                let stored = |made: &Decoded<Box<dyn Object>>| {
                    kind.to_stored(made.object.as_ref(), None).expect("it can be stored")
                };
                let (part, whole) = (part.as_ref().map(stored), whole.as_ref().ok().map(stored));
                assert_eq!(part, whole, "{patch_type:?} {body}");
            }
        }
    }

    #[test]
    fn members_that_are_replaced_make_the_same_of_an_object_as_one_of_all() {
        let kind = kinds::find("", "v1", "pods").expect("there are Pods");
        let (current, original) = stored_pod(kind);
        let patches = [
            json!({}),
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"status": null}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/a"]}}),
            json!({"metadata": {"labels": {"x": null}, "uid": "u"}, "status": null}),
            json!({"metadata": {"resourceVersion": "3"}, "spec": {"nodeName": "n"}}),
            json!({"spec": {"containers": [{"name": "main", "env": [{"$patch": "replace"}]}]}}),
        ];
        for patch_type in [PatchType::Merge, PatchType::Strategic] {
            for body in &patches {
                let patch = Patch::from_value(patch_type, body.clone()).expect("a patch");
                let part = make_of_members(kind, &current, &patch).expect("it can be done so");
                let whole = patch.apply(original.clone(), type_of(kind.names()));
                let whole = kind
                    .decode_value(whole.expect("it applies"), &[], FieldValidation::Ignore)
                    .expect("a Pod");
                assert_eq!(part.meta(), whole.object.meta(), "{patch_type:?} {body}");
                let stored = |object| kind.to_stored(object, None).expect("it can be stored");
                let made = stored(part.as_ref());
                assert_eq!(made, stored(whole.object.as_ref()), "{patch_type:?} {body}");
            }
        }
        let long_ways = [
            json!({"kind": "Job"}),
            json!({"metadata": null}),
            json!({"spec": {"containers": 7}}),
            json!({"status": "Running"}),
        ];
        for body in long_ways {
            let patch = Patch::from_value(PatchType::Merge, body.clone()).expect("a patch");
            assert!(make_of_members(kind, &current, &patch).is_none(), "{body}");
        }
    }

    /// A Pod as it is found in the store, and as a patch without a short cut reads it.
    fn stored_pod(kind: &'static dyn AnyKind) -> (Current, Value) {
        let (revision, managed) = (Revision::new(7), br#"[{"manager":"m"}]"#);
        let object = kind.decode_value(pod(), &[], FieldValidation::Ignore).expect("a Pod").object;
        let value = kind.to_stored(object.as_ref(), Some(managed)).expect("it can be stored");
        let mut original: Value =
            serde_json::from_slice(&object::without_managed(&value)).expect("JSON");
        original["metadata"]["resourceVersion"] = json!("7");
        let object = kind.read_stored(&value, revision);
        let managed = object::managed(&value);
        let entry = Entry { key: "/pods/a".into(), value, created: revision, modified: revision };
        (Current { entry: Arc::new(entry), object, managed }, original)
    }

    #[test]
    fn what_may_be_about_any_member_is_done_the_long_way() {
        let kind = kinds::find("", "v1", "pods").expect("there are Pods");
        let text = pod().to_string();
        for (patch_type, body) in [
            (PatchType::Json, json!([{"op": "remove", "path": "/status"}])),
            (PatchType::Strategic, json!({"$patch": "delete"})),
            (PatchType::Strategic, json!({"$retainKeys": ["spec"], "spec": {}})),
            (PatchType::Merge, json!({"spec": {"containers": 7}})),
        ] {
            let patch = Patch::from_value(patch_type, body.clone()).expect("a patch");
            assert!(make_in_part(kind, text.as_bytes(), &patch).is_none(), "{body}");
        }
    }
}
