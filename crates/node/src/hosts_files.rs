//! The hosts files of the Pods that run, kept as services come and go.
//!
//! Every Pod of a namespace has the names of all others, so that a change costs the square of their
//! number. Changes are gathered: the longer it took to write the last ones, the longer.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::calls::{Calls, PodRef};
use crate::feed::{News, feed};
use crate::hosts::hosts_text;
use crate::path;
use crate::services::Services;

/// How long changes are gathered before files are written: a wave of Pods that become ready is
/// one change.
const GATHER: Duration = Duration::from_millis(100);

/// How long they are gathered at most. A cluster's DNS takes as long to forget.
const LONGEST_GATHER: Duration = Duration::from_secs(5);

/// How many times as long as files are written nothing is written: a tenth of a core goes there.
const REST: u32 = 9;

/// The hosts files of the Pods that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostsFiles {
    inner: Arc<Mutex<Inner>>,
    /// Wakes whoever writes.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    services: Services,
    files: HashMap<String, File>,
    /// The namespaces whose files are to be written again.
    changed: BTreeSet<String>,
    /// The slices that a list has not named yet.
    missing: BTreeSet<Key>,
    /// The number of the text that was made last.
    texts: u64,
}

#[derive(Clone, Debug)]
struct File {
    path: PathBuf,
    pod: Arc<Pod>,
    address: Ipv4Addr,
    /// Held while it is written.
    written: Arc<Mutex<Written>>,
}

/// What is in a file: a text's number, and its lines of services. The others never change.
#[derive(Debug, Default)]
struct Written {
    number: u64,
    lines: Option<Arc<str>>,
    /// Whether its Pod has ended: the file may be another's by now.
    is_over: bool,
}

/// What is to be written to a file. It is made with the table at hand and written without it:
/// nobody waits for a disk to say that a Pod is ready.
#[derive(Debug)]
struct Text {
    number: u64,
    file: File,
    lines: Arc<str>,
}

/// A namespace and a name.
type Key = (String, String);

impl HostsFiles {
    /// Writes the file of a Pod, and keeps it from now on.
    pub(crate) fn add(&self, pod: &Arc<Pod>, path: PathBuf, address: Ipv4Addr) -> io::Result<()> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let file = File { path, pod: pod.clone(), address, written: Arc::default() };
        let text = {
            let mut inner = self.lock();
            inner.files.insert(uid, file.clone());
            inner.text(file)
        };
        text.write()
    }

    /// Keeps a Pod's file no longer. Once this returns nothing is written to it, whatever was about to
    /// be; so it may have to wait for a disk.
    pub(crate) fn remove(&self, pod: &PodRef) {
        let file = self.lock().files.remove(&pod.uid);
        if let Some(file) = file {
            file.written.lock().expect("nobody panics with it").is_over = true;
        }
    }

    /// Follows the services of the cluster, without end.
    pub(crate) async fn follow(self, calls: Calls) {
        let slices = feed::<EndpointSlice>(calls.client(), path::ENDPOINT_SLICES.to_owned());
        tokio::join!(self.hear(slices), self.keep());
    }

    async fn hear(&self, mut news: BoxStream<'static, News<EndpointSlice>>) {
        while let Some(heard) = news.next().await {
            self.lock().take(heard);
            self.changed.notify_one();
        }
    }

    /// Writes the files again as their lines change.
    async fn keep(&self) {
        let mut pause = GATHER;
        loop {
            self.changed.notified().await;
            if self.lock().changed.is_empty() {
                continue;
            }
            tokio::time::sleep(pause).await;
            let texts = self.lock().texts();
            let began = Instant::now();
            let writing = tokio::task::spawn_blocking(move || {
                for text in texts {
                    text.write_if_there();
                }
            });
            writing.await.expect("writing does not panic");
            pause = pause_after(began.elapsed());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with it")
    }
}

/// How long changes are gathered when it has taken so long to write the last ones.
fn pause_after(written_for: Duration) -> Duration {
    written_for.saturating_mul(REST).clamp(GATHER, LONGEST_GATHER)
}

impl Inner {
    /// Takes in news of slices.
    fn take(&mut self, news: News<EndpointSlice>) {
        match news {
            News::Began => self.missing = self.services.known(),
            News::Seen(slice) => {
                let key = key(&slice.metadata);
                self.missing.remove(&key);
                if self.services.observe(&slice) {
                    self.changed.insert(key.0);
                }
            }
            News::Gone(slice) => self.forget(key(&slice.metadata)),
            News::Complete => {
                std::mem::take(&mut self.missing).into_iter().for_each(|key| self.forget(key));
            }
        }
    }

