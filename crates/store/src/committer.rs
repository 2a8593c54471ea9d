//! The one who writes: it takes what has arrived, decides, commits, publishes and answers, in that
//! order. It knows nothing of how a commit is made durable.
//!
//! With a disk it is a thread of its own, so that what arrives during a sync shares the next one.
//! Without one a commit takes microseconds, and whoever asks carries it out itself: to wake a thread
//! and to be woken by it would take several times as long.

use crate::commit::Commit;
use crate::disk::Disk;
use crate::shared::Shared;
use crate::stage::Stage;
use crate::{Change, Options, Revision, StoreError, Write};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many requests may wait. A commit takes at most [`GROUP_WRITES`] of them, so this is the
/// commit after the one that is under way; whoever comes later waits for a place.
pub(crate) const QUEUE_REQUESTS: usize = GROUP_WRITES;

/// From how many writes on a group takes no more. At 3 KB each that is a batch of 3 MB, which
/// takes about as long to write as a sync takes anyway: larger groups gain nothing.
const GROUP_WRITES: usize = 1024;

/// From how many bytes on a group takes no more, so that large values do not make long commits.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Where an answer goes. Nobody may be waiting any more.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What a transaction came to.
type Changes = Vec<Arc<Change>>;

/// What it can be asked to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// Carry out all of these writes or none.
    Write(Vec<Write>, Answer<Changes>),
    /// Raise the floor to a revision, and answer where it is.
    Compact(Revision, Answer<Revision>),
    /// Finish what came before, and stop.
    Close(Answer<()>),
}

/// What it needs.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    /// `None`: everything is in memory only.
    pub(crate) disk: Option<Disk>,
    pub(crate) options: Options,
    /// The least that the disk has had no room for, while it refuses: on a full disk a small
    /// commit may find a place in what is begun, and that does not mean that there is room.
    pub(crate) refused_bytes: Option<usize>,
}

/// What arrived meanwhile.
#[derive(Debug, Default)]
struct Group {
    writes: Vec<(Vec<Write>, Answer<Changes>)>,
    compactions: Vec<(Revision, Answer<Revision>)>,
    close: Option<Answer<()>>,
}

impl Committer {
    /// Serves requests until the store is closed or nobody can ask any more.
    pub(crate) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut closing = Vec::new();
        while closing.is_empty()
            && let Some(first) = requests.blocking_recv()
        {
            let mut group = Group::gather(first, || requests.try_recv().ok());
            closing.extend(group.close.take());
            self.carry_out(group);
        }
        requests.close();
        // Whoever does not wait for an answer any more does not miss it, here and below.
        while let Some(request) = requests.blocking_recv() {
            match request {
                Request::Write(_, answer) => drop(answer.send(Err(StoreError::Closed))),
                Request::Compact(_, answer) => drop(answer.send(Err(StoreError::Closed))),
                Request::Close(answer) => closing.push(answer),
            }
        }
        self.close(closing);
    }

    /// Carries out one request, and is there no longer if it was the last.
    pub(crate) fn serve(mut self: Box<Self>, request: Request) -> Option<Box<Self>> {
        let mut group = Group::gather(request, || None);
        let closing = group.close.take();
        self.carry_out(group);
        match closing {
            None => Some(self),
            Some(answer) => {
                self.close(vec![answer]);
                None
            }
        }
    }

    /// The folder must be free for others before anyone is told so.
    fn close(mut self, closing: Vec<Answer<()>>) {
        self.disk = None;
        self.shared.close();
        for answer in closing {
            let _ = answer.send(Ok(()));
        }
    }

    /// Decides, commits, publishes, and only then answers. Refusals wait for the commit, too:
    /// they may be due to a write of the same group.
    fn carry_out(&mut self, group: Group) {
        if group.writes.is_empty() && group.compactions.is_empty() {
            return;
        }
        if let Err(error) = self.get_ready() {
            self.note_refusal(&group, &error);
            return group.refuse(error);
        }
        let (commit, answers) = {
            let memory = self.shared.read();
            let mut stage = Stage::new(&memory);
            let answers: Vec<_> =
                group.writes.iter().map(|(writes, _)| stage.add(writes)).collect();
            let newest = memory.revision();
            let asked = group.compactions.iter().map(|(to, _)| *to).filter(|to| *to <= newest);
            let commit = Commit::plan(&memory, stage.into_changes(), asked.max(), &self.options);
            (if commit.is_empty(&memory) { None } else { Some(commit) }, answers)
        };
        if let Some(commit) = commit {
            if let Some(disk) = &mut self.disk
                && let Err(error) = disk.commit(&commit)
            {
                self.note_refusal(&group, &error);
                return group.refuse(error);
            }
            self.note_success(&commit);
            self.shared.publish(&commit);
        }
        self.answer(group, answers);
    }

    /// Gets the disk ready. A commit whose fate was open and is now known to be durable becomes
    /// visible here.
    fn get_ready(&mut self) -> Result<(), StoreError> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        if let Some(commit) = disk.ready()? {
            self.shared.publish(&commit);
        }
        Ok(())
    }

    fn note_refusal(&mut self, group: &Group, error: &StoreError) {
        let writes = group.writes.iter().flat_map(|(writes, _)| writes);
        let largest = writes.map(Write::bytes).max().unwrap_or(0);
        let least = self.refused_bytes.map_or(largest, |known| known.min(largest));
        self.refused_bytes = Some(least);
        self.shared.note(Some(error));
    }

    fn note_success(&mut self, commit: &Commit) {
        if self.refused_bytes.is_some_and(|least| commit.bytes() >= least) {
            self.refused_bytes = None;
            self.shared.note(None);
        }
    }

    fn answer(&self, group: Group, answers: Vec<Result<Changes, StoreError>>) {
        for ((_, to), answer) in group.writes.into_iter().zip(answers) {
            let _ = to.send(answer);
        }
        let (newest, floor) = {
            let memory = self.shared.read();
            (memory.revision(), memory.floor().revision)
        };
        for (asked, to) in group.compactions {
            let future = asked > newest;
            let _ =
                to.send(if future { Err(StoreError::Future { asked, newest }) } else { Ok(floor) });
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Also if it panics, nobody must wait for changes that will not come.
        self.shared.close();
    }
}

impl Group {
    /// The first request and all that have arrived since, up to the limits of a group.
    fn gather(first: Request, mut arrived: impl FnMut() -> Option<Request>) -> Self {
        let mut group = Group::default();
        let (mut writes, mut bytes) = (0, 0);
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Write(asked, answer) => {
                    writes += asked.len();
                    bytes += asked.iter().map(Write::bytes).sum::<usize>();
                    group.writes.push((asked, answer));
                }
                Request::Compact(to, answer) => group.compactions.push((to, answer)),
                Request::Close(answer) => {
                    group.close = Some(answer);
                    break;
                }
            }
            let full = writes >= GROUP_WRITES || bytes >= GROUP_BYTES;
            next = if full { None } else { arrived() };
        }
        group
    }

    fn refuse(self, error: StoreError) {
        for (_, answer) in self.writes {
            let _ = answer.send(Err(error.clone()));
        }
        for (_, answer) in self.compactions {
            let _ = answer.send(Err(error.clone()));
        }
    }
}
