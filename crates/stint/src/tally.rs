//! How much was found.

use std::fmt;
use std::ops::AddAssign;

use stint_api::advice::is_about_this_machine;
use stint_api::diagnostic::{CheckedDocument, DocumentKind, Severity};

/// Counts over some documents or files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Jobs, valid or not.
    pub(crate) jobs: usize,
    /// Errors, a text that is no text among them.
    pub(crate) errors: usize,
    /// Warnings.
    pub(crate) warnings: usize,
    /// The warnings among them that `--deny-warnings` is about: all but those that are
    /// about running the Job on this machine.
    pub(crate) deniable: usize,
    /// Objects of other kinds.
    pub(crate) passed_over: usize,
    /// Inputs that could not be read.
    pub(crate) unreadable: usize,
}

impl Tally {
    /// The counts over one file's documents.
    pub(crate) fn of(documents: &[CheckedDocument]) -> Self {
        let mut tally = Self::default();
        for document in documents {
            match document.kind {
                DocumentKind::Job(_) => tally.jobs += 1,
                DocumentKind::Other => tally.passed_over += 1,
                DocumentKind::Unreadable => {}
            }
            for diagnostic in &document.diagnostics {
                match diagnostic.severity {
                    Severity::Error => tally.errors += 1,
                    Severity::Warning => {
                        tally.warnings += 1;
                        let is_local = diagnostic.name.is_some_and(is_about_this_machine);
                        tally.deniable += usize::from(!is_local);
                    }
                }
            }
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.deniable += other.deniable;
        self.passed_over += other.passed_over;
        self.unreadable += other.unreadable;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checked", counted(self.jobs, "Job"))?;
        let is_clean = self.errors == 0 && self.warnings == 0 && self.unreadable == 0;
        if is_clean && self.jobs > 0 {
            return write!(f, ", no problems");
        }
        for (count, noun) in [(self.errors, "error"), (self.warnings, "warning")] {
            if count > 0 {
                write!(f, ", {}", counted(count, noun))?;
            }
        }
        if self.unreadable > 0 {
            write!(f, ", {} not read", counted(self.unreadable, "input"))?;
        }
        Ok(())
    }
}

/// `1 error`, `2 errors`, `0 errors`. For nouns that take an s.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_words() {
        let tally = |jobs, errors, warnings, unreadable| {
            Tally { jobs, errors, warnings, deniable: warnings, passed_over: 0, unreadable }
                .to_string()
        };
        assert_eq!(tally(0, 0, 0, 0), "0 Jobs checked");
        assert_eq!(tally(1, 0, 0, 0), "1 Job checked, no problems");
        assert_eq!(tally(3, 2, 1, 0), "3 Jobs checked, 2 errors, 1 warning");
        assert_eq!(tally(0, 1, 0, 2), "0 Jobs checked, 1 error, 2 inputs not read");
        assert_eq!(tally(2, 0, 3, 0), "2 Jobs checked, 3 warnings");
    }
}
