//! What is given on the embedded server alone, and why.

/// Each of these with its reason.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "KEP-2307: tracking with finalizers enabled, disabled and enabled again, and finalizers that \
         are removed while the gate is off",
        "JobTrackingWithFinalizers is locked on since 1.26, and no gate of the versions that are \
         tried: neither controller can be started without it",
    ),
    (
        "changes: JobSuccessPolicy and JobBackoffLimitPerIndex, turned off and on again",
        "both are locked on in kube-controller-manager since 1.33; gates/ has what stint does here",
    ),
    ("faults, weather, kill", "the embedded server's calls are lost, late or refused by a seed"),
    ("load: how many calls each Pod costs", "counted where nobody else calls"),
    ("modes: namespaces, calls a second", "flags of stint that the built-in controller has not"),
    (
        "scenarios: delays to the second",
        "exact where time is paused; plays/doubling, plays/apart here",
    ),
];
