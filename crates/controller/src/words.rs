//! Ops, what came of them, and errors, in a few words: for the log.

use std::error::Error;
use std::fmt;

use stint_ledger::op::{Applied, OpKind, Outcome, Refusal};

/// An op in a few words.
pub(crate) struct Wish<'a>(pub(crate) &'a OpKind);

impl fmt::Display for Wish<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OpKind::CreatePod(pod) => {
                write!(f, "create {}", pod.name)?;
                pod.failure_count.map_or(Ok(()), |count| write!(f, " after {count} failures"))
            }
            OpKind::DeletePod(pod) => write!(f, "delete {}", pod.name),
            OpKind::RemoveFinalizer(pod) => write!(f, "remove the finalizer of {}", pod.name),
            OpKind::AdoptPod(pod) => write!(f, "adopt {}", pod.name),
            OpKind::ReleasePod(pod) => write!(f, "release {}", pod.name),
            OpKind::WriteStatus { version, status } => {
                let count = |count: Option<i32>| count.unwrap_or(0);
                let (active, succeeded) = (count(status.active), count(status.succeeded));
                let failed = count(status.failed);
                write!(
                    f,
                    "write the status at {version}: {active} active, {succeeded} succeeded, "
                )?;
                write!(f, "{failed} failed")?;
                let conditions = status.conditions.iter().flatten();
                for condition in conditions.filter(|condition| condition.status == "True") {
                    write!(f, ", {}", condition.type_)?;
                }
                Ok(())
            }
            OpKind::LookUpJob => f.write_str("look up the Job"),
            OpKind::LookUpPod(name) => write!(f, "look up {name}"),
            OpKind::LookUpPods => f.write_str("look up the Job's Pods"),
            OpKind::EmitEvent(event) => write!(f, "event {}", event.reason),
            OpKind::Record(_) => f.write_str("count"),
        }
    }
}

/// An outcome in a few words.
pub(crate) struct Word<'a>(pub(crate) &'a Outcome);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Outcome::Applied(Applied::Pod(pod)) => {
                write!(f, "done: {} at {}", pod.name, pod.version)
            }
            Outcome::Applied(Applied::NoPod) => f.write_str("done: no such Pod"),
            Outcome::Applied(Applied::Pods { pods, version }) => {
                write!(f, "done: {} Pods at {version}", pods.len())
            }
            Outcome::Applied(Applied::Job(job)) => {
                write!(f, "done: the Job at {}", job.resource_version)
            }
            Outcome::Applied(Applied::NoJob) => f.write_str("done: no such Job"),
            Outcome::Refused(Refusal::AlreadyExists) => f.write_str("refused: the name is taken"),
            Outcome::Refused(Refusal::Conflict) => f.write_str("refused: it has changed"),
            Outcome::Refused(Refusal::NotFound) => f.write_str("refused: it is gone"),
            Outcome::Refused(Refusal::TryLater(why)) => write!(f, "not now: {why}"),
            Outcome::Refused(Refusal::Rejected(why) | Refusal::NamespaceGoes(why)) => {
                write!(f, "refused: {why}")
            }
            Outcome::InDoubt => f.write_str("in doubt"),
        }
    }
}

/// An error with what caused it, which is where the reason is.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    // As it prints itself it shows all that it is made of.
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return format!("{} ({})", status.message, status.code);
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        next = cause.source();
    }
    text
}