    fn forget(&mut self, (namespace, name): Key) {
        if self.services.forget(&namespace, &name) {
            self.changed.insert(namespace);
        }
    }

    /// What is to be written because of the changes so far.
    fn texts(&mut self) -> Vec<Text> {
        let namespaces = std::mem::take(&mut self.changed);
        let is_changed = |file: &&File| {
            namespaces.contains(file.pod.metadata.namespace.as_deref().unwrap_or(""))
        };
        let files: Vec<File> = self.files.values().filter(is_changed).cloned().collect();
        files.into_iter().map(|file| self.text(file)).collect()
    }

    fn text(&mut self, file: File) -> Text {
        self.texts += 1;
        let lines = self.services.lines(file.pod.metadata.namespace.as_deref().unwrap_or(""));
        Text { number: self.texts, file, lines }
    }
}

impl Text {
    /// Writes it, unless its Pod has ended or a later one was written meanwhile, or the same before.
    fn write(self) -> io::Result<()> {
        let Text { number, file, lines } = self;
        let mut written = file.written.lock().expect("nobody panics with it");
        if written.is_over || written.number > number {
            return Ok(());
        }
        if written.lines.as_ref() != Some(&lines) {
            write(&file.path, &hosts_text(&file.pod, file.address, &lines))?;
        }
        *written = Written { number, lines: Some(lines), is_over: false };
        Ok(())
    }

    fn write_if_there(self) {
        let path = self.file.path.clone();
        match self.write() {
            // The Pod has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot write hosts");
            }
            Ok(()) => {}
        }
    }
}

fn key(meta: &ObjectMeta) -> Key {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// Writes a file anew without making another: it may be mounted. Whoever reads it meanwhile finds no
/// rest of the old text behind the new one. Whoever containers run as may read it, whatever this
/// process's umask is.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    let old = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    file.write_all(padded(text, old).as_bytes())?;
    file.set_len(text.len() as u64)
}

/// The text with empty lines up to a length.
fn padded(text: &str, length: usize) -> Cow<'_, str> {
    match length.saturating_sub(text.len()) {
        0 => Cow::Borrowed(text),
        missing => Cow::Owned(text.to_owned() + &"\n".repeat(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_to_write_is_written_less_often() {
        for (written_for, pause) in [(0, 100), (1, 100), (20, 180), (500, 4500), (60_000, 5000)] {
            let (written_for, pause) = (Duration::from_millis(written_for), pause);
            assert_eq!(pause_after(written_for), Duration::from_millis(pause), "{written_for:?}");
        }
    }

    #[test]
    fn a_shorter_text_covers_the_whole_of_the_old_one() {
        assert_eq!(padded("a\n", 5), "a\n\n\n\n");
        assert_eq!(padded("a\n", 2), "a\n");
        assert_eq!(padded("a\n", 0), "a\n");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        for text in ["one\ntwo\n", "one\n", "one\ntwo\nthree\n"] {
            write(&path, text).expect("it can be written");
            assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
        }
    }

    #[test]
    fn a_file_whose_lines_are_the_same_is_not_written_again_nor_one_by_an_older_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        let file = File {
            path: path.clone(),
            pod: Arc::default(),
            address: Ipv4Addr::LOCALHOST,
            written: Arc::default(),
        };
        let put = |number: u64, lines: &str| {
            let text = Text { number, file: file.clone(), lines: lines.into() };
            text.write().expect("it can be written");
            std::fs::read_to_string(&path).expect("it is there")
        };
        assert!(put(1, "a\n").ends_with("\na\n"));
        std::fs::write(&path, "untouched").expect("it is ours");
        assert_eq!(put(2, "a\n"), "untouched");
        assert!(put(4, "b\n").ends_with("\nb\n"));
        assert!(put(3, "a\n").ends_with("\nb\n"), "a later one is there");
        assert!(put(5, "a\n").ends_with("\na\n"));
    }

    #[test]
    fn what_was_to_be_written_for_a_pod_that_has_ended_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hosts");
        let (files, mut pod) = (HostsFiles::default(), Pod::default());
        pod.metadata.uid = Some("u".to_owned());
        let pod = Arc::new(pod);
        files.add(&pod, path.clone(), Ipv4Addr::LOCALHOST).expect("it can be written");
        let late = {
            let mut inner = files.lock();
            let file = inner.files["u"].clone();
            Text { lines: "late\n".into(), ..inner.text(file) }
        };
        files.remove(&PodRef::of(&pod));
        std::fs::write(&path, "another's").expect("it is ours");
        late.write().expect("there is nothing to do");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "another's");
    }
}
