//! Enums for the closed sets of values that the API writes as strings.

/// Declares an enum whose variants are the API's own words.
macro_rules! closed_set {
    (
        $(#[$about:meta])*
        $name:ident { $( $(#[$variant_about:meta])* $variant:ident ),+ $(,)? }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( $(#[$variant_about])* $variant ),+ }

        impl $name {
            /// Every value, as the API writes it.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($variant) ),+];

            /// The value as the API writes it.
            pub fn as_str(self) -> &'static str {
                match self { $( $name::$variant => stringify!($variant) ),+ }
            }

            /// The value that the API writes as `text`, if it is one.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $( stringify!($variant) => Some($name::$variant), )+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

closed_set! {
    /// How completions are told apart: `spec.completionMode`.
    CompletionMode {
        /// Any Pod counts as well as any other.
        NonIndexed,
        /// Each Pod works on an index of its own.
        Indexed,
    }
}

closed_set! {
    /// When a Pod is replaced: `spec.podReplacementPolicy`.
    PodReplacementPolicy {
        /// As soon as it is being deleted, or has failed.
        TerminatingOrFailed,
        /// Only when it has failed for good.
        Failed,
    }
}

closed_set! {
    /// What a rule of the Pod failure policy does with a failed Pod. In the order in
    /// which Kubernetes lists them.
    PodFailurePolicyAction {
        /// Counts the failure as always.
        Count,
        /// Fails the Pod's index without more retries.
        FailIndex,
        /// Fails the whole Job.
        FailJob,
        /// Replaces the Pod without counting the failure.
        Ignore,
    }
}

closed_set! {
    /// How an exit code is compared with the values of a rule.
    ExitCodeOperator {
        /// It is one of them.
        In,
        /// It is none of them; 0 never matches.
        NotIn,
    }
}

closed_set! {
    /// The status of a condition. In the order in which Kubernetes lists them.
    ConditionStatus {
        /// It does not hold.
        False,
        /// It holds.
        True,
        /// It cannot be told.
        Unknown,
    }
}

closed_set! {
    /// The conditions a Job controller sets on a Job.
    JobConditionType {
        /// The Job is held, with no Pods.
        Suspended,
        /// The Job will complete once its Pods are gone.
        SuccessCriteriaMet,
        /// The Job has completed.
        Complete,
        /// The Job will fail once its Pods are gone.
        FailureTarget,
        /// The Job has failed.
        Failed,
    }
}

closed_set! {
    /// What happens to the containers of a Job's Pod when they fail.
    JobRestartPolicy {
        /// The kubelet restarts them in the same Pod.
        OnFailure,
        /// The Pod fails.
        Never,
    }
}

closed_set! {
    /// How far a Pod has come: `status.phase`.
    PodPhase {
        /// Not all of it has been started.
        Pending,
        /// It runs.
        Running,
        /// All of its containers have ended well.
        Succeeded,
        /// It has ended, and not well.
        Failed,
        /// Its node cannot be asked.
        Unknown,
    }
}

closed_set! {
    /// The quality of service that a Pod is promised: `status.qosClass`.
    PodQosClass {
        /// It gets what it asks for, and nothing more.
        Guaranteed,
        /// It gets what it asks for, and more if there is.
        Burstable,
        /// It gets what is left.
        BestEffort,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_its_value_and_nothing_else_does() {
        for name in PodFailurePolicyAction::NAMES {
            assert_eq!(
                PodFailurePolicyAction::parse(name).map(|action| action.as_str()),
                Some(*name)
            );
        }
        assert_eq!(CompletionMode::parse("indexed"), None);
        assert_eq!(CompletionMode::Indexed.to_string(), "Indexed");
    }
}
