//! Files and folders of this machine that a Pod names.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::{said, set_mode};

/// Checks, or makes, what is at a path, by the type that the volume gives.
pub(super) fn make(path: &str, kind: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    let found = fs::metadata(&path).ok().map(|found| found.file_type());
    let wrong = |what: &str| Err(format!("hostPath {} is no {what}", path.display()));
    match (kind, found) {
        ("DirectoryOrCreate", None) => make_folders(&path)?,
        // A kubelet leaves it to the runtime, and those make a folder.
        ("", None) => make_folders(&path).map_err(|why| {
            format!(
                "hostPath {} does not exist, and without a type it is made as by `type: \
                 DirectoryOrCreate`: {why}; make it, or name a path where this user may",
                path.display()
            )
        })?,
        ("FileOrCreate", None) => {
            let open = fs::OpenOptions::new().create(true).append(true).open(&path);
            open.map_err(|error| said("create", &path, &error))?;
            set_mode(&path, 0o644)?;
        }
        (_, None) => return Err(format!("hostPath {} does not exist", path.display())),
        ("Directory" | "DirectoryOrCreate", Some(it)) if !it.is_dir() => return wrong("directory"),
        ("File" | "FileOrCreate", Some(it)) if !it.is_file() => return wrong("file"),
        ("Socket", Some(it)) if !it.is_socket() => return wrong("socket"),
        ("CharDevice", Some(it)) if !it.is_char_device() => return wrong("character device"),
        ("BlockDevice", Some(it)) if !it.is_block_device() => return wrong("block device"),
        (_, Some(_)) => {}
    }
    Ok(Path::to_path_buf(&path))
}

/// Makes a folder, and those above it that are missing.
fn make_folders(path: &Path) -> Result<(), String> {
    let is_missing = |path: &&Path| fs::symlink_metadata(path).is_err();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    if missing.is_empty() {
        return Err(format!("{} is a link to something that does not exist", path.display()));
    }
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => set_mode(folder, 0o755)?,
            // Another Pod has just made it.
            Err(_) if folder.is_dir() => {}
            Err(error) => return Err(said("create", folder, &error)),
        }
    }
    Ok(())
}
