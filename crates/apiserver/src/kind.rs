//! What the server has to know of a kind: its names, its manners, its rules and its columns.
//! Each kind is one file under `kinds`; nothing else names one.

mod any;
mod names;
mod omitted;

pub use any::{AnyKind, Of};
pub use names::Names;
pub(crate) use names::group_version;

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::LimitRange;
use serde_json::{Map, Value};
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::{FieldError, quote};
use stint_api::pod_deletion::Deletion;
use stint_api::quota::{Counted, Tracked};
use stint_store::Revision;

use crate::object::{self, KubernetesType};
use crate::table::{Column, RowCondition};

/// How requests for a kind are treated where kinds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Whether an update of an object that does not exist creates it.
    pub creates_on_update: bool,
    /// Whether an update without resourceVersion is taken.
    pub updates_unconditionally: bool,
    /// Whether a delete is answered with the object rather than with a Status.
    pub returns_deleted: bool,
    /// Whether dependents are orphaned if a delete does not say what to do with them.
    pub orphans_by_default: bool,
    /// Whether there is a status subresource.
    pub has_status: bool,
    /// Whether LimitRanges are about new objects.
    pub is_limited: bool,
    /// Whether new objects may be given an address of their own.
    pub takes_address: bool,
    /// Whether many can be deleted at once.
    pub deletes_collections: bool,
    /// Whether objects may own others. Those that may not have nothing to wait for when they
    /// are deleted.
    pub has_dependents: bool,
    /// Whether the first delete only marks an object, though nothing else keeps it.
    pub is_marked_first: bool,
    /// What everybody is told who uses the kind, if nobody should any more.
    pub deprecation: Option<&'static str>,
}

impl Manners {
    /// What most kinds do.
    pub const USUAL: Manners = Manners {
        creates_on_update: false,
        updates_unconditionally: true,
        returns_deleted: false,
        orphans_by_default: false,
        has_status: false,
        is_limited: false,
        takes_address: false,
        deletes_collections: true,
        has_dependents: true,
        is_marked_first: false,
        deprecation: None,
    };
}

/// What the rules of a kind may ask of the server beside the object.
pub struct Context<'a> {
    /// Which features are on.
    pub gates: &'a FeatureGates,
    /// The time of the request.
    pub now: Timestamp,
    /// An address that no other object has; none if there is none left.
    pub free_address: &'a (dyn Fn() -> Option<String> + Sync),
}

/// What most kinds with a status never change by a write of the one or the other.
pub(crate) const fn resets_of_status(part: Part) -> &'static [&'static [&'static str]] {
    match part {
        Part::Whole | Part::Finalize => &[&["status"]],
        Part::Status => &[&["spec"]],
    }
}

/// Which part of an object an update is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All but the status.
    Whole,
    /// The status.
    Status,
    /// The finalizers in the spec of a namespace.
    Finalize,
}

impl Part {
    /// The subresource; none if it is all of the object.
    pub fn subresource(self) -> &'static str {
        match self {
            Part::Whole => "",
            Part::Status => "status",
            Part::Finalize => "finalize",
        }
    }
}

/// A subresource: its name, the kind of its objects and its verbs.
pub type PartOf = (&'static str, &'static str, &'static [&'static str]);

