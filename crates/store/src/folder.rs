//! The store's folder: whose it is, which format it has, and how it comes into being. It knows
//! nothing of what is stored.
//!
//! ```text
//! lock     locked as long as the store is open
//! format   the version of all of this
//! mark     up to which revision writes were acknowledged
//! data/    fjall's
//! ```
//!
//! A folder is a store once `data` is there, and `data` is the last thing to get its name. A
//! process that is killed while it makes a store leaves nothing that another would take for one.
//!
//! What is stored may be secret, and fjall makes its files as the umask says. So the folder is
//! closed to everybody else before anything is put into it, and again whenever it is opened.

use crate::lock::{FileLock, LockError};
use crate::mark::Mark;
use crate::{Revision, StoreError};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The format that this program reads and writes. It changes whenever an older program could
/// misread what a newer one wrote.
pub(crate) const FORMAT: u32 = 1;

const FORMAT_TEXT: &str = "stint store, format ";
const LOCK: &str = "lock";
const FORMAT_FILE: &str = "format";
const MARK: &str = "mark";
const DATA: &str = "data";
const DATA_UNFINISHED: &str = "data.new";

/// Nobody but the owner gets past the folder, so nobody gets at what is below it.
const FOLDER_MODE: u32 = 0o700;
/// The same for the files of this module, should the folder be opened up by hand.
const FILE_MODE: u32 = 0o600;

/// A store's folder, locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: FileLock,
}

impl Folder {
    /// Takes hold of a folder that is a store, or could become one.
    pub(crate) fn lock(path: &Path) -> Result<Self, StoreError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(path)
            .map_err(StoreError::io("create the store's folder"))?;
        let path = path.canonicalize().map_err(StoreError::io("find the store's folder"))?;
        refuse_strangers(&path)?;
        match FileLock::take(&path.join(LOCK)) {
            Ok(lock) => Ok(Folder { path, _lock: lock }),
            Err(LockError::Held { by }) => Err(StoreError::InUse { folder: path, by }),
            Err(LockError::Io(error)) => Err(StoreError::io("lock the store")(error)),
        }
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// fjall's folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Makes the folder a store, unless it is one. `fill` makes fjall's folder.
    pub(crate) fn create(
        &self,
        fill: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let io = StoreError::io;
        if self.data().try_exists().map_err(io("look into the store's folder"))? {
            return Ok(());
        }
        self.refuse_remains()?;
        restrict(&self.path, FOLDER_MODE)?;
        let unfinished = self.path.join(DATA_UNFINISHED);
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io("remove an unfinished store")(error));
            }
            Ok(()) | Err(_) => {}
        }
        fill(&unfinished)?;
        Mark::create(&self.path.join(MARK), Revision::EMPTY).map_err(io("write the mark"))?;
        self.write_format().map_err(io("write the store's format"))?;
        fs::rename(&unfinished, self.data()).map_err(io("name the new store"))?;
        self.sync().map_err(io("sync the store's folder"))
    }

    /// Refuses a store of another format.
    pub(crate) fn check_format(&self) -> Result<(), StoreError> {
        let path = self.path.join(FORMAT_FILE);
        let damaged = |detail: &str| StoreError::corrupted(path.display().to_string(), detail);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged("it is missing"));
            }
            Err(error) => return Err(StoreError::io("read the store's format")(error)),
        };
        let found = str::from_utf8(&text)
            .ok()
            .and_then(|text| text.strip_prefix(FORMAT_TEXT)?.strip_suffix('\n')?.parse().ok())
            .ok_or_else(|| damaged("it does not name a format"))?;
        if found == FORMAT {
            return Ok(());
        }
        Err(StoreError::UnknownFormat { folder: self.path.clone(), found, known: FORMAT })
    }

    /// Closes a folder that is known to be a store to everybody but its owner. A folder that
    /// cannot be closed is not used.
    pub(crate) fn close_to_others(&self) -> Result<(), StoreError> {
        restrict(&self.path, FOLDER_MODE)?;
        for name in [LOCK, FORMAT_FILE, MARK] {
            restrict(&self.path.join(name), FILE_MODE)?;
        }
        Ok(())
    }

    /// The store's mark.
    pub(crate) fn mark(&self) -> Result<Mark, StoreError> {
        Mark::open(&self.path.join(MARK))
    }

    /// A folder without `data` whose mark says that writes were acknowledged has lost it.
    fn refuse_remains(&self) -> Result<(), StoreError> {
        match self.mark() {
            Ok(mark) if mark.revision() > Revision::EMPTY => {
                let detail = format!("it is missing, with writes up to {}", mark.revision());
                Err(StoreError::corrupted(self.data().display().to_string(), detail))
            }
            // A mark that is missing or torn is one whose making was interrupted.
            Ok(_) | Err(StoreError::Corrupted { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn write_format(&self) -> io::Result<()> {
        let path = self.path.join(FORMAT_FILE);
        fs::write(&path, format!("{FORMAT_TEXT}{FORMAT}\n"))?;
        File::open(&path)?.sync_all()
    }

    /// Makes the names in the folder, and the folder's own, durable.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()?;
        match self.path.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// Sets the permissions of something that is there, unless they are these already.
fn restrict(path: &Path, mode: u32) -> Result<(), StoreError> {
    let set = || {
        let mut permissions = fs::metadata(path)?.permissions();
        if permissions.mode() & 0o777 == mode {
            return Ok(());
        }
        permissions.set_mode(mode);
        fs::set_permissions(path, permissions)
    };
    set().map_err(StoreError::io("close the store's folder to others"))
}

/// Refuses a folder that holds what no store holds, before anything is made in it.
fn refuse_strangers(path: &Path) -> Result<(), StoreError> {
    let ours = [LOCK, FORMAT_FILE, MARK, DATA, DATA_UNFINISHED];
    let read = StoreError::io("look into the store's folder");
    let found: Vec<_> = match fs::read_dir(path).and_then(|names| names.collect()) {
        Ok(found) => found,
        Err(error) => return Err(read(error)),
    };
    let names = || found.iter().map(fs::DirEntry::file_name);
    if names().any(|name| name == DATA) {
        return Ok(());
    }
    match names().find(|name| !ours.iter().any(|ours| name == ours)) {
        Some(name) => Err(StoreError::NotAStore {
            folder: path.to_owned(),
            found: name.to_string_lossy().into_owned(),
        }),
        None => Ok(()),
    }
}
