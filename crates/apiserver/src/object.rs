//! An object of any kind, and the form it is stored in. It knows no rules of any kind.
//!
//! The stored form is JSON without `apiVersion`, `kind` and resourceVersion, and with the
//! metadata in front:
//!
//! ```text
//!   {"metadata":{"name":"a",…},"spec":…}                                stored
//!   {"kind":"Job","apiVersion":"batch/v1","metadata":{"resourceVersion":"7","name":"a",…},"spec":…}
//! ```
//!
//! So an answer is made of what is stored by putting two short texts around its start. Nothing
//! is decoded to be read, listed or watched.
//!
//! Who owns which fields stands last in the metadata. It is as long as the rest of a small object
//! and nobody's business but [`fields`](crate::fields)', so it is cut out before an object is
//! read and put in again when it is stored.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stint_store::Revision;

/// What a Kubernetes type can do, all of it at once.
pub trait KubernetesType:
    Resource
    + Metadata<Ty = ObjectMeta>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Default
    + Send
    + Sync
    + 'static
{
}

impl<T> KubernetesType for T where
    T: Resource
        + Metadata<Ty = ObjectMeta>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Default
        + Send
        + Sync
        + 'static
{
}

/// An object of some kind.
pub trait Object: Any + Debug + Send + Sync {
    /// Its metadata.
    fn meta(&self) -> &ObjectMeta;
    /// Its metadata, to be changed.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    /// The same object once more.
    fn copy(&self) -> Box<dyn Object>;
}

impl<T: KubernetesType> Object for T {
    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.metadata_mut()
    }

    fn copy(&self) -> Box<dyn Object> {
        Box::new(self.clone())
    }
}

impl dyn Object {
    /// The object as the type of its kind.
    pub(crate) fn expect_ref<T: KubernetesType>(&self) -> &T {
        (self as &dyn Any).downcast_ref().expect("an object is of the type of its kind")
    }

    /// The object as the type of its kind, to be changed.
    pub(crate) fn expect_mut<T: KubernetesType>(&mut self) -> &mut T {
        (self as &mut dyn Any).downcast_mut().expect("an object is of the type of its kind")
    }
}

/// The start of everything stored.
const START: &[u8] = b"{\"metadata\":{";

/// The stored form of an object. Its metadata has no resourceVersion.
pub(crate) fn to_stored<T: KubernetesType>(object: &T) -> Vec<u8> {
    let mut json = serde_json::to_vec(object).expect("Kubernetes types serialise to JSON");
    // k8s-openapi writes the two fields of the type first, without spaces.
    let head = format!(r#"{{"apiVersion":"{}","kind":"{}","#, T::API_VERSION, T::KIND);
    assert!(json.starts_with(head.as_bytes()), "a type starts with its apiVersion and kind");
    json.drain(1..head.len());
    if !json.starts_with(START) {
        json = with_metadata_first(&json);
    }
    json
}

/// Whether a stored form may hold a time of a year below zero. Such a time can be read and
/// written, but not read again: it is written with three digits of its year.
pub(crate) fn may_have_early_times(stored: &[u8]) -> bool {
    let is_early = |at: usize| {
        let digits = stored.get(at + 2..at + 5);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
    };
    memchr::memmem::find_iter(stored, b"\"-").any(is_early)
}

/// An object from its stored form.
///
/// # Assumptions
///
/// It was stored by [`AnyKind::to_stored`](crate::kind::AnyKind::to_stored), which refuses what
/// cannot be read again.
pub(crate) fn from_stored<T: KubernetesType>(stored: &[u8], revision: Revision) -> T {
    let text = without_managed(stored);
    let mut object: T = serde_json::from_slice(&text).expect("what was stored can be read");
    object.metadata_mut().resource_version = Some(revision.to_string());
    object
}

/// Who owns which fields of something stored: the list of `managedFields`.
pub(crate) fn managed(stored: &Bytes) -> Option<Bytes> {
    managed_range(stored).map(|range| stored.slice(range.start + MANAGED.len()..range.end))
}

/// Something stored without who owns its fields.
pub(crate) fn without_managed(stored: &[u8]) -> Cow<'_, [u8]> {
    match managed_range(stored) {
        None => Cow::Borrowed(stored),
        Some(range) => Cow::Owned([&stored[..range.start], &stored[range.end..]].concat()),
    }
}