/// A kind: its shape, its strategy (prepare, default, validate) and its columns.
pub trait Kind: Send + Sync + 'static {
    /// The shape of its objects.
    type Object: KubernetesType;

    /// What it is called.
    const NAMES: Names;

    /// The group that is named when an object breaks the rules: that of the kind as which it is
    /// judged.
    const JUDGED_IN: &'static str = Self::NAMES.group;

    /// How it is treated.
    const MANNERS: Manners = Manners::USUAL;

    /// Where it is stored: the first part of its keys. Two kinds may share one.
    const STORED_UNDER: &'static str;

    /// Fields that can be selected by, besides metadata.name and metadata.namespace.
    const FIELDS: &'static [&'static str] = &[];

    /// Does to a new object what admission plugins do; if it is refused, why.
    fn admit(_object: &mut Self::Object) -> Result<(), String> {
        Ok(())
    }

    /// Gives a new object what a LimitRange gives to those that ask for nothing.
    fn apply_limits(_object: &mut Self::Object, _range: &LimitRange) {}

    /// Whether a LimitRange lets a new object in; if not, why.
    fn check_limits(_object: &Self::Object, _range: &LimitRange) -> Result<(), String> {
        Ok(())
    }

    /// What a new object takes of quotas; none, if it is never counted.
    fn counted(_object: &Self::Object, _now: Timestamp) -> Option<Counted> {
        let names = Self::NAMES;
        Tracked::of(names.group, names.plural).map(Counted::object)
    }

    /// What a change takes of quotas; none, if there is no such change.
    fn counted_change(
        _new: &Self::Object,
        _old: &Self::Object,
        _now: Timestamp,
    ) -> Option<Counted> {
        None
    }

    /// What a client should be warned of in a new object that was taken.
    fn warnings(_object: &Self::Object) -> Vec<String> {
        Vec::new()
    }

    /// What a client should be warned of in a changed object that was taken.
    fn change_warnings(_new: &Self::Object, _old: &Self::Object) -> Vec<String> {
        Vec::new()
    }

    /// The service account that an admitted object has by name, which must be there.
    fn account(_object: &Self::Object) -> Option<&str> {
        None
    }

    /// An object as whoever writes it owns its fields: in its own version, with what that version
    /// fills in, and before anything else is done to it. It may be left so, for that will be
    /// filled in anyhow.
    fn tracked(object: &mut Self::Object, _gates: &FeatureGates) -> Vec<u8> {
        object::to_stored(object)
    }

    /// The members that [`Kind::replace`] can read by themselves. A kind that is patched all the time has
    /// some; its objects are stored as they are.
    const REPLACEABLE: &'static [&'static str] = &[];

    /// An object with some of these members, those that are null taken away, and the others as they were;
    /// `None` if they cannot be read.
    fn replace(_object: &Self::Object, _members: &Map<String, Value>) -> Option<Self::Object> {
        None
    }

    /// What a write of a part never changes, beside what no write changes: nobody owns it by such
    /// a write.
    fn resets(_part: Part) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Defaults a new object and resets what a client may not write.
    fn prepare_for_create(object: &mut Self::Object, context: &Context<'_>);

    /// Defaults a changed object and keeps what a client may not write.
    fn prepare_for_update(
        new: &mut Self::Object,
        old: &Self::Object,
        part: Part,
        context: &Context<'_>,
    );

    /// What is wrong with a new object.
    fn validate_create(object: &Self::Object, context: &Context<'_>) -> Vec<FieldError>;

    /// What is wrong with a change.
    fn validate_update(
        new: &Self::Object,
        old: &Self::Object,
        part: Part,
        context: &Context<'_>,
    ) -> Vec<FieldError>;

    /// What a client is told that selects by a field that cannot be selected by.
    fn unknown_field(field: &str) -> String {
        if Self::FIELDS.is_empty() {
            let field = quote(field);
            return format!(
                "{field} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            );
        }
        format!("field label not supported: {field}")
    }

    /// The value of one of [`Kind::FIELDS`]; an absent one is empty.
    fn field<'o>(_object: &'o Self::Object, _name: &str) -> Cow<'o, str> {
        Cow::Borrowed("")
    }

    /// As much of an object as [`Kind::field`] looks at. Every event of a watch that selects by
    /// fields asks for it, of two versions of the object.
    fn selectable(stored: &[u8], revision: Revision) -> Self::Object {
        Self::from_stored(stored, revision)
    }

    /// Marks an object that is given time to end, as a request to delete it asks for; `None`
    /// if the kind knows no such thing.
    fn begin_deletion(
        _object: &mut Self::Object,
        _requested: Option<i64>,
        _now: Timestamp,
    ) -> Option<Deletion> {
        None
    }

    /// Whether an object may be deleted at all; if not, why.
    fn may_delete(_object: &Self::Object) -> Result<(), &'static str> {
        Ok(())
    }

    /// Something else that keeps a deleted object, besides finalizers and grace.
    fn is_held(_object: &Self::Object) -> bool {
        false
    }

    /// Its subresources besides the status, each with the kind of its objects and its verbs.
    const PARTS: &'static [PartOf] = &[];

    /// Called when an object is marked for deletion.
    fn mark_deleted(_object: &mut Self::Object) {}

    /// The columns of its tables.
    fn columns() -> &'static [Column];

    /// A row of a table.
    fn cells(object: &Self::Object, now: Timestamp) -> Vec<Value>;

    /// What a row says besides its cells.
    fn row_conditions(_object: &Self::Object) -> &'static [RowCondition] {
        &[]
    }

    /// The stored form of an object.
    fn to_stored(object: &Self::Object) -> Vec<u8> {
        object::to_stored(object)
    }

    /// Whether a stored form can be read again.
    fn reads_back(stored: &[u8]) -> bool {
        serde_json::from_slice::<Self::Object>(stored).is_ok()
    }

    /// An object from its stored form.
    fn from_stored(stored: &[u8], revision: Revision) -> Self::Object {
        object::from_stored(stored, revision)
    }

    /// Whether what is stored is this kind's own form, so that it can be answered as it is.
    const IS_STORED_AS_IS: bool = true;
}
