//! Whose logs somebody is known to read, before that somebody has come.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

type IsRead = dyn Fn(&Pod) -> bool + Send + Sync;

/// The Pods whose logs somebody will read from their beginning.
#[derive(Clone, Default)]
pub struct LogReaders(Option<Arc<IsRead>>);

impl LogReaders {
    /// Those for which `is_read` holds. It is asked whenever a container is started.
    pub fn of(is_read: impl Fn(&Pod) -> bool + Send + Sync + 'static) -> Self {
        LogReaders(Some(Arc::new(is_read)))
    }

    /// Whether somebody will read the logs of this Pod.
    pub(crate) fn expect(&self, pod: &Pod) -> bool {
        self.0.as_ref().is_some_and(|is_read| is_read(pod))
    }
}

impl fmt::Debug for LogReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "LogReaders" } else { "LogReaders(none)" })
    }
}
