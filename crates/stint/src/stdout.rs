//! Standard output that may close early.

use std::io::{self, Write};

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
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
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
