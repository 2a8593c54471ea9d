//! What the graph knows of an object: where it is, whom it belongs to, and how it is on its way
//! out. It knows no other object.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};

use super::uid::Uid;

/// A kind of objects, by its place among the graph's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KindId(pub(crate) usize);

/// What the graph has to know of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GraphKind {
    pub(crate) api_version: String,
    pub(crate) kind: &'static str,
    pub(crate) is_namespaced: bool,
}

/// An object, or what an owner reference takes for one. Two of them are the same only if
/// everything is: a reference with the right uid and a wrong name means nobody.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    pub(crate) uid: Uid,
    pub(crate) kind: KindId,
    /// The namespace and the name, with a slash between them if there is a namespace.
    place: Box<str>,
    namespace_bytes: usize,
}

impl ObjectId {
    pub(crate) fn new(kind: KindId, namespace: Option<&str>, name: &str, uid: Uid) -> Self {
        let (place, namespace_bytes) = match namespace {
            Some(namespace) => (format!("{namespace}/{name}"), namespace.len()),
            None => (name.to_owned(), 0),
        };
        ObjectId { uid, kind, place: place.into(), namespace_bytes }
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        (self.namespace_bytes > 0).then(|| &self.place[..self.namespace_bytes])
    }

    pub(crate) fn name(&self) -> &str {
        match self.namespace_bytes {
            0 => &self.place,
            bytes => &self.place[bytes + 1..],
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.kind.0, self.place, self.uid)
    }
}

/// How far an object is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody has deleted it.
    Alive,
    /// It waits until its dependents have lost it as their owner.
    Orphaning,
    /// It waits until the dependents that block it are gone.
    Foreground,
    /// It waits for something else.
    Ending,
}

impl Phase {
    /// Whether it waits for its dependents.
    pub(crate) fn waits(self) -> bool {
        match self {
            Phase::Orphaning | Phase::Foreground => true,
            Phase::Alive | Phase::Ending => false,
        }
    }
}

/// What becomes of an object's dependents when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What an object's metadata says.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) id: ObjectId,
    pub(crate) version: u64,
    pub(crate) phase: Phase,
    /// How it is to be deleted, according to its finalizers.
    pub(crate) propagation: Propagation,
    pub(crate) owners: Owners,
}

/// Whom an object belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    /// Each owner once, and whether the object blocks its deletion.
    pub(crate) known: Vec<(ObjectId, bool)>,
    /// The owners that cannot be judged: of a kind that is not served here, or in a namespace,
    /// while the object is in none.
    pub(crate) foreign: Vec<Uid>,
}

impl Facts {
    /// Reads the metadata of an object.
    pub(crate) fn read(kinds: &[GraphKind], kind: KindId, meta: &ObjectMeta) -> Self {
        let namespace = meta.namespace.as_deref().filter(|_| kinds[kind.0].is_namespaced);
        let name = meta.name.as_deref().unwrap_or_default();
        let id = ObjectId::new(kind, namespace, name, uid(meta));
        let has = |name: &str| meta.finalizers.iter().flatten().any(|finalizer| finalizer == name);
        let (has_orphan, has_foreground) = (has(ORPHAN), has(FOREGROUND_DELETION));
        let phase = match (&meta.deletion_timestamp, has_orphan, has_foreground) {
            (None, _, _) => Phase::Alive,
            (Some(_), true, _) => Phase::Orphaning,
            (Some(_), false, true) => Phase::Foreground,
            (Some(_), false, false) => Phase::Ending,
        };
        let propagation = match (has_orphan, has_foreground) {
            (true, _) => Propagation::Orphan,
            (false, true) => Propagation::Foreground,
            (false, false) => Propagation::Background,
        };
        let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
        let references = meta.owner_references.as_deref().unwrap_or_default();
        let owners = Owners::read(kinds, namespace, references);
        Facts { id, version: version.unwrap_or(0), phase, propagation, owners }
    }
}

impl Owners {
    /// Reads the owner references of an object in a namespace, or in none.
    pub(crate) fn read(
        kinds: &[GraphKind],
        namespace: Option<&str>,
        references: &[OwnerReference],
    ) -> Self {
        let mut owners = Owners::default();
        for reference in references {
            let found = kinds.iter().position(|kind| {
                kind.kind == reference.kind && kind.api_version == reference.api_version
            });
            match found {
                Some(place) if namespace.is_some() || !kinds[place].is_namespaced => {
                    let namespace = namespace.filter(|_| kinds[place].is_namespaced);
                    let uid = Uid::new(&reference.uid);
                    let id = ObjectId::new(KindId(place), namespace, &reference.name, uid);
                    owners.known.push((id, reference.block_owner_deletion == Some(true)));
                }
                Some(_) | None => owners.foreign.push(Uid::new(&reference.uid)),
            }
        }
        owners.known.sort();
        // Of two references to the same owner the one that blocks is the last.
        owners.known.dedup_by(|next, first| {
            let is_same = next.0 == first.0;
            first.1 |= is_same && next.1;
            is_same
        });
        owners
    }
}

/// The uid in an object's metadata.
pub(crate) fn uid(meta: &ObjectMeta) -> Uid {
    Uid::new(meta.uid.as_deref().unwrap_or_default())
}
