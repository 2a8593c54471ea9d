//! Standard output, whose reader may leave early.

use std::io::{self, Write};

/// Writes a text. Whether anybody is still there to read more.
///
/// # Errors
///
/// What else is wrong with standard output.
pub(crate) fn write(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}
