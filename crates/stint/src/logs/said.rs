//! What `stint logs` says, in the order in which it is to be read: lines of logs on standard
//! output, and notes on standard error.

use std::io::{self, BufWriter, Write};
use std::time::Instant;

use tokio::sync::mpsc::Sender;

use crate::log_lines::Line;
use crate::spool::{Spool, Spooled, told_lost};
use crate::stdout::has_left;

/// How much is said at once, between which standard output may be flushed.
const BATCH: usize = 256;

/// What packed things begin with.
const LINE: u8 = 0;
const NOTE: u8 = 1;
const FAILURE: u8 = 2;

/// Something to be said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A line of a log.
    Line(Line),
    /// A sentence about logs.
    Note(String),
    /// The same about one that could not be read.
    Failure(String),
}

impl From<Line> for Said {
    fn from(line: Line) -> Self {
        Said::Line(line)
    }
}

impl Spooled for Said {
    fn pack(&self, bytes: &mut Vec<u8>) {
        let (kind, text) = match self {
            Said::Line(line) => {
                bytes.push(LINE);
                return line.pack(bytes);
            }
            Said::Note(text) => (NOTE, text),
            Said::Failure(text) => (FAILURE, text),
        };
        bytes.push(kind);
        bytes.extend_from_slice(text.as_bytes());
    }

    fn unpack(bytes: &[u8]) -> Self {
        let (kind, rest) = bytes.split_first().expect("it was packed");
        let text = || String::from_utf8_lossy(rest).into_owned();
        match *kind {
            LINE => Said::Line(Line::unpack(rest)),
            NOTE => Said::Note(text()),
            _ => Said::Failure(text()),
        }
    }

    fn source(&self) -> Option<(&str, u64)> {
        match self {
            Said::Line(line) => line.source(),
            Said::Note(_) | Said::Failure(_) => None,
        }
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

/// Writes what is said until there is no more, or nobody reads it. Whoever reads it may be slow:
/// this is for a thread of its own.
///
/// # Errors
///
/// Why standard output cannot be written.
pub(crate) fn print(said: &Spool<Said>) -> io::Result<Ending> {
    let mut out = BufWriter::new(io::stdout());
    let mut ending = Ending::Done;
    loop {
        let next = said.take(BATCH);
        if tell_lost(said) {
            ending = Ending::Failed;
        }
        if next.is_empty() {
            return Ok(ending);
        }
        for next in next {
            match next {
                Said::Line(line) => {
                    if is_closed(out.write_all(&line.text))? {
                        return Ok(Ending::Left);
                    }
                }
                Said::Note(text) => note(&mut out, &text)?,
                Said::Failure(text) => {
                    ending = Ending::Failed;
                    note(&mut out, &text)?;
                }
            }
        }
        // Nothing more for now: what was said is to be seen.
        if !said.has_more() && is_closed(out.flush())? {
            return Ok(Ending::Left);
        }
    }
}

/// Says what was left out, if anything was.
fn tell_lost(said: &Spool<Said>) -> bool {
    let lost = said.take_lost(Instant::now());
    for (whose, bytes) in &lost {
        // If that fails there is nowhere left to say so.
        let _ = io::stderr().lock().write_all(told_lost(whose, *bytes).as_bytes());
    }
    !lost.is_empty()
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
        Err(error) if has_left(&error) => Ok(true),
        Err(error) => Err(error),
    }
}
