//! Scenarios that fail now and then for a reason that is known, and is to be mended.

/// Each with what is wrong.
pub const KNOWN: &[(&str, &str)] = &[(
    "coexistence/selected-orphan",
    "stint leaves its finalizer on a Pod that lost its Job and was adopted by a Job of the built-in \
     controller before stint had taken the finalizer off",
)];

/// What is wrong with a scenario.
pub fn reason(scenario: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == scenario).map(|(_, reason)| *reason)
}
