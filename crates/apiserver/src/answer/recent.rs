//! Lines of watches that were just made. Most who watch a kind watch all of it, and each change is the same
//! line for all of them: it is made for the first, and the others have the same bytes.

use std::sync::Mutex;

use bytes::Bytes;
use stint_store::Revision;

use super::shown::Managed;
use crate::kind::Names;

/// How many lines are kept, of two forms of each change: whoever follows at all is a few changes behind
/// at most.
const LINES: usize = 128;

/// The longest that is kept: of Pods and Jobs nearly all. All together take 2 MiB at most.
const LINE_BYTES: usize = 16 * 1024;

/// What makes a line what it is, besides how its object is stored: an object has one form at a revision.
#[derive(Clone, Copy)]
pub(super) struct LineOf {
    pub(super) revision: Revision,
    pub(super) names: &'static Names,
    pub(super) event: &'static str,
    pub(super) managed: Managed,
}

impl PartialEq for LineOf {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
            && std::ptr::eq(self.names, other.names)
            && self.event == other.event
            && self.managed == other.managed
    }
}

/// The lines, each in a place that its revision gives it, where it stays until another needs that.
pub(crate) struct RecentLines(Vec<Mutex<Option<(LineOf, Bytes)>>>);

impl RecentLines {
    pub(crate) fn new() -> Self {
        RecentLines((0..LINES).map(|_| Mutex::default()).collect())
    }

    /// A line, as somebody has made it, or as it is made now. Whoever wants the same waits for it.
    pub(super) fn line(&self, of: LineOf, make: impl FnOnce() -> Bytes) -> Bytes {
        // Each of the two forms that an object is asked for in has a place of its own.
        let form = u64::from(of.managed == Managed::LeftOut);
        let place = ((2 * of.revision.get() + form) % LINES as u64) as usize;
        let mut kept = self.0[place].lock().unwrap_or_else(|poisoned| {
            // Whoever panicked has left what was there before.
            poisoned.into_inner()
        });
        if let Some((known, line)) = &*kept
            && *known == of
        {
            return line.clone();
        }
        let line = make();
        if line.len() <= LINE_BYTES {
            *kept = Some((of, line.clone()));
        }
        line
    }
}

impl std::fmt::Debug for RecentLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecentLines")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn names(plural: &str) -> &'static Names {
        kinds::find("", "v1", plural).expect("there is such a kind").names()
    }

    #[test]
    fn a_line_is_made_once_and_never_taken_for_another() {
        let lines = RecentLines::new();
        let of = |revision, plural, event, managed| LineOf {
            revision: Revision::new(revision),
            names: names(plural),
            event,
            managed,
        };
        let all = [
            of(5, "pods", "ADDED", Managed::Shown),
            of(5, "pods", "ADDED", Managed::LeftOut),
            of(5, "pods", "MODIFIED", Managed::Shown),
            of(5, "events", "ADDED", Managed::Shown),
            of(5 + LINES as u64 / 2, "pods", "ADDED", Managed::Shown),
            of(6, "pods", "ADDED", Managed::Shown),
        ];
        for (index, of) in all.into_iter().enumerate() {
            let made = lines.line(of, || Bytes::from(index.to_string()));
            assert_eq!(made, index.to_string());
            let again = lines.line(of, || panic!("it is there"));
            assert_eq!(again.as_ptr(), made.as_ptr(), "the same bytes");
        }
        let long = of(7, "pods", "ADDED", Managed::Shown);
        lines.line(long, || Bytes::from(vec![b'x'; LINE_BYTES + 1]));
        assert_eq!(lines.line(long, || Bytes::from_static(b"anew")), "anew");
    }
}
