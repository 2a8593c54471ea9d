//! Which containers of which Pods have begun, in files that outlive this process: a node that was
//! killed must start what has not begun, and may not start twice what has. Everything here blocks.
//!
//! A run's file is also what the container finds at its path for last words, so that a start costs
//! one file.
//!
//! # Guarantees
//!
//! - A run's file is there before a runtime is asked to start it, and goes only with the folder of
//!   its Pod, or when it is known that nothing was started.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How the files end. What comes before is the name of a container and the number of a run.
const SUFFIX: &str = ".begun";

/// The containers that have begun, by the uid of their Pod. A Pod that was only prepared has none.
pub(crate) type Begun = HashMap<String, Runs>;

/// The newest run that has begun of each container that has.
pub(crate) type Runs = BTreeMap<String, u32>;

/// The file of a run in the folder of its Pod.
pub(crate) fn file(folder: &Path, container: &str, run: u32) -> PathBuf {
    folder.join(format!("{container}.{run}{SUFFIX}"))
}

/// The file in a Pod's folder that its first run is given, if there is one: another Pod had it.
pub(crate) fn spare(folder: &Path) -> PathBuf {
    folder.join("run")
}

/// Notes that a run is about to be started. Whoever it runs as may write to its file.
pub(crate) fn note(file: &Path) -> io::Result<()> {
    let spare = file.parent().map(spare);
    if spare.is_some_and(|spare| fs::rename(spare, file).is_ok()) {
        return Ok(());
    }
    fs::File::create(file)?.set_permissions(fs::Permissions::from_mode(0o666))
}

/// Takes back that a run has begun: nothing was started.
pub(crate) fn take_back(file: &Path) {
    if let Err(error) = fs::remove_file(file) {
        // It counts as begun if this process is killed: its Pod fails then instead of waiting.
        tracing::debug!(file = %file.display(), %error, "cannot take back that a run has begun");
    }
}

/// All Pods that have a folder below this one.
pub(crate) fn read(pods: &Path) -> Begun {
    let folders = fs::read_dir(pods).into_iter().flatten().flatten();
    folders
        .filter_map(|folder| {
            let uid = folder.file_name().into_string().ok()?;
            Some((uid, containers(&folder.path())))
        })
        .collect()
}

/// The containers of a Pod with this folder that have begun, each with its latest run.
pub(crate) fn containers(folder: &Path) -> Runs {
    let mut runs = Runs::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        let Some((container, run)) = name.and_then(|name| name.rsplit_once('.')) else { continue };
        let newest = runs.entry(container.to_owned()).or_default();
        *newest = (*newest).max(run.parse().unwrap_or(0));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_is_found_and_what_was_taken_back_is_not() {
        let pods = tempfile::tempdir().expect("a folder");
        assert!(read(&pods.path().join("none")).is_empty());
        for uid in ["a", "b"] {
            fs::create_dir_all(pods.path().join(uid).join("volumes")).expect("a folder");
        }
        let folder = pods.path().join("a");
        for (container, run) in [("main", 0), ("other", 0), ("main", 1), ("main", 2)] {
            note(&file(&folder, container, run)).expect("a file");
        }
        take_back(&file(&folder, "other", 0));
        take_back(&file(&folder, "main", 2));
        let main = Runs::from([("main".to_owned(), 1)]);
        let expected = [("a".to_owned(), main), ("b".to_owned(), Runs::new())];
        assert_eq!(read(pods.path()), expected.into());
    }
}
