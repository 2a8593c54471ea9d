//! The feature gates that change what a Job may say and what it defaults to.
//!
//! Kubernetes lets each be turned off and on again on a live system; the names
//! and the effects are those of job-semantics section 8.

use std::fmt;

/// One gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// `backoffLimitPerIndex`, `maxFailedIndexes` and the FailIndex action.
    JobBackoffLimitPerIndex,
    /// `successPolicy`.
    JobSuccessPolicy,
    /// `podReplacementPolicy`.
    JobPodReplacementPolicy,
    /// `managedBy`, and the guards on status updates that came with it.
    JobManagedBy,
}

impl Gate {
    /// Every gate there is.
    pub const ALL: [Gate; 4] = [
        Gate::JobBackoffLimitPerIndex,
        Gate::JobSuccessPolicy,
        Gate::JobPodReplacementPolicy,
        Gate::JobManagedBy,
    ];

    /// The name Kubernetes gives it.
    pub fn name(self) -> &'static str {
        match self {
            Gate::JobBackoffLimitPerIndex => "JobBackoffLimitPerIndex",
            Gate::JobSuccessPolicy => "JobSuccessPolicy",
            Gate::JobPodReplacementPolicy => "JobPodReplacementPolicy",
            Gate::JobManagedBy => "JobManagedBy",
        }
    }
}

/// Which gates are on. All are by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    enabled: [bool; Gate::ALL.len()],
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { enabled: [true; Gate::ALL.len()] }
    }
}

impl FeatureGates {
    /// Whether `gate` is on.
    pub fn enabled(&self, gate: Gate) -> bool {
        self.enabled[gate as usize]
    }

    /// Turns `gate` on or off.
    #[must_use]
    pub fn with(mut self, gate: Gate, enabled: bool) -> Self {
        self.enabled[gate as usize] = enabled;
        self
    }

    /// Reads the form every Kubernetes component takes: `JobSuccessPolicy=false,JobManagedBy=true`.
    pub fn parse(text: &str) -> Result<Self, FeatureGatesError> {
        let mut gates = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| FeatureGatesError::MissingValue(pair.to_owned()))?;
            let name = name.trim();
            let gate = Gate::ALL
                .into_iter()
                .find(|gate| gate.name() == name)
                .ok_or_else(|| FeatureGatesError::UnknownGate(name.to_owned()))?;
            let enabled = match value.trim() {
                "1" | "t" | "T" | "true" | "True" | "TRUE" => true,
                "0" | "f" | "F" | "false" | "False" | "FALSE" => false,
                other => {
                    return Err(FeatureGatesError::NotABool {
                        gate: gate.name(),
                        value: other.to_owned(),
                    });
                }
            };
            gates = gates.with(gate, enabled);
        }
        Ok(gates)
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, gate) in Gate::ALL.into_iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", gate.name(), self.enabled(gate))?;
        }
        Ok(())
    }
}

/// Why a list of feature gates could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureGatesError {
    /// A gate without `=true` or `=false`.
    #[error("feature gate {0:?} needs a value: {0}=true or {0}=false")]
    MissingValue(String),
    /// A gate that does not exist.
    #[error("unknown feature gate {0:?}; known gates: {known}", known = known_gates())]
    UnknownGate(String),
    /// A value that is neither true nor false.
    #[error("feature gate {gate} takes true or false, not {value:?}")]
    NotABool {
        /// The gate.
        gate: &'static str,
        /// What was given.
        value: String,
    },
}

fn known_gates() -> String {
    Gate::ALL.map(Gate::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_is_on_until_it_is_turned_off() {
        let gates = FeatureGates::parse("JobSuccessPolicy=false, JobManagedBy=true,").unwrap();
        assert!(!gates.enabled(Gate::JobSuccessPolicy));
        assert!(gates.enabled(Gate::JobManagedBy));
        assert!(gates.enabled(Gate::JobBackoffLimitPerIndex));
        assert_eq!(FeatureGates::parse(&gates.to_string()), Ok(gates));
    }

    #[test]
    fn a_bad_gate_list_names_what_is_wrong_and_what_is_allowed() {
        let message = |text: &str| FeatureGates::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("JobSuccessPolicy"),
            "feature gate \"JobSuccessPolicy\" needs a value: JobSuccessPolicy=true or JobSuccessPolicy=false"
        );
        assert_eq!(
            message("Nope=true"),
            "unknown feature gate \"Nope\"; known gates: JobBackoffLimitPerIndex, JobSuccessPolicy, JobPodReplacementPolicy, JobManagedBy"
        );
        assert_eq!(
            message("JobManagedBy=yes"),
            "feature gate JobManagedBy takes true or false, not \"yes\""
        );
    }
}
