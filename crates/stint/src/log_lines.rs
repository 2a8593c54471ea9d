//! The log of a container over the API, as whole lines with something in front. This is the one
//! place where logs are asked for and cut into lines.

use std::fmt::Write;
use std::io;

use futures_util::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use tokio::sync::mpsc::Sender;

use crate::pod_sight::PodSight;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::spool::{Patience, Spooled};

/// Lines on their way from those who read logs to whoever keeps what waits.
pub(crate) const MAX_WAITING_LINES: usize = 256;

/// The longest line that is held; a longer one is shown in pieces.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A line with its end, and how much of it says whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    prefix_bytes: usize,
    /// Whether it is not to be left out.
    pub(crate) is_needed: bool,
    pub(crate) text: Vec<u8>,
}

impl Line {
    /// A text with something in front, which may be nothing.
    pub(crate) fn new(prefix: &str, text: &[u8]) -> Self {
        let text = [prefix.as_bytes(), text].concat();
        Line { prefix_bytes: prefix.len(), is_needed: false, text }
    }
}

impl Spooled for Line {
    fn pack(&self, bytes: &mut Vec<u8>) {
        // What stands in front is short: see `prefix`.
        bytes.extend_from_slice(&(self.prefix_bytes as u32).to_le_bytes());
        bytes.extend_from_slice(&self.text);
    }

    fn unpack(bytes: &[u8]) -> Self {
        let (prefix, text) = bytes.split_at(4);
        let prefix_bytes = u32::from_le_bytes(prefix.try_into().expect("there are four"));
        Line { prefix_bytes: prefix_bytes as usize, is_needed: false, text: text.to_vec() }
    }

    fn source(&self) -> Option<(&str, u64)> {
        if self.is_needed {
            return None;
        }
        let prefix = std::str::from_utf8(&self.text[..self.prefix_bytes]).unwrap_or_default();
        Some((prefix.trim_end(), (self.text.len() - self.prefix_bytes) as u64))
    }
}

/// Which part of a log is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Go on as it grows, until the container ends.
    pub(crate) follows: bool,
    /// That of the run before this one.
    pub(crate) is_previous: bool,
    /// That of this run, the first of which is 0. Only stint gives it out.
    pub(crate) run: Option<u32>,
    pub(crate) has_timestamps: bool,
    /// The last so many lines.
    pub(crate) tail_lines: Option<u64>,
    /// What was written in the last so many seconds.
    pub(crate) since_seconds: Option<u64>,
}

/// Opens the log of a container.
pub(crate) async fn open(
    client: &Client,
    pod: &PodSight,
    container: &str,
    part: Part,
) -> Result<impl AsyncBufRead + use<>, kube::Error> {
    open_path(client, &path(pod, container, part)).await
}

/// The same by its path.
pub(crate) async fn open_path(
    client: &Client,
    path: &str,
) -> Result<impl AsyncBufRead + use<>, kube::Error> {
    let request = Request::get(path).body(Vec::new());
    client.request_stream(request.map_err(kube::Error::HttpError)?).await
}

/// Where the log of a container is.
pub(crate) fn path(pod: &PodSight, container: &str, part: Part) -> String {
    let (namespace, name) = (pod.namespace(), pod.name());
    let mut path = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?container={container}");
    let flags = [
        ("follow", part.follows),
        ("previous", part.is_previous),
        ("timestamps", part.has_timestamps),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        write!(path, "&{name}=true").expect("writing into a string cannot fail");
    }
    let run = part.run.map(u64::from);
    let counts =
        [("run", run), ("tailLines", part.tail_lines), ("sinceSeconds", part.since_seconds)];
    for (name, count) in counts {
        if let Some(count) = count {
            write!(path, "&{name}={count}").expect("as above");
        }
    }
    path
}

/// What stands in front of the lines of a Pod: its Job and index, or its name where there are no
/// indexes, and the container if there are several.
pub(crate) fn prefix(title: &str, pod: &PodSight, container: Option<&str>) -> String {
    let what = match pod.index() {
        Some(index) => format!("{title}/{index}"),
        None => pod.name().to_owned(),
    };
    let container = container.map(|name| format!(" {name}")).unwrap_or_default();
    format!("[{}] ", printable(&(what + &container), MAX_MESSAGE_CHARS))
}

