//! A kind whose type is not known: what the verbs work with, so that they are written and
//! compiled once.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::LimitRange;
use serde_json::{Map, Value};
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::pod_deletion::Deletion;
use stint_api::quota::Counted;
use stint_store::{Entry, Revision};

use super::{Context, Kind, Manners, Names, Part, PartOf, omitted};
use crate::decode::{self, Decoded, FieldValidation, Format};
use crate::object::{Object, managed, type_head, with_managed};
use crate::schema::{self, Message};
use crate::status::Status;
use crate::table::{Column, RowCondition};

/// A kind as the verbs see it. [`Of`] makes one of a [`Kind`].
#[expect(missing_docs, reason = "each is the method of Kind of that name, for any type")]
pub trait AnyKind: Send + Sync {
    fn names(&self) -> &'static Names;
    fn manners(&self) -> Manners;
    fn stored_under(&self) -> &'static str;
    fn fields(&self) -> &'static [&'static str];
    fn unknown_field(&self, field: &str) -> String;
    fn parts(&self) -> &'static [PartOf];
    fn columns(&self) -> &'static [Column];
    /// How an answer with one object starts.
    fn type_head(&self) -> String;
    /// Reads the body of a request.
    fn decode(
        &self,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded<Box<dyn Object>>, Status>;
    /// Reads a patched object. The patch gave the `repeated` fields more than once.
    fn decode_value(
        &self,
        value: Value,
        repeated: &[String],
        validation: FieldValidation,
    ) -> Result<Decoded<Box<dyn Object>>, Status>;
    fn admit(&self, object: &mut dyn Object) -> Result<(), String>;
    fn apply_limits(&self, object: &mut dyn Object, range: &LimitRange);
    fn check_limits(&self, object: &dyn Object, range: &LimitRange) -> Result<(), String>;
    fn counted(&self, object: &dyn Object, now: Timestamp) -> Option<Counted>;
    fn counted_change(&self, new: &dyn Object, old: &dyn Object, now: Timestamp)
    -> Option<Counted>;
    fn warnings(&self, object: &dyn Object) -> Vec<String>;
    fn change_warnings(&self, new: &dyn Object, old: &dyn Object) -> Vec<String>;
    fn account<'o>(&self, object: &'o dyn Object) -> Option<&'o str>;
    fn resets(&self, part: Part) -> &'static [&'static [&'static str]];
    fn tracked(&self, object: &mut dyn Object, gates: &FeatureGates) -> Vec<u8>;
    fn replaceable(&self) -> &'static [&'static str];
    fn replace(&self, object: &dyn Object, members: &Map<String, Value>)
    -> Option<Box<dyn Object>>;
    fn prepare_for_create(&self, object: &mut dyn Object, context: &Context<'_>);
    fn prepare_for_update(
        &self,
        new: &mut dyn Object,
        old: &dyn Object,
        part: Part,
        context: &Context<'_>,
    );
    fn validate_create(&self, object: &dyn Object, context: &Context<'_>) -> Vec<FieldError>;
    fn validate_update(
        &self,
        new: &dyn Object,
        old: &dyn Object,
        part: Part,
        context: &Context<'_>,
    ) -> Vec<FieldError>;
    fn field<'o>(&self, object: &'o dyn Object, name: &str) -> Cow<'o, str>;
    fn selectable(&self, stored: &[u8], revision: Revision) -> Box<dyn Object>;
    fn begin_deletion(
        &self,
        object: &mut dyn Object,
        requested: Option<i64>,
        now: Timestamp,
    ) -> Option<Deletion>;
    /// What a client is told of an object that breaks the rules.
    fn invalid(&self, name: &str, errors: &[FieldError]) -> Status;
    fn may_delete(&self, object: &dyn Object) -> Result<(), Status>;
    fn is_held(&self, object: &dyn Object) -> bool;
    fn mark_deleted(&self, object: &mut dyn Object);
    fn cells(&self, object: &dyn Object, now: Timestamp) -> Vec<Value>;
    fn row_conditions(&self, object: &dyn Object) -> &'static [RowCondition];
    /// The stored form of an object, without its resourceVersion and with who owns its fields.
    /// An object that could not be read again is refused.
    fn to_stored(&self, object: &dyn Object, managed: Option<&[u8]>) -> Result<Bytes, Status>;
    fn read_stored(&self, stored: &[u8], revision: Revision) -> Box<dyn Object>;
    /// An object from this kind's own form, whatever it is stored as.
    fn read_own(&self, stored: &[u8], revision: Revision) -> Box<dyn Object>;
    /// This kind's own form of what is stored by it or by another.
    fn as_stored(&self, entry: &Entry) -> Bytes {
        self.restored(&entry.value, entry.modified)
    }
    /// The same, of something that is not stored.
    fn restored(&self, stored: &Bytes, revision: Revision) -> Bytes;
}

