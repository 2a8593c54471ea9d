//! The hosts files of the Pods that run, kept as services come and go.

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
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::Notify;

use crate::calls::{Calls, PodRef};
use crate::feed::{News, feed};
use crate::hosts::hosts_text;
use crate::path;
use crate::services::{Member, Services};

/// How long changes are gathered before files are written: a wave of Pods that become ready is
/// one change.
const GATHER: Duration = Duration::from_millis(100);

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
    /// The number of the text that was made last.
    texts: u64,
}

#[derive(Clone, Debug)]
struct File {
    path: PathBuf,
    pod: Arc<Pod>,
    address: Ipv4Addr,
    /// The number of the text that is in it. Held while it is written.
    written: Arc<Mutex<u64>>,
}

/// What is to be written to a file. It is made with the table at hand and written without it:
/// nobody waits for a disk to say that a Pod is ready.
#[derive(Debug)]
struct Text {
    number: u64,
    file: File,
    text: String,
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

    /// A Pod runs, and is ready or not.
    pub(crate) fn set_ready(&self, pod: &Pod, address: Ipv4Addr, is_ready: bool) {
        let meta = &pod.metadata;
        let (namespace, uid) = (meta.namespace.as_deref(), meta.uid.as_deref());
        let member = Member::of(pod, address, is_ready);
        self.set_member(namespace.unwrap_or(""), uid.unwrap_or(""), Some(member));
    }

    /// Keeps a Pod's file no longer, nor its names.
    pub(crate) fn remove(&self, pod: &PodRef) {
        self.lock().files.remove(&pod.uid);
        self.set_member(&pod.namespace, &pod.uid, None);
    }

    fn set_member(&self, namespace: &str, uid: &str, member: Option<Member>) {
        let mut inner = self.lock();
        if inner.services.set_member(namespace, uid, member) {
            inner.changed.insert(namespace.to_owned());
            self.changed.notify_one();
        }
    }

    /// Follows the services of the cluster, without end.
    pub(crate) async fn follow(self, calls: Calls) {
        let slices = feed::<EndpointSlice>(calls.client(), path::ENDPOINT_SLICES.to_owned());
        let services = feed::<Service>(calls.client(), path::SERVICES.to_owned());
        tokio::join!(self.follow_slices(slices), self.follow_services(services), self.keep());
    }

    async fn follow_slices(&self, mut news: BoxStream<'static, News<EndpointSlice>>) {
        let mut missing = BTreeSet::new();
        while let Some(heard) = news.next().await {
            let mut inner = self.lock();
            let Inner { services, changed, .. } = &mut *inner;
            take(
                heard,
                &mut missing,
                changed,
                |slice| key(&slice.metadata),
                services,
                Services::known,
                Services::observe,
                Services::forget,
            );
            self.changed.notify_one();
        }
    }

    async fn follow_services(&self, mut news: BoxStream<'static, News<Service>>) {
        let mut missing = BTreeSet::new();
        while let Some(heard) = news.next().await {
            let mut inner = self.lock();
            let Inner { services, changed, .. } = &mut *inner;
            take(
                heard,
                &mut missing,
                changed,
                |service| key(&service.metadata),
                services,
                Services::known_services,
                Services::observe_service,
                Services::forget_service,
            );
            self.changed.notify_one();
        }
    }

    /// Writes the files again as their lines change.
    async fn keep(&self) {
        loop {
            self.changed.notified().await;
            if self.lock().changed.is_empty() {
                continue;
            }
            tokio::time::sleep(GATHER).await;
            let texts = self.lock().texts();
            let writing = tokio::task::spawn_blocking(move || {
                for text in texts {
                    text.write_if_there();
                }
            });
            writing.await.expect("writing does not panic");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with it")
    }
}

impl Inner {
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
        let text = hosts_text(&file.pod, file.address, &lines);
        Text { number: self.texts, file, text }
    }
}

impl Text {
    /// Writes it, unless a later one was written meanwhile.
    fn write(self) -> io::Result<()> {
        let mut written = self.file.written.lock().expect("nobody panics with it");
        if *written < self.number {
            write(&self.file.path, &self.text)?;
            *written = self.number;
        }
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

/// Takes in news of slices or services; the namespaces whose lines change go to `changed`.
#[expect(clippy::too_many_arguments, reason = "the two kinds differ in nothing but these")]
fn take<T>(
    news: News<T>,
    missing: &mut BTreeSet<Key>,
    changed: &mut BTreeSet<String>,
    key: impl Fn(&T) -> Key,
    services: &mut Services,
    known: impl Fn(&Services) -> BTreeSet<Key>,
    observe: impl Fn(&mut Services, &T) -> bool,
    forget: impl Fn(&mut Services, &str, &str) -> bool,
) {
    match news {
        News::Began => *missing = known(services),
        News::Seen(object) => {
            let key = key(&object);
            missing.remove(&key);
            if observe(services, &object) {
                changed.insert(key.0);
            }
        }
        News::Gone(object) => {
            let (namespace, name) = key(&object);
            if forget(services, &namespace, &name) {
                changed.insert(namespace);
            }
        }
        News::Complete => {
            for (namespace, name) in std::mem::take(missing) {
                if forget(services, &namespace, &name) {
                    changed.insert(namespace);
                }
            }
        }
    }
}

fn key(meta: &ObjectMeta) -> Key {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// Writes a file anew without making another: it may be mounted. Whoever containers run as may
/// read it, whatever this process's umask is.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}
