//! The patches of PATCH requests: a body and its media type in, a patched object out, as
//! kube-apiserver 1.36 does it.
//!
//! Everything here is a function of its arguments. It must not know HTTP, the store, or
//! what makes an object valid: the result is any JSON, and whoever asked for it decodes
//! it as the type of its kind, which is also what drops fields that the type does not
//! have.

pub mod json_patch;
pub mod limits;
pub mod merge_patch;
mod nulls;
pub mod schema;
pub mod strategic;

use serde_json::Value;
use thiserror::Error;

use crate::decode;
use json_patch::{JsonPatch, JsonPatchError};
use limits::{LimitError, MAX_PATCH_BYTES, check_depth};
use merge_patch::{MergePatch, MergePatchError};
use schema::Type;
use strategic::{StrategicError, StrategicPatch};

/// How a patch is written, told by the media type of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// A list of operations, RFC 6902.
    Json,
    /// An object laid over another, RFC 7386.
    Merge,
    /// A merge patch that knows the lists of its kind.
    Strategic,
}

impl PatchType {
    /// Every type, in the order of kube-apiserver's answer to a media type it does not know.
    pub const ALL: [PatchType; 3] = [PatchType::Json, PatchType::Merge, PatchType::Strategic];

    /// The type of a `Content-Type` header; its parameters do not matter.
    pub fn from_content_type(header: &str) -> Option<Self> {
        let media_type = header.split(';').next()?;
        Self::ALL.into_iter().find(|known| known.media_type() == media_type)
    }

    /// What a request has to say to mean this type.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// A patch that was read and is within the limits. It can be applied more than once, as a
/// server must when another write comes between.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(JsonPatch),
    /// RFC 7386.
    Merge(MergePatch),
    /// Kubernetes' own.
    Strategic(StrategicPatch),
}

impl Patch {
    /// Reads the body of a request.
    pub fn read(patch_type: PatchType, body: &[u8]) -> Result<Self, PatchError> {
        if body.len() > MAX_PATCH_BYTES {
            return Err(LimitError::Bytes { bytes: body.len() }.into());
        }
        // The reader has a limit on depth of its own, so that it cannot overflow the stack.
        let value = serde_json::from_slice(body).map_err(PatchError::Read)?;
        Self::from_value(patch_type, value)
    }

    /// Takes a body that was read elsewhere, from protobuf's or YAML's JSON.
    pub fn from_value(patch_type: PatchType, value: Value) -> Result<Self, PatchError> {
        check_depth(&value)?;
        Ok(match patch_type {
            PatchType::Json => Patch::Json(JsonPatch::from_value(value)?),
            PatchType::Merge => Patch::Merge(MergePatch::from_value(value)?),
            PatchType::Strategic => Patch::Strategic(StrategicPatch::from_value(value)?),
        })
    }

    /// Applies the patch to an object. The type is that of the object's kind
    /// ([`schema::of_kind`]), and matters to strategic patches only.
    ///
    /// # Assumptions
    ///
    /// The object is no deeper than [`limits::MAX_DEPTH`].
    ///
    /// # Guarantees
    ///
    /// The result is no deeper than that either.
    pub fn apply(&self, original: Value, of: &Type) -> Result<Value, PatchError> {
        Ok(match self {
            Patch::Json(patch) => patch.apply(original)?,
            Patch::Merge(patch) => patch.apply(original),
            Patch::Strategic(patch) => patch.apply(original, of)?,
        })
    }
}

impl Patch {
    /// The members of an object that the patch is about, if that can be told: it leaves all others alone
    /// and does not look at them.
    pub fn members(&self) -> Option<impl Iterator<Item = &str> + Clone> {
        let fields = match self {
            Patch::Json(_) => return None,
            Patch::Merge(patch) => patch.fields(),
            Patch::Strategic(patch) => patch.fields(),
        };
        // A directive may be about any of them.
        let has_directive = fields.keys().any(|name| name.starts_with('$'));
        (!has_directive).then(|| fields.keys().map(String::as_str))
    }
}

/// Why there is no patched object.
#[derive(Debug, Error)]
pub enum PatchError {
    /// The body is not JSON.
    #[error("error decoding patch: {}", decode::json_words(.0))]
    Read(#[source] serde_json::Error),
    /// The body is beyond a limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A JSON patch is not one, or does not apply.
    #[error(transparent)]
    Json(#[from] JsonPatchError),
    /// A merge patch is not one.
    #[error(transparent)]
    Merge(#[from] MergePatchError),
    /// A strategic merge patch is not one, or does not apply.
    #[error(transparent)]
    Strategic(#[from] StrategicError),
}

impl PatchError {
    /// The HTTP status of the answer: 400, 413 or 422.
    pub fn status(&self) -> u16 {
        match self {
            PatchError::Read(_) | PatchError::Merge(_) => 400,
            PatchError::Limit(error) => error.status(),
            PatchError::Json(error) => error.status(),
            PatchError::Strategic(error) => error.status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_known_with_and_without_parameters() {
        for known in PatchType::ALL {
            assert_eq!(PatchType::from_content_type(known.media_type()), Some(known));
            let with_charset = format!("{};charset=UTF-8", known.media_type());
            assert_eq!(PatchType::from_content_type(&with_charset), Some(known));
        }
        assert_eq!(PatchType::from_content_type("application/json"), None);
        assert_eq!(PatchType::from_content_type(""), None);
    }

    #[test]
    fn a_body_that_is_no_json_is_a_bad_request() {
        for known in PatchType::ALL {
            let error = Patch::read(known, b"{").expect_err("half an object");
            assert_eq!(error.status(), 400, "{error}");
        }
    }
}