/// Something stored with who owns its fields, which it does not say yet.
pub(crate) fn with_managed(mut stored: Vec<u8>, managed: Option<&[u8]>) -> Vec<u8> {
    let Some(managed) = managed else { return stored };
    let at = metadata_end(&stored) - 1;
    let rest = stored.split_off(at);
    stored.reserve_exact(MANAGED.len() + managed.len() + rest.len());
    stored.extend_from_slice(MANAGED);
    stored.extend_from_slice(managed);
    stored.extend_from_slice(&rest);
    stored
}

/// What stands before the list of who owns fields. Everything has a name, so something stands
/// before that.
const MANAGED: &[u8] = b",\"managedFields\":";

/// Where who owns fields stands in something stored: with the comma before it, up to the end of
/// the metadata.
fn managed_range(stored: &[u8]) -> Option<Range<usize>> {
    let (managed, end) = skim(stored, MANAGED);
    managed.map(|start| start..end)
}

/// Where in the metadata a member stands that begins so, and where their last brace is. Texts are passed
/// over in strides: they are most of what there is, and everybody who reads or watches an object comes
/// by here.
fn skim(stored: &[u8], member: &[u8]) -> (Option<usize>, usize) {
    let (mut depth, mut at, mut found) = (1_usize, START.len(), None);
    while let Some(byte) = stored.get(at) {
        match byte {
            b'"' => at = text_end(stored, at + 1),
            b'{' => depth += 1,
            b'}' if depth == 1 => return (found, at),
            b'}' => depth -= 1,
            b',' if depth == 1 && stored[at..].starts_with(member) => found = Some(at),
            _ => {}
        }
        at += 1;
    }
    panic!("the metadata of something stored have an end");
}

/// Where the quote is that ends a text.
fn text_end(stored: &[u8], mut at: usize) -> usize {
    loop {
        let next = memchr::memchr2(b'"', b'\\', &stored[at..]);
        at += next.expect("a text of something stored has an end");
        if stored[at] == b'"' {
            return at;
        }
        at += 2;
    }
}

/// Moves the member `metadata` of a JSON object to its front.
fn with_metadata_first(json: &[u8]) -> Vec<u8> {
    let members = Members::of(json);
    let metadata = members
        .iter()
        .find(|member| json[member.start..].starts_with(&START[1..]))
        .expect("an object has metadata with something in it")
        .clone();
    let mut moved = Vec::with_capacity(json.len());
    moved.push(b'{');
    moved.extend_from_slice(&json[metadata.clone()]);
    for member in members.iter().filter(|member| **member != metadata) {
        moved.push(b',');
        moved.extend_from_slice(&json[member.clone()]);
    }
    moved.push(b'}');
    moved
}

/// A JSON text cut in two objects: with the members of these names, and the others as they stand, behind
/// a comma each.
pub(crate) fn split<'n>(
    json: &[u8],
    names: impl Iterator<Item = &'n str> + Clone,
) -> (Vec<u8>, Vec<u8>) {
    let (mut named, mut others) = (vec![b'{'], Vec::with_capacity(json.len()));
    for member in Members::of(json) {
        let member = &json[member];
        if names.clone().any(|name| is_member(member, name)) {
            if named.len() > 1 {
                named.push(b',');
            }
            named.extend_from_slice(member);
        } else {
            others.push(b',');
            others.extend_from_slice(member);
        }
    }
    named.push(b'}');
    (named, others)
}

