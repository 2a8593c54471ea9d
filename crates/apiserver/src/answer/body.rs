//! The body of an answer: whole, in pieces that are made as they are read, or without an end.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};
use tokio::task::coop;

/// The body of an answer.
pub struct Body {
    inner: Inner,
    /// What is let go of when the body is read to its end, or nobody wants it any more.
    held: Option<Box<dyn Any + Send>>,
}

enum Inner {
    Whole(Option<Bytes>),
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

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

    /// The same, holding something for as long as it is being read. What is whole already needs
    /// nobody's place.
    pub(crate) fn holding(mut self, held: impl Send + 'static) -> Self {
        if matches!(self.inner, Inner::Pieces(_)) {
            self.held = Some(Box::new(held));
        }
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
            other @ (Inner::Whole(_) | Inner::Stream(_)) => {
                is_large = false;
                other
            }
        };
        (self, is_large)
    }

    fn of(inner: Inner) -> Self {
        Body { inner, held: None }
    }
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
            Inner::Pieces(_) => f.write_str("Pieces"),
            Inner::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.inner {
            Inner::Whole(bytes) => Poll::Ready(bytes.take()),
            // They are always there: without this a long list would let nobody else have a turn.
            Inner::Pieces(pieces) => {
                let turn = ready!(coop::poll_proceed(context));
                turn.made_progress();
                Poll::Ready(pieces.next())
            }
            Inner::Stream(stream) => stream.as_mut().poll_next(context),
        };
        if matches!(next, Poll::Ready(None)) {
            self.held = None;
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
            Inner::Pieces(_) | Inner::Stream(_) => SizeHint::default(),
        }
    }
}
