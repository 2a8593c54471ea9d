//! From text to checked Jobs: decode, default, validate, advise.

use crate::diagnostic::CheckedDocument;
use crate::feature_gates::FeatureGates;

/// Checks every document of a manifest file.
pub fn check(_text: &str, _gates: &FeatureGates) -> Vec<CheckedDocument> {
    Vec::new()
}