/// Of a JSON text the members of these names, as an object. `None` if there is a name that is none of
/// those that are `known`.
pub(crate) fn members<'n>(
    json: &[u8],
    known: &[&str],
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<Vec<u8>> {
    if !names.clone().all(|name| known.contains(&name)) {
        return None;
    }
    Some(with_members(
        Members::of(json)
            .iter()
            .map(|member| &json[member.clone()])
            .filter(|member| names.clone().any(|name| is_member(member, name))),
    ))
}

/// Two JSON texts without the members that are the same in both, to the letter.
pub(crate) fn differing(one: &[u8], other: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let [ours, theirs] = [one, other].map(|json| {
        let text = move |member: &Range<usize>| &json[member.clone()];
        Members::of(json).iter().map(text).collect::<Vec<_>>()
    });
    let [ours_only, theirs_only] = [(&ours, &theirs), (&theirs, &ours)]
        .map(|(own, known)| with_members(own.iter().copied().filter(|it| !known.contains(it))));
    (ours_only, theirs_only)
}

/// An object of these members.
fn with_members<'m>(members: impl Iterator<Item = &'m [u8]>) -> Vec<u8> {
    let mut json = vec![b'{'];
    for member in members {
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(member);
    }
    json.push(b'}');
    json
}

/// Whether a member has this name.
fn is_member(member: &[u8], name: &str) -> bool {
    member
        .strip_prefix(b"\"")
        .and_then(|it| it.strip_prefix(name.as_bytes()))
        .is_some_and(|rest| rest.starts_with(b"\":"))
}

/// The members of a JSON object, each as a range of its text from key to value.
struct Members;

impl Members {
    fn of(json: &[u8]) -> Vec<std::ops::Range<usize>> {
        let (mut depth, mut start) = (0_usize, 1);
        let mut members = Vec::new();
        let mut position = 0;
        while let Some(byte) = json.get(position) {
            match byte {
                b'"' => position = text_end(json, position + 1),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 && position > start {
                        members.push(start..position);
                    }
                }
                b',' if depth == 1 => {
                    members.push(start..position);
                    start = position + 1;
                }
                _ => {}
            }
            position += 1;
        }
        members
    }
}

/// What stands before the metadata of an answer: `{` in a list, and the type elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head<'a> {
    /// An item of a list, which says what its items are.
    Item,
    /// An object that says what it is: the text of [`type_head`].
    Typed(&'a str),
}

/// The type of an object as an answer starts with it.
pub(crate) fn type_head(api_version: &str, kind: &str) -> String {
    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#)
}

