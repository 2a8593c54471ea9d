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
                fs::create_dir(&next).map_err(|error| said("create", &next, &error))?;
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
