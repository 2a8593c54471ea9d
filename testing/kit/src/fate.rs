//! What becomes of Pods.

use std::time::Duration;

/// What becomes of a Pod.
#[derive(Clone, Debug)]
pub struct Fate {
    /// How long it runs.
    pub after: Span,
    /// How it ends.
    pub end: End,
    /// How long it takes to end when it is deleted; none: it is never bound to a node, and goes
    /// at once.
    pub farewell: Option<Span>,
}

/// How long something takes.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// So long.
    Exactly(Duration),
    /// Longer than everything else that happens to its Job at that time; how long that is, is the
    /// stage's choice.
    Long,
}

/// How a Pod ends.
#[derive(Clone, Debug)]
pub enum End {
    /// With exit code 0.
    Succeeds,
    /// With this exit code.
    Fails(i32),
    /// With this condition and exit code.
    FailsBy(&'static str, i32),
    /// Not by itself.
    Runs,
    /// Not by itself either; its containers have been restarted so often.
    Restarts(i32),
}

impl Fate {
    /// Ends well, at once.
    pub fn succeeds() -> Self {
        Fate { after: Span::Exactly(Duration::ZERO), end: End::Succeeds, farewell: None }
    }

    /// Ends with this exit code, at once.
    pub fn fails(code: i32) -> Self {
        Fate { end: End::Fails(code), ..Fate::succeeds() }
    }

    /// Does not end by itself.
    pub fn runs() -> Self {
        Fate { end: End::Runs, ..Fate::succeeds() }
    }

    /// The same after so many seconds.
    pub fn after(self, seconds: u64) -> Self {
        Fate { after: Span::Exactly(Duration::from_secs(seconds)), ..self }
    }

    /// The same after everything else.
    pub fn late(self) -> Self {
        Fate { after: Span::Long, ..self }
    }

    /// Takes so many seconds to end when it is deleted.
    pub fn farewell(self, seconds: u64) -> Self {
        Fate { farewell: Some(Span::Exactly(Duration::from_secs(seconds))), ..self }
    }

    /// Outlasts everything else when it is deleted.
    pub fn late_farewell(self) -> Self {
        Fate { farewell: Some(Span::Long), ..self }
    }

    /// Whether it ends the moment it is there.
    pub(crate) fn is_instant(&self) -> bool {
        matches!(self.after, Span::Exactly(after) if after.is_zero())
            && !matches!(self.end, End::Runs | End::Restarts(_))
    }
}

/// Who a Pod is, to say what becomes of it.
#[derive(Clone, Debug)]
pub struct Who {
    /// The name of its Job.
    pub job: String,
    /// Its completion index.
    pub index: Option<u32>,
    /// The how-many-th Pod of its Job and index it is, from 0.
    pub attempt: usize,
    /// How often its index has failed before, by its annotation; 0 where that is not counted.
    pub failures: u32,
}

/// A Job and an index of it.
pub(crate) type Place = (String, Option<u32>);
