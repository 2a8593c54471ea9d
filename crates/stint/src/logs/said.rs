//! What `stint logs` says, in the order in which it is to be read: lines of logs on standard
//! output, and notes on standard error.

use std::io::{self, BufWriter, Write};

use tokio::sync::mpsc::{Receiver, Sender};

/// Something to be said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A line of a log, with its end.
    Line(Vec<u8>),
    /// A sentence about logs.
    Note(String),
    /// The same about one that could not be read.
    Failure(String),
}

impl From<Vec<u8>> for Said {
    fn from(line: Vec<u8>) -> Self {
        Said::Line(line)
    }
}

/// Says something, if anybody listens.
pub(crate) async fn say(said: &Sender<Said>, what: Said) {
    let _ = said.send(what).await;
}

/// How the saying ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All was said.
    Done,
    /// All was said, and among it that a log could not be read.
    Failed,
    /// Whoever read it has left.
    Left,
}

/// Writes what is said until there is no more, or nobody reads it.
///
/// # Errors
///
/// Why standard output cannot be written.
pub(crate) async fn print(mut said: Receiver<Said>) -> io::Result<Ending> {
    let mut out = BufWriter::new(io::stdout());
    let mut ending = Ending::Done;
    loop {
        let next = match said.try_recv() {
            Ok(next) => Some(next),
            // Nothing more for now: what was said is to be seen.
            Err(_) => {
                if is_closed(out.flush())? {
                    return Ok(Ending::Left);
                }
                said.recv().await
            }
        };
        match next {
            Some(Said::Line(line)) => {
                if is_closed(out.write_all(&line))? {
                    return Ok(Ending::Left);
                }
            }
            Some(Said::Note(text)) => note(&mut out, &text)?,
            Some(Said::Failure(text)) => {
                ending = Ending::Failed;
                note(&mut out, &text)?;
            }
            None => return Ok(ending),
        }
    }
}

/// After the lines that came before it.
fn note(out: &mut impl Write, text: &str) -> io::Result<()> {
    is_closed(out.flush())?;
    // If that fails there is nowhere left to say so.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
    Ok(())
}

fn is_closed(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(error) => Err(error),
    }
}
