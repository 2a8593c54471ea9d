//! What the inputs lack as a whole, when nothing is wrong with any of them.

use stint_api::advice::NO_JOB;
use stint_api::diagnostic::Severity;

use crate::tally::{Tally, counted};

/// What was looked for and not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// There is no object at all: most likely a tool that should have written some
    /// failed, and a pipeline must not pass because of that.
    Anything,
    /// There are objects, and none of them is a Job: hardly what was meant.
    Jobs,
}

impl Lack {
    /// What these inputs lack; nothing if there is a Job or something worse to tell.
    pub(crate) fn of(total: &Tally, allowed: &[String]) -> Option<Self> {
        if total.jobs > 0 || total.errors > 0 || total.unreadable > 0 {
            None
        } else if total.passed_over == 0 {
            Some(Lack::Anything)
        } else {
            (!allowed.iter().any(|name| name == NO_JOB)).then_some(Lack::Jobs)
        }
    }

    /// How bad that is.
    pub(crate) fn severity(self) -> Severity {
        match self {
            Lack::Anything => Severity::Error,
            Lack::Jobs => Severity::Warning,
        }
    }

    /// The name by which it can be silenced.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Lack::Anything => None,
            Lack::Jobs => Some(NO_JOB),
        }
    }

    /// What to say about inputs of these names.
    pub(crate) fn message(self, names: &[String]) -> String {
        let place = match names {
            [only] => only.clone(),
            several => counted(several.len(), "input"),
        };
        match self {
            Lack::Anything => format!("no manifest found in {place}"),
            Lack::Jobs => format!("no Job found in {place}"),
        }
    }
}
