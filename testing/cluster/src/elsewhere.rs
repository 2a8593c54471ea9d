//! What is given on the embedded server alone, and why.

/// Each test of crates/controller/tests/running with its reason.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "changes: JobSuccessPolicy and JobBackoffLimitPerIndex, turned off and on again",
        "both are locked on in kube-controller-manager since 1.33",
    ),
    ("faults, weather, kill", "the embedded server's calls are lost, late or refused by a seed"),
    ("load: how many calls each Pod costs", "counted where nobody else calls"),
    ("modes: namespaces, calls a second", "flags of stint that the built-in controller has not"),
    (
        "scenarios: delays to the second",
        "exact where time is paused; plays/doubling, plays/apart here",
    ),
];