impl fmt::Debug for dyn AnyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().qualified_plural())
    }
}

/// The kind `K` as any kind.
#[derive(Debug, Default)]
pub struct Of<K>(PhantomData<K>);

impl<K> Of<K> {
    /// The only one.
    pub const THE: Of<K> = Of(PhantomData);
}

impl<K: Kind> AnyKind for Of<K> {
    fn names(&self) -> &'static Names {
        &K::NAMES
    }

    fn manners(&self) -> Manners {
        K::MANNERS
    }

    fn stored_under(&self) -> &'static str {
        K::STORED_UNDER
    }

    fn fields(&self) -> &'static [&'static str] {
        K::FIELDS
    }

    fn unknown_field(&self, field: &str) -> String {
        K::unknown_field(field)
    }

    fn parts(&self) -> &'static [PartOf] {
        K::PARTS
    }

    fn columns(&self) -> &'static [Column] {
        K::columns()
    }

    fn type_head(&self) -> String {
        type_head(&K::NAMES.api_version(), K::NAMES.kind)
    }

    fn decode(
        &self,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Decoded<Box<dyn Object>>, Status> {
        let decoded = decode::body::<K::Object>(body, format, validation, &K::NAMES)?;
        let may_say_nothing = match format {
            Format::Json => omitted::may_be_in(body),
            Format::Yaml => true,
            // Read as Go would write it.
            Format::Protobuf => false,
        };
        Ok(decoded.map(|object| tidy::<K>(object, may_say_nothing)))
    }

    fn decode_value(
        &self,
        value: Value,
        repeated: &[String],
        validation: FieldValidation,
    ) -> Result<Decoded<Box<dyn Object>>, Status> {
        let says_nothing =
            value.as_object().is_some_and(|fields| omitted::is_in(fields, message_of::<K>()));
        let decoded = decode::patched::<K::Object>(value, repeated, validation)?;
        Ok(decoded.map(|object| tidy::<K>(object, says_nothing)))
    }

    fn admit(&self, object: &mut dyn Object) -> Result<(), String> {
        K::admit(object.expect_mut())
    }

    fn apply_limits(&self, object: &mut dyn Object, range: &LimitRange) {
        K::apply_limits(object.expect_mut(), range);
    }

    fn check_limits(&self, object: &dyn Object, range: &LimitRange) -> Result<(), String> {
        K::check_limits(object.expect_ref(), range)
    }

    fn counted(&self, object: &dyn Object, now: Timestamp) -> Option<Counted> {
        K::counted(object.expect_ref(), now)
    }

    fn counted_change(
        &self,
        new: &dyn Object,
        old: &dyn Object,
        now: Timestamp,
    ) -> Option<Counted> {
        K::counted_change(new.expect_ref(), old.expect_ref(), now)
    }

    fn warnings(&self, object: &dyn Object) -> Vec<String> {
        K::warnings(object.expect_ref())
    }

    fn change_warnings(&self, new: &dyn Object, old: &dyn Object) -> Vec<String> {
        K::change_warnings(new.expect_ref(), old.expect_ref())
    }

    fn account<'o>(&self, object: &'o dyn Object) -> Option<&'o str> {
        K::account(object.expect_ref())
    }

    fn resets(&self, part: Part) -> &'static [&'static [&'static str]] {
        K::resets(part)
    }

    fn tracked(&self, object: &mut dyn Object, gates: &FeatureGates) -> Vec<u8> {
        K::tracked(object.expect_mut(), gates)
    }

    fn replaceable(&self) -> &'static [&'static str] {
        K::REPLACEABLE
    }

    fn replace(
        &self,
        object: &dyn Object,
        members: &Map<String, Value>,
    ) -> Option<Box<dyn Object>> {
        let says_nothing = omitted::is_in(members, message_of::<K>());
        let replaced = K::replace(object.expect_ref(), members)?;
        Some(tidy::<K>(replaced, says_nothing))
    }

    fn prepare_for_create(&self, object: &mut dyn Object, context: &Context<'_>) {
        K::prepare_for_create(object.expect_mut(), context);
    }

    fn prepare_for_update(
        &self,
        new: &mut dyn Object,
        old: &dyn Object,
        part: Part,
        context: &Context<'_>,
    ) {
        K::prepare_for_update(new.expect_mut(), old.expect_ref(), part, context);
    }

    fn validate_create(&self, object: &dyn Object, context: &Context<'_>) -> Vec<FieldError> {
        K::validate_create(object.expect_ref(), context)
    }

    fn validate_update(
        &self,
        new: &dyn Object,
        old: &dyn Object,
        part: Part,
        context: &Context<'_>,
    ) -> Vec<FieldError> {
        K::validate_update(new.expect_ref(), old.expect_ref(), part, context)
    }

    fn field<'o>(&self, object: &'o dyn Object, name: &str) -> Cow<'o, str> {
        K::field(object.expect_ref(), name)
    }

    fn selectable(&self, stored: &[u8], revision: Revision) -> Box<dyn Object> {
        Box::new(K::selectable(stored, revision))
    }

    fn begin_deletion(
        &self,
        object: &mut dyn Object,
        requested: Option<i64>,
        now: Timestamp,
    ) -> Option<Deletion> {
        K::begin_deletion(object.expect_mut(), requested, now)
    }

    fn invalid(&self, name: &str, errors: &[FieldError]) -> Status {
        Status::invalid_of(K::JUDGED_IN, K::NAMES.kind, name, errors)
    }

    fn may_delete(&self, object: &dyn Object) -> Result<(), Status> {
        K::may_delete(object.expect_ref()).map_err(|why| {
            Status::forbidden(&K::NAMES, object.meta().name.as_deref().unwrap_or(""), why)
        })
    }

    fn is_held(&self, object: &dyn Object) -> bool {
        K::is_held(object.expect_ref())
    }

    fn mark_deleted(&self, object: &mut dyn Object) {
        K::mark_deleted(object.expect_mut());
    }

    fn cells(&self, object: &dyn Object, now: Timestamp) -> Vec<Value> {
        K::cells(object.expect_ref(), now)
    }

    fn row_conditions(&self, object: &dyn Object) -> &'static [RowCondition] {
        K::row_conditions(object.expect_ref())
    }

    fn to_stored(&self, object: &dyn Object, managed: Option<&[u8]>) -> Result<Bytes, Status> {
        let object = object.expect_ref::<K::Object>();
        let meta = object.metadata();
        let stored = if meta.resource_version.is_none() && meta.managed_fields.is_none() {
            K::to_stored(object)
        } else {
            let mut object = object.clone();
            object.metadata_mut().resource_version = None;
            object.metadata_mut().managed_fields = None;
            K::to_stored(&object)
        };
        if crate::object::may_have_early_times(&stored) && !K::reads_back(&stored) {
            let why = "a time before the year 0 cannot be kept";
            return Err(Status::bad_request(format!("{}: {why}", K::NAMES.kind)));
        }
        Ok(with_managed(stored, managed).into())
    }

    fn read_stored(&self, stored: &[u8], revision: Revision) -> Box<dyn Object> {
        Box::new(K::from_stored(stored, revision))
    }

    fn read_own(&self, stored: &[u8], revision: Revision) -> Box<dyn Object> {
        Box::new(crate::object::from_stored::<K::Object>(stored, revision))
    }

    fn restored(&self, stored: &Bytes, revision: Revision) -> Bytes {
        if K::IS_STORED_AS_IS {
            return stored.clone();
        }
        let mut object = K::from_stored(stored, revision);
        object.metadata_mut().resource_version = None;
        with_managed(crate::object::to_stored(&object), managed(stored).as_deref()).into()
    }
}

/// What a client has sent, without what says nothing, if there may be any of that.
fn tidy<K: Kind>(mut object: K::Object, may_say_nothing: bool) -> Box<dyn Object> {
    if may_say_nothing {
        omitted::drop_from(&mut object, message_of::<K>());
    }
    Box::new(object)
}

fn message_of<K: Kind>() -> Message {
    schema::of_kind(&K::NAMES.api_version(), K::NAMES.kind).expect("every kind has a message")
}
