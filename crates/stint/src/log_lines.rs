//! The log of a container over the API, as whole lines with something in front.

use std::fmt::Write;
use std::io;

use futures_util::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::Client;
use tokio::sync::mpsc::Sender;

use crate::pod_sight::PodSight;
use crate::printable::{MAX_MESSAGE_CHARS, printable};

/// Lines on their way; what waits stays where the logs are kept.
pub(crate) const MAX_WAITING_LINES: usize = 256;

/// The longest line that is held; a longer one is shown in pieces.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Which part of a log is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// Go on as it grows, until the container ends.
    pub(crate) follows: bool,
    /// That of the run before this one.
    pub(crate) is_previous: bool,
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
    let request = Request::get(path(pod, container, part)).body(Vec::new());
    client.request_stream(request.map_err(kube::Error::HttpError)?).await
}

fn path(pod: &PodSight, container: &str, part: Part) -> String {
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
    let counts = [("tailLines", part.tail_lines), ("sinceSeconds", part.since_seconds)];
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

/// Sends the lines of a log, each whole and ended, until the log ends or nobody listens.
///
/// # Errors
///
/// Why the log broke off.
pub(crate) async fn pump<T: From<Vec<u8>>>(
    log: impl AsyncBufRead,
    prefix: &str,
    lines: &Sender<T>,
) -> io::Result<()> {
    let mut log = std::pin::pin!(log);
    let mut line = prefix.as_bytes().to_vec();
    let ended = loop {
        let piece = match log.fill_buf().await {
            Ok([]) => break Ok(()),
            Ok(piece) => piece,
            Err(error) => break Err(error),
        };
        let end = piece.iter().position(|byte| *byte == b'\n');
        let room = MAX_LINE_BYTES.saturating_sub(line.len()).max(1);
        let taken = end.map_or(piece.len(), |end| end + 1).min(room);
        line.extend_from_slice(&piece[..taken]);
        log.consume_unpin(taken);
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && line.len() < MAX_LINE_BYTES {
            continue;
        }
        // Without anything in front there is nobody whose lines could come between.
        if !is_whole && !prefix.is_empty() {
            line.push(b'\n');
        }
        let whole = std::mem::replace(&mut line, prefix.as_bytes().to_vec());
        if lines.send(whole.into()).await.is_err() {
            return Ok(());
        }
    };
    if line.len() > prefix.len() {
        line.push(b'\n');
        let _ = lines.send(line.into()).await;
    }
    ended
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc::channel;

    use super::*;

    fn pumped(log: &[u8], prefix: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (sender, mut received) = channel::<Vec<u8>>(MAX_WAITING_LINES);
            pump(log, prefix, &sender).await.expect("it can be read");
            drop(sender);
            let mut lines = Vec::new();
            while let Some(line) = received.recv().await {
                lines.push(String::from_utf8(line).expect("it is text"));
            }
            lines
        })
    }

    #[test]
    fn lines_are_whole_and_ended() {
        assert_eq!(pumped(b"", "[a] "), Vec::<String>::new());
        assert_eq!(pumped(b"one\n\ntwo", "[a] "), ["[a] one\n", "[a] \n", "[a] two\n"]);
        assert_eq!(pumped(b"one\ntwo", ""), ["one\n", "two\n"]);
    }

    #[test]
    fn a_line_that_is_too_long_comes_in_pieces_that_only_others_could_tear() {
        let long = "x".repeat(2 * MAX_LINE_BYTES) + "\n";
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
            has_timestamps: true,
            tail_lines: Some(0),
            since_seconds: Some(60),
        };
        let all = "&follow=true&previous=true&timestamps=true&tailLines=0&sinceSeconds=60";
        assert_eq!(path(&pod, "main", part), format!("{plain}{all}"));
        assert_eq!(prefix("here/work", &pod, None), "[here/work/3] ");
        assert_eq!(prefix("wo\u{1b}rk", &pod, Some("side")), "[wo\\u{1b}rk/3 side] ");
    }
}