/// Adds an object to an answer. Without a revision it has no resourceVersion, as the answer
/// to a dry run.
pub(crate) fn put(
    answer: &mut BytesMut,
    head: Head<'_>,
    stored: &[u8],
    revision: Option<Revision>,
) {
    let rest = stored.strip_prefix(START).expect("everything stored starts with its metadata");
    let head = match head {
        Head::Item => "{",
        Head::Typed(text) => text,
    };
    let separator = if rest.starts_with(b"}") { "" } else { "," };
    let version = revision.map_or_else(String::new, |revision| {
        format!(r#""resourceVersion":"{revision}"{separator}"#)
    });
    const METADATA: &[u8] = b"\"metadata\":{";
    answer.reserve(head.len() + METADATA.len() + version.len() + rest.len());
    answer.extend_from_slice(head.as_bytes());
    answer.extend_from_slice(METADATA);
    answer.extend_from_slice(version.as_bytes());
    answer.extend_from_slice(rest);
}

/// The same without who owns its fields.
pub(crate) fn put_without_managed(
    answer: &mut BytesMut,
    head: Head<'_>,
    stored: &[u8],
    revision: Option<Revision>,
) {
    match managed_range(stored) {
        None => put(answer, head, stored, revision),
        Some(range) => {
            put(answer, head, &stored[..range.start], revision);
            answer.extend_from_slice(&stored[range.end..]);
        }
    }
}

/// Adds the metadata of an object to an answer, without a type.
pub(crate) fn put_metadata(
    answer: &mut BytesMut,
    head: Head<'_>,
    stored: &[u8],
    revision: Option<Revision>,
) {
    put(answer, head, &stored[..metadata_end(stored)], revision);
    answer.extend_from_slice(b"}");
}

/// The same without who owns its fields.
pub(crate) fn put_metadata_without_managed(
    answer: &mut BytesMut,
    head: Head<'_>,
    stored: &[u8],
    revision: Option<Revision>,
) {
    match managed_range(stored) {
        None => put_metadata(answer, head, stored, revision),
        Some(range) => {
            put(answer, head, &stored[..range.start], revision);
            answer.extend_from_slice(b"}}");
        }
    }
}

/// The text of an object's metadata.
pub(crate) fn metadata_text(stored: &[u8]) -> &[u8] {
    &stored[START.len() - 1..metadata_end(stored)]
}

/// Where the metadata end, which everything stored starts with. Nothing after them is looked
/// at: a selector asks this of every object.
fn metadata_end(stored: &[u8]) -> usize {
    skim(stored, MANAGED).1 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::{Value, json};

    #[test]
    fn metadata_comes_first_whatever_the_type() {
        let object: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": "a", "annotations": {"x": "\"},{\\"}},
            "data": {"metadata": "{\"metadata\":{", "b": "[}"},
            "immutable": true,
        }))
        .expect("a config map");
        let stored = to_stored(&object);
        let text = String::from_utf8(stored.clone()).expect("JSON is text");
        assert!(text.starts_with(r#"{"metadata":{"annotations""#), "{text}");
        let read: ConfigMap = from_stored(&stored, Revision::new(7));
        assert_eq!(read.data, object.data);
        assert_eq!(read.metadata.resource_version.as_deref(), Some("7"));
    }

    #[test]
    fn a_text_is_cut_by_the_names_of_its_members() {
        let json =
            br#"{"kind":"Pod","metadata":{"spec":{"a":"},\"spec\":{"}},"spec":{"x":[{}]},"sp":1}"#;
        let rows: [(&[&str], &str, &str); 4] = [
            (
                &["spec"],
                r#"{"spec":{"x":[{}]}}"#,
                r#","kind":"Pod","metadata":{"spec":{"a":"},\"spec\":{"}},"sp":1"#,
            ),
            (
                &["status"],
                "{}",
                &format!(",{}", std::str::from_utf8(&json[1..json.len() - 1]).expect("text")),
            ),
            (
                &["sp", "kind"],
                r#"{"kind":"Pod","sp":1}"#,
                r#","metadata":{"spec":{"a":"},\"spec\":{"}},"spec":{"x":[{}]}"#,
            ),
            (&["kind", "metadata", "spec", "sp"], std::str::from_utf8(json).expect("text"), ""),
        ];
        for (names, named, others) in rows {
            let (found, rest) = split(json, names.iter().copied());
            assert_eq!(String::from_utf8(found).expect("text"), named);
            assert_eq!(String::from_utf8(rest).expect("text"), others);
        }
    }

    #[test]
    fn members_that_are_the_same_to_the_letter_do_not_differ() {
        let rows = [
            (r#"{"a":1,"b":{"c":[1,2]}}"#, r#"{"b":{"c":[1,2]},"a":1}"#, "{}", "{}"),
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3,"c":4}"#, r#"{"b":2}"#, r#"{"b":3,"c":4}"#),
            (r#"{"a":{"b":1}}"#, r#"{"b":1}"#, r#"{"a":{"b":1}}"#, r#"{"b":1}"#),
        ];
        for (one, other, ours, theirs) in rows {
            let (found, rest) = differing(one.as_bytes(), other.as_bytes());
            assert_eq!((&*found, &*rest), (ours.as_bytes(), theirs.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn members_are_taken_by_their_names_if_all_of_them_are_known() {
        let json = br#"{"metadata":{"status":1},"spec":{"a":"},"},"status":{}}"#;
        let known = ["metadata", "spec", "status"];
        let taken = |names: &[&str]| members(json, &known, names.iter().copied());
        assert_eq!(
            taken(&["status", "spec"]).as_deref(),
            Some(&br#"{"spec":{"a":"},"},"status":{}}"#[..])
        );
        assert_eq!(taken(&[]).as_deref(), Some(&b"{}"[..]));
        assert_eq!(taken(&["spec", "kind"]), None);
    }

    #[test]
    fn metadata_end_where_they_end() {
        let rest = r#","data":{"a":"}"}}"#;
        for metadata in [
            r#"{"name":"a"}"#,
            r#"{}"#,
            r#"{"a":{"b":"}"},"c":["{",{"d":"\\\""}]}"#,
            r#"{"a":"\\","b":{}}"#,
        ] {
            let stored = format!(r#"{{"metadata":{metadata}{rest}"#);
            let found = std::str::from_utf8(metadata_text(stored.as_bytes()));
            assert_eq!(found, Ok(metadata));
        }
    }

    #[test]
    fn who_owns_fields_is_cut_out_and_put_in() {
        let plain = br#"{"metadata":{"annotations":{"a":",\"managedFields\":["},"name":"a"},"spec":{"template":{"metadata":{"name":"x","managedFields":[{}]}}}}"#;
        assert_eq!(managed(&Bytes::from_static(plain)), None);
        assert_eq!(&*without_managed(plain), plain);
        let list = br#"[{"manager":"a}]","fieldsV1":{"f:a":{}}},{"manager":"\"b"}]"#;
        let stored = with_managed(plain.to_vec(), Some(list));
        assert_eq!(managed(&Bytes::from(stored.clone())), Some(Bytes::from_static(list)));
        assert_eq!(&*without_managed(&stored), plain);
        let value: Value = serde_json::from_slice(&stored).expect("JSON");
        assert_eq!(value["metadata"]["managedFields"][1]["manager"], "\"b");
    }

    #[test]
    fn an_answer_can_leave_out_who_owns_fields() {
        let rows: [(Put, Put); 2] =
            [(put, put_without_managed), (put_metadata, put_metadata_without_managed)];
        let plain = br#"{"metadata":{"annotations":{"a":"}"},"name":"a"},"spec":{"b":{}}}"#;
        let stored = with_managed(plain.to_vec(), Some(br#"[{"manager":"a}]"}]"#));
        for (whole, without) in rows {
            let text = |put: Put, stored: &[u8]| {
                let mut answer = BytesMut::new();
                put(&mut answer, Head::Item, stored, Some(Revision::new(3)));
                answer
            };
            assert_eq!(text(without, &stored), text(whole, plain));
            assert_eq!(text(without, plain), text(whole, plain));
        }
    }

    type Put = fn(&mut BytesMut, Head<'_>, &[u8], Option<Revision>);

    #[test]
    fn metadata_with_nothing_in_them_still_get_a_version() {
        let mut answer = BytesMut::new();
        put(&mut answer, Head::Item, br#"{"metadata":{}}"#, Some(Revision::new(3)));
        assert_eq!(answer, r#"{"metadata":{"resourceVersion":"3"}}"#);
    }

    #[test]
    fn an_answer_says_its_type_and_version() {
        let object: Secret =
            serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("a secret");
        let head = type_head("v1", "Secret");
        let mut answer = BytesMut::new();
        put(&mut answer, Head::Typed(&head), &to_stored(&object), Some(Revision::new(3)));
        let value: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(
            value,
            json!({"kind": "Secret", "apiVersion": "v1",
                   "metadata": {"name": "a", "resourceVersion": "3"}})
        );
    }
}
