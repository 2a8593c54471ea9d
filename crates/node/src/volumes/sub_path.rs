//! A path below a volume that stays below it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::said;

/// The place of `sub_path` in the volume at `root`, without symbolic links. A folder that does
/// not exist is made where that is permitted.
pub(super) fn resolve(root: &Path, sub_path: &str, may_create: bool) -> Result<PathBuf, String> {
    let root = fs::canonicalize(root).map_err(|error| said("find", root, &error))?;
    let mut here = root.clone();
    for part in Path::new(sub_path).components() {
        let Component::Normal(name) = part else {
            return Err("it is not a plain path below the volume".to_owned());
        };
        let next = here.join(name);
        match fs::canonicalize(&next) {
            Ok(real) => here = real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && may_create => {
                // A dangling link is found here, too: creating a folder in its place fails.
                match fs::create_dir(&next) {
                    Ok(()) => {}
                    // Another Pod has just made it, and no link.
                    Err(_) if fs::symlink_metadata(&next).is_ok_and(|it| it.is_dir()) => {}
                    Err(error) => return Err(said("create", &next, &error)),
                }
                // As a kubelet: whoever may write to the volume may write there.
                let mode = fs::metadata(&root).map(|found| found.permissions());
                let mode = mode.map_err(|error| said("look at", &root, &error))?;
                fs::set_permissions(&next, mode)
                    .map_err(|error| said("set the mode of", &next, &error))?;
                here = next;
            }
            Err(error) => return Err(said("find", &next, &error)),
        }
        if !here.starts_with(&root) {
            return Err("it leaves the volume by a symbolic link".to_owned());
        }
    }
    Ok(here)
}

/// The same, if there is something at that place.
pub(super) fn find(root: &Path, sub_path: &str) -> Result<Option<PathBuf>, String> {
    match fs::metadata(root.join(sub_path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(_) | Err(_) => resolve(root, sub_path, false).map(Some),
    }
}
