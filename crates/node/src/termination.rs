//! How a run of a container is told: the reason of its end, and its last words.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use crate::life::End;
use crate::runtime::{Ending, Exit};

/// The longest message from a file: as a kubelet.
const MESSAGE_BYTES: u64 = 4096;

/// What is said of a container that nobody saw end.
pub(crate) const UNSEEN_REASON: &str = "ContainerStatusUnknown";
const LOST_MESSAGE: &str =
    "what ran the container on this node has ended, and the container with it";

/// The end of a run.
pub(crate) fn end(exit: Exit, started: Timestamp, run: u32, message: Option<String>) -> End {
    let code = exit.ending.code();
    let reason = match exit.ending {
        _ if exit.out_of_memory => "OOMKilled",
        Ending::Lost => UNSEEN_REASON,
        Ending::Code(0) => "Completed",
        Ending::Code(_) | Ending::Signal(_) => "Error",
    };
    let signal = match exit.ending {
        Ending::Signal(signal) => Some(signal),
        Ending::Code(_) | Ending::Lost => None,
    };
    let is_lost = exit.ending == Ending::Lost;
    End {
        code,
        signal,
        reason: reason.to_owned(),
        message: message.or_else(|| is_lost.then(|| LOST_MESSAGE.to_owned())),
        started_at: Some(started),
        at: exit.at,
        run,
    }
}

/// The last words of a container: what it wrote to its file, else the end of its log if it
/// failed and asks for that. This blocks.
pub(crate) fn message(
    container: &Container,
    file: Option<&Path>,
    has_failed: bool,
    log: impl FnOnce() -> String,
) -> Option<String> {
    let bytes = match file.map(read).transpose() {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(error) => {
            let container = &container.name;
            tracing::debug!(container, %error, "cannot read a termination message");
            Vec::new()
        }
    };
    let mut message = String::from_utf8_lossy(&bytes).into_owned();
    let asks_for_log =
        container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if message.is_empty() && has_failed && asks_for_log {
        message = log();
    }
    (!message.is_empty()).then_some(message)
}

/// Reads a file that a container could do anything with: only if it still is one, and never
/// waiting for anybody.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MESSAGE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_is_told_as_a_kubelet_does() {
        let now = Timestamp::from_second(5).expect("a time");
        let rows = [
            (Ending::Code(0), false, 0, None, "Completed"),
            (Ending::Code(3), false, 3, None, "Error"),
            (Ending::Signal(9), false, 137, Some(9), "Error"),
            (Ending::Signal(9), true, 137, Some(9), "OOMKilled"),
            (Ending::Lost, false, 137, None, "ContainerStatusUnknown"),
        ];
        for (ending, out_of_memory, code, signal, reason) in rows {
            let told = end(Exit { ending, at: now, out_of_memory }, now, 2, None);
            assert_eq!((told.code, told.signal, told.reason.as_str()), (code, signal, reason));
            assert_eq!((told.run, told.at), (2, now));
        }
    }

    #[test]
    fn the_file_comes_before_the_log_and_is_cut() {
        let container = |policy: &str| -> Container {
            serde_json::from_value(json!({"name": "c", "terminationMessagePolicy": policy}))
                .expect("a container")
        };
        let folder = tempfile::tempdir().expect("a folder");
        let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
        std::fs::write(&full, "x".repeat(5000)).expect("written");
        std::fs::write(&empty, "").expect("written");
        let log = || "log".to_owned();
        let fallback = container("FallbackToLogsOnError");
        let read = message(&fallback, Some(&full), true, log).expect("there is one");
        assert_eq!(read.len(), 4096);
        let rows = [
            ("FallbackToLogsOnError", true, Some("log")),
            ("FallbackToLogsOnError", false, None),
            ("File", true, None),
        ];
        for (policy, has_failed, expected) in rows {
            for file in [Some(empty.as_path()), None] {
                let found = message(&container(policy), file, has_failed, log);
                assert_eq!(found.as_deref(), expected);
            }
        }
    }

    /// What a container has put where its message file was.
    #[test]
    fn only_a_file_is_read_and_nobody_waits_for_it() {
        let container: Container =
            serde_json::from_value(json!({"name": "c"})).expect("a container");
        let folder = tempfile::tempdir().expect("a folder");
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        std::fs::write(folder.path().join("secret"), "secret").expect("written");
        std::os::unix::fs::symlink("secret", &link).expect("a link");
        for path in [pipe, link, folder.path().to_path_buf()] {
            let (container, told) = (container.clone(), std::sync::mpsc::channel());
            let asked = path.clone();
            std::thread::spawn(move || {
                told.0.send(message(&container, Some(&asked), true, String::new))
            });
            let patience = std::time::Duration::from_secs(60);
            assert_eq!(told.1.recv_timeout(patience), Ok(None), "{}", path.display());
        }
    }
}