/// Reads the next line of a log with its end, or a piece of one that is too long, or what stands
/// at the end of the log without one. Whether there was anything.
///
/// # Errors
///
/// Why the log broke off; what was read until then is in `line`.
pub(crate) async fn read_line(
    log: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    while line.last() != Some(&b'\n') && line.len() < MAX_LINE_BYTES {
        let piece = log.fill_buf().await?;
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let room = MAX_LINE_BYTES - line.len();
        let taken = end.map_or(piece.len(), |end| end + 1).min(room);
        line.extend_from_slice(&piece[..taken]);
        log.consume_unpin(taken);
    }
    Ok(!line.is_empty())
}

/// Sends the lines of a log, each whole and ended, until the log ends or nobody listens.
///
/// # Errors
///
/// Why the log broke off.
pub(crate) async fn pump<T: From<Line>>(
    log: impl AsyncBufRead,
    prefix: &str,
    lines: &Sender<T>,
    mut patience: Patience,
) -> io::Result<()> {
    let mut log = std::pin::pin!(log);
    let mut text = Vec::new();
    loop {
        let read = read_line(&mut log, &mut text).await;
        if text.is_empty() {
            return read.map(drop);
        }
        let is_piece = text.len() >= MAX_LINE_BYTES && read.is_ok();
        // Without anything in front there is nobody whose lines could come between.
        if text.last() != Some(&b'\n') && !(is_piece && prefix.is_empty()) {
            text.push(b'\n');
        }
        let mut line = Line::new(prefix, &text);
        line.is_needed = patience.wait().await;
        if lines.send(line.into()).await.is_err() {
            return Ok(());
        }
        read?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use std::sync::Arc;

    use tokio::sync::mpsc::channel;
    use tokio::sync::watch;

    use super::*;

    fn pumped(log: &[u8], prefix: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (sender, mut received) = channel::<Line>(MAX_WAITING_LINES);
            let is_full = watch::Sender::new(false).subscribe();
            let patience = Patience { is_full, is_over: Arc::default() };
            pump(log, prefix, &sender, patience).await.expect("it can be read");
            drop(sender);
            let mut lines = Vec::new();
            while let Some(line) = received.recv().await {
                assert_eq!(Line::unpack(&packed(&line)), line);
                lines.push(String::from_utf8(line.text).expect("it is text"));
            }
            lines
        })
    }

    fn packed(line: &Line) -> Vec<u8> {
        let mut bytes = Vec::new();
        line.pack(&mut bytes);
        bytes
    }

    #[test]
    fn it_is_known_whose_a_line_is() {
        assert_eq!(Line::new("[a/1] ", b"text\n").source(), Some(("[a/1]", 5)));
        assert_eq!(Line::new("", b"[b] text\n").source(), Some(("", 9)));
    }

    #[test]
    fn lines_are_whole_and_ended() {
        assert_eq!(pumped(b"", "[a] "), Vec::<String>::new());
        assert_eq!(pumped(b"one\n\ntwo", "[a] "), ["[a] one\n", "[a] \n", "[a] two\n"]);
        assert_eq!(pumped(b"one\ntwo", ""), ["one\n", "two\n"]);
    }

    #[test]
    fn a_line_that_is_too_long_comes_in_pieces_that_only_others_could_tear() {
        let long = "x".repeat(2 * MAX_LINE_BYTES + 1) + "\n";
        let pieces = pumped(long.as_bytes(), "[a] ");
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|piece| piece.starts_with("[a] x") && piece.ends_with("x\n")));
        assert_eq!(pumped(long.as_bytes(), "").concat(), long);
    }

    #[test]
    fn only_what_is_wanted_is_asked_for() {
        let pod = json!({"metadata": {"name": "work-3", "namespace": "here",
            "annotations": {"batch.kubernetes.io/job-completion-index": "3"}}});
        let pod: PodSight = serde_json::from_value(pod).expect("it is a Pod");
        let plain = "/api/v1/namespaces/here/pods/work-3/log?container=main";
        assert_eq!(path(&pod, "main", Part::default()), plain);
        let part = Part {
            follows: true,
            is_previous: true,
            run: Some(2),
            has_timestamps: true,
            tail_lines: Some(0),
            since_seconds: Some(60),
        };
        let all = "&follow=true&previous=true&timestamps=true&run=2&tailLines=0&sinceSeconds=60";
        assert_eq!(path(&pod, "main", part), format!("{plain}{all}"));
        assert_eq!(prefix("here/work", &pod, None), "[here/work/3] ");
        assert_eq!(prefix("wo\u{1b}rk", &pod, Some("side")), "[wo\\u{1b}rk/3 side] ");
    }
}
