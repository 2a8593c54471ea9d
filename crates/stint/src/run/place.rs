//! Where a run keeps its objects and logs, and what is left of them.

use std::fs;
use std::path::{Path, PathBuf};

use stint_local::Storage;
use stint_store::FileLock;

use super::summary::Logs;
use crate::place::{PODS, PlaceError, STORE, remove_folder, take_folder, tell_left, try_room};
use crate::temporary::Temporary;

/// The logs within the folder of the node.
const LOGS: &str = "logs";

/// A place for one run.
pub(crate) enum Place {
    /// A data folder, and the lock on it.
    Data { folder: PathBuf, _lock: FileLock },
    /// A folder that is gone at the end.
    Temporary(Temporary),
}

impl Place {
    /// The data folder, or else a temporary one.
    pub(crate) fn choose(data: Option<&Path>) -> Result<Self, PlaceError> {
        let Some(data) = data else {
            let folder = Temporary::new()?;
            try_room(folder.path(), "TMPDIR")?;
            return Ok(Place::Temporary(folder));
        };
        let lock = take_folder(data)?;
        let folder = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        try_room(&folder, "--data-dir")?;
        Ok(Place::Data { folder, _lock: lock })
    }

    /// Where everything is.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Place::Data { folder, .. } => folder,
            Place::Temporary(folder) => folder.path(),
        }
    }

    /// Where the node is.
    pub(crate) fn pods(&self) -> PathBuf {
        self.folder().join(PODS)
    }

    /// Where objects are.
    pub(crate) fn storage(&self) -> Storage {
        match self {
            Place::Data { folder, .. } => Storage::Folder(folder.join(STORE)),
            Place::Temporary(_) => Storage::Memory,
        }
    }

    /// What nobody else removes if the process ends at once.
    pub(crate) fn temporary_path(&self) -> Option<PathBuf> {
        match self {
            Place::Data { .. } => None,
            Place::Temporary(folder) => Some(folder.path().to_owned()),
        }
    }

    /// Leaves the logs if they are to be kept, or everything if that was asked for.
    pub(crate) fn leave(self, keeps_logs: bool, keeps_all: bool) -> Logs {
        let logs = self.pods().join(LOGS);
        let folder = match self {
            Place::Data { folder, .. } => return Logs::Data { folder, logs },
            Place::Temporary(folder) => folder,
        };
        if keeps_all {
            let folder = folder.keep();
            return Logs::Kept { folder, logs };
        }
        // A container that writes nothing has no log.
        let is_empty = fs::read_dir(&logs).map_or(true, |mut entries| entries.next().is_none());
        let moved = folder.path().join(LOGS);
        if !keeps_logs || is_empty || fs::rename(&logs, &moved).is_err() {
            folder.remove();
            return Logs::Gone;
        }
        let folder = folder.keep();
        let pods = folder.join(PODS);
        if let Err(error) = remove_folder(&pods) {
            tell_left(&pods, &error);
        }
        Logs::Kept { folder, logs: moved }
    }
}
