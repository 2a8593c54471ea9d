//! Standard output that may close early.

use std::io::{self, Write};

/// The exit code when whoever read standard output has left before all was written: what a shell
/// shows of a program that SIGPIPE has ended, as that ends most programs then.
pub(crate) const EXIT_LEFT: u8 = 141;

/// Writes a text, all of it.
///
/// # Errors
///
/// Why it is not written; [`has_left`] if nobody reads it any more.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Whether a text is not written because whoever read it has left, as `head` does. Nobody needs
/// to be told.
pub(crate) fn has_left(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// A writer whose reader may leave, as `head` does. What is written after that
/// goes nowhere and is no error: nobody wants it. Other errors stay errors.
#[derive(Debug)]
pub(crate) struct Closable<W> {
    inner: Option<W>,
}

impl<W: Write> Closable<W> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner: Some(inner) }
    }

    fn or_closed<T>(&mut self, result: io::Result<T>, if_closed: T) -> io::Result<T> {
        match result {
            Err(error) if has_left(&error) => {
                self.inner = None;
                Ok(if_closed)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Closable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(inner) = &mut self.inner else {
            return Ok(bytes.len());
        };
        let result = inner.write(bytes);
        self.or_closed(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(inner) = &mut self.inner else {
            return Ok(());
        };
        let result = inner.flush();
        self.or_closed(result, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error_but_a_full_disk_is() {
        let mut left = Closable::new(Failing(io::ErrorKind::BrokenPipe));
        assert!(left.write_all(b"x").is_ok());
        assert!(left.flush().is_ok());
        let mut full = Closable::new(Failing(io::ErrorKind::StorageFull));
        assert!(full.write_all(b"x").is_err());
        assert!(full.flush().is_err());
    }
}
