//! The body of an answer: whole, in pieces that are made as they are read, or without an end.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use tokio::task::coop;

/// How large a piece is: large enough for the cost of a frame not to matter.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The body of an answer.
pub struct Body {
    inner: Inner,
    /// What is let go of when the body is read to its end, or nobody wants it any more.
    _held: Option<Box<dyn Any + Send>>,
}

enum Inner {
    Whole(Option<Bytes>),
    Pieces(Pieces),
    Lent {
        lent: Lent,
        lease: Box<dyn Lease>,
        /// How many bytes are left, if that is known.
        left: Option<u64>,
    },
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

type Pieces = Box<dyn Iterator<Item = Bytes> + Send>;

/// Pieces that can be taken back while nobody reads them.
#[derive(Clone)]
pub(crate) struct Lent(Arc<Mutex<Option<Pieces>>>);

impl Lent {
    /// Drops what was not read: whoever goes on reading learns that there is no more.
    pub(crate) fn take_back(&self) {
        let pieces = self.pieces().take();
        drop(pieces);
    }

    fn next(&self) -> Result<Option<Bytes>, TakenBack> {
        self.pieces().as_mut().map(Iterator::next).ok_or(TakenBack)
    }

    /// They may have panicked. Whoever reads them has learnt that; nobody else reads them.
    fn pieces(&self) -> MutexGuard<'_, Option<Pieces>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}

/// What such pieces are lent by; dropped when they have been read.
pub(crate) trait Lease: Send + Sync {
    /// Some were read.
    fn renew(&self);
}

/// An answer was not read for so long that there was no place for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was not read in time")]
pub struct TakenBack;

impl Body {
    /// Nothing.
    pub fn empty() -> Self {
        Body::of(Inner::Whole(None))
    }

    /// Pieces that are made one by one, as the client reads them.
    pub fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Body::of(Inner::Pieces(Box::new(pieces)))
    }

    /// Pieces that come with time.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Body::of(Inner::Stream(Box::pin(stream)))
    }

    /// The same, lent for as long as it is being read, and holding something meanwhile. What is
    /// empty, or has no end, is not.
    pub(crate) fn lent(
        self,
        lend: impl FnOnce(Lent) -> Box<dyn Lease>,
        held: impl Send + 'static,
    ) -> Self {
        let (pieces, left): (Pieces, _) = match self.inner {
            Inner::Pieces(pieces) => (pieces, None),
            Inner::Whole(Some(whole)) => {
                let left = whole.len() as u64;
                (Box::new(cut(whole)), Some(left))
            }
            Inner::Whole(None) | Inner::Lent { .. } | Inner::Stream(_) => return self,
        };
        let lent = Lent(Arc::new(Mutex::new(Some(pieces))));
        let inner = Inner::Lent { lent: lent.clone(), lease: lend(lent), left };
        Body { inner, _held: Some(Box::new((self._held, held))) }
    }

    /// Whether it goes on until somebody ends it.
    pub(crate) fn has_no_end(&self) -> bool {
        matches!(self.inner, Inner::Stream(_))
    }

    /// The same, holding something until it has ended or nobody wants it any more.
    pub(crate) fn holding(mut self, held: impl Send + 'static) -> Self {
        self._held = Some(Box::new((self._held.take(), held)));
        self
    }

    /// The same in another coding, if it is larger than so many bytes; and whether it is. What has
    /// no end is left as it is. Of pieces only so many are made as it takes to know.
    pub(super) fn compressed_above<P>(
        mut self,
        bytes: usize,
        coding: impl FnOnce(Box<dyn Iterator<Item = Bytes> + Send>) -> P,
    ) -> (Self, bool)
    where
        P: Iterator<Item = Bytes> + Send + 'static,
    {
        let is_large;
        self.inner = match self.inner {
            Inner::Whole(Some(whole)) if whole.len() > bytes => {
                is_large = true;
                Inner::Pieces(Box::new(coding(Box::new(std::iter::once(whole)))))
            }
            Inner::Pieces(mut pieces) => {
                let mut first = Vec::new();
                let mut made = 0;
                while made <= bytes {
                    let Some(piece) = pieces.next() else { break };
                    made += piece.len();
                    first.push(piece);
                }
                is_large = made > bytes;
                let all = Box::new(first.into_iter().chain(pieces));
                Inner::Pieces(if is_large { Box::new(coding(all)) } else { all })
            }
            other @ (Inner::Whole(_) | Inner::Lent { .. } | Inner::Stream(_)) => {
                is_large = false;
                other
            }
        };
        (self, is_large)
    }

    fn of(inner: Inner) -> Self {
        Body { inner, _held: None }
    }
}

/// What is whole, in pieces. Those of something large are copies: what was sent of it must not keep
/// the rest in memory.
fn cut(mut whole: Bytes) -> impl Iterator<Item = Bytes> + Send {
    let is_large = whole.len() > PIECE_BYTES;
    std::iter::from_fn(move || {
        let piece = whole.split_to(whole.len().min(PIECE_BYTES));
        let owned = || if is_large { Bytes::copy_from_slice(&piece) } else { piece.clone() };
        (!piece.is_empty()).then(owned)
    })
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body::of(Inner::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Inner::Pieces(_) | Inner::Lent { .. } => f.write_str("Pieces"),
            Inner::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = TakenBack;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TakenBack>>> {
        let mut is_last = false;
        let next = match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take()),
            // They are always there: without this a long list would let nobody else have a turn.
            Inner::Pieces(pieces) => {
                let turn = ready!(coop::poll_proceed(context));
                turn.made_progress();
                Poll::Ready(pieces.next())
            }
            Inner::Lent { lent, lease, left } => {
                let turn = ready!(coop::poll_proceed(context));
                turn.made_progress();
                lease.renew();
                match lent.next() {
                    Ok(next) => {
                        if let (Some(left), Some(next)) = (left.as_mut(), &next) {
                            *left -= next.len() as u64;
                            is_last = *left == 0;
                        }
                        Poll::Ready(next)
                    }
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            Inner::Stream(stream) => stream.as_mut().poll_next(context),
        };
        if is_last || matches!(next, Poll::Ready(None)) {
            *self = Body::empty();
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.inner, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Inner::Lent { left: Some(left), .. } => SizeHint::with_exact(*left),
            Inner::Pieces(_) | Inner::Lent { left: None, .. } | Inner::Stream(_) => {
                SizeHint::default()
            }
        }
    }
}
