//! What the command line names, found and read: files, directories, standard input.
//!
//! One bad name never hides the others: every input is read or refused by itself.
//! This file knows nothing of what the texts mean, only how large the decoder lets
//! them be: nothing above that is held in memory.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use stint_api::decode::MAX_FILE_BYTES;

use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::source::Source;

/// Most entries looked at under one directory argument. Large repositories have
/// some hundred thousand files; with more, someone named a whole disk by mistake.
const MAX_DIRECTORY_ENTRIES: usize = 1_000_000;

/// The names of manifests in a directory, as kubectl has them.
const MANIFEST_EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// How standard input is called on the command line.
const STDIN_ARGUMENT: &str = "-";

/// How standard input is called in reports.
pub(crate) const STDIN_NAME: &str = "<stdin>";

/// One text to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// Why an input could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// The operating system refused to look at it, to open it or to read it.
    #[error("cannot read {}: {source}", shown(name))]
    Unreadable {
        name: String,
        #[source]
        source: io::Error,
    },
    /// It is there, but holds no text.
    #[error("cannot read {}: it is a {what}, not a file", shown(name))]
    NotAFile { name: String, what: &'static str },
    /// It has too many bytes.
    #[error("{} is larger than {} MiB", shown(name), MAX_FILE_BYTES >> 20)]
    TooLarge { name: String },
    /// It has bytes that are no UTF-8.
    #[error(
        "{} is not UTF-8 text: byte 0x{byte:02x} at offset {offset} (line {line})",
        shown(name)
    )]
    NotUtf8 { name: String, byte: u8, offset: usize, line: usize, is_utf16: bool },
    /// A directory without manifests.
    #[error(
        "no manifest in directory {}: looked for *.yaml, *.yml and *.json{}",
        shown(name),
        if *recursive { " in it and below" } else { "" }
    )]
    EmptyDirectory { name: String, recursive: bool },
    /// A directory with more in it than anyone means to check.
    #[error("directory {} has more than {MAX_DIRECTORY_ENTRIES} entries", shown(name))]
    EndlessDirectory { name: String },
}

impl InputError {
    /// The input that could not be read.
    pub(crate) fn name(&self) -> &str {
        match self {
            InputError::Unreadable { name, .. }
            | InputError::NotAFile { name, .. }
            | InputError::TooLarge { name }
            | InputError::NotUtf8 { name, .. }
            | InputError::EmptyDirectory { name, .. }
            | InputError::EndlessDirectory { name } => name,
        }
    }

    /// Whether the input was read and is at fault itself, so that the manifest is
    /// invalid rather than out of reach.
    pub(crate) fn is_invalid_text(&self) -> bool {
        matches!(self, InputError::NotUtf8 { .. })
    }

    /// The line of the text that is at fault, if it came to that.
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            InputError::NotUtf8 { line, .. } => Some(*line),
            InputError::Unreadable { .. }
            | InputError::NotAFile { .. }
            | InputError::TooLarge { .. }
            | InputError::EmptyDirectory { .. }
            | InputError::EndlessDirectory { .. } => None,
        }
    }

    /// What to do about it.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            InputError::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the spelling of the path",
                io::ErrorKind::PermissionDenied => {
                    "make it readable for this user, or pipe its text to `stint check -`"
                }
                _ => "check that the file can be read, for example with cat",
            },
            InputError::NotAFile { .. } => "give a file, a directory, or - for standard input",
            InputError::TooLarge { .. } => "split it into smaller files",
            InputError::NotUtf8 { is_utf16: true, .. } => {
                "it looks like UTF-16; save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8"
            }
            InputError::NotUtf8 { .. } => "save it as UTF-8",
            InputError::EmptyDirectory { recursive: false, .. } => {
                "add -R to look in its subdirectories, or name the file itself"
            }
            InputError::EmptyDirectory { .. } => "name the file itself",
            InputError::EndlessDirectory { .. } => "name a smaller directory",
        }
    }
}

/// Whether an argument stands for standard input.
pub(crate) fn is_stdin(argument: &Path) -> bool {
    argument == Path::new(STDIN_ARGUMENT)
}

/// The inputs that the arguments name, in their order; a directory's files are
/// sorted by name.
pub(crate) fn find(arguments: &[PathBuf], recursive: bool) -> Vec<Result<Input, InputError>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        if is_stdin(argument) {
            inputs.push(Ok(Input::Stdin));
        } else if argument.is_dir() {
            list_manifests(argument, recursive, &mut inputs);
        } else {
            inputs.push(Ok(Input::File(argument.clone())));
        }
    }
    inputs
}

/// Reads one input.
pub(crate) fn read(input: &Input) -> Result<Source, InputError> {
    let (name, bytes) = match input {
        Input::Stdin => {
            let name = STDIN_NAME.to_owned();
            let bytes = read_limited(io::stdin().lock(), 0);
            (name, bytes)
        }
        Input::File(path) => {
            let name = name_of(path);
            let (file, size_hint) = open(path)?;
            (name, read_limited(file, size_hint))
        }
    };
    let bytes = match bytes {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(InputError::TooLarge { name }),
        Err(source) => return Err(InputError::Unreadable { name, source }),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => Err(not_utf8(name, error.utf8_error().valid_up_to(), error.as_bytes())),
    }
}

/// Adds the manifests in `directory`, or why there are none.
///
/// Links to files are followed, since that is how a mounted ConfigMap looks; links
/// to directories are not, as with kubectl, so a loop of them cannot be walked into.
fn list_manifests(directory: &Path, recursive: bool, inputs: &mut Vec<Result<Input, InputError>>) {
    let name = name_of(directory);
    let found_before = inputs.len();
    let mut entries_seen = 0;
    // A stack instead of recursion: the deepest entry comes off first, so
    // pushing a directory's entries in reverse walks the tree in order of names.
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let is_directory = path == directory || (is_real_directory(&path) && recursive);
        if !is_directory {
            if is_manifest(&path) {
                inputs.push(Ok(Input::File(path)));
            }
            continue;
        }
        match sorted_entries(&path) {
            Ok(entries) => {
                entries_seen += entries.len();
                pending.extend(entries.into_iter().rev());
            }
            Err(source) => {
                inputs.push(Err(InputError::Unreadable { name: name_of(&path), source }))
            }
        }
        if entries_seen > MAX_DIRECTORY_ENTRIES {
            inputs.push(Err(InputError::EndlessDirectory { name }));
            return;
        }
    }
    if inputs.len() == found_before {
        inputs.push(Err(InputError::EmptyDirectory { name, recursive }));
    }
}

fn sorted_entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
        if paths.len() > MAX_DIRECTORY_ENTRIES {
            break;
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether an entry of a directory is a manifest: by its name, and by being a
/// file. A broken link by that name counts, so that it is reported.
fn is_manifest(path: &Path) -> bool {
    let has_name =
        path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
            MANIFEST_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
        });
    has_name && fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Opens a file, or a named pipe such as the shell's `<(command)`, and tells how
/// many bytes to expect.
fn open(path: &Path) -> Result<(File, usize), InputError> {
    let unreadable = |source| InputError::Unreadable { name: name_of(path), source };
    // Looked at before it is opened: opening a device can have effects of its own.
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if let Some(what) = not_a_file(metadata.file_type()) {
        return Err(InputError::NotAFile { name: name_of(path), what });
    }
    let size_hint = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    let file = File::open(path).map_err(unreadable)?;
    Ok((file, size_hint))
}

fn not_a_file(kind: FileType) -> Option<&'static str> {
    if kind.is_file() || kind.is_fifo() {
        None
    } else if kind.is_dir() {
        Some("directory")
    } else if kind.is_char_device() {
        Some("character device")
    } else if kind.is_block_device() {
        Some("block device")
    } else if kind.is_socket() {
        Some("socket")
    } else {
        Some("special file")
    }
}

/// Reads to the end; `None` if there are more than [`MAX_FILE_BYTES`]. Holds one
/// byte more than that at most: a vector left to grow by itself would double.
fn read_limited(mut reader: impl Read, size_hint: usize) -> io::Result<Option<Vec<u8>>> {
    const FIRST_READ_BYTES: usize = 64 << 10;
    const MAX_HELD_BYTES: usize = MAX_FILE_BYTES + 1;
    // One byte more than expected, so that the end is seen without growing again.
    let first = size_hint.saturating_add(1).max(FIRST_READ_BYTES);
    let mut bytes = vec![0; first.min(MAX_HELD_BYTES)];
    let mut filled = 0;
    while filled < MAX_HELD_BYTES {
        if filled == bytes.len() {
            let grown = (bytes.len() * 2).min(MAX_HELD_BYTES);
            bytes.reserve_exact(grown - bytes.len());
            bytes.resize(grown, 0);
        }
        match reader.read(&mut bytes[filled..]) {
            Ok(0) => {
                bytes.truncate(filled);
                return Ok(Some(bytes));
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn not_utf8(name: String, offset: usize, bytes: &[u8]) -> InputError {
    let lines_before = bytes[..offset].iter().filter(|&&b| b == b'\n').count();
    InputError::NotUtf8 {
        name,
        byte: bytes[offset],
        offset,
        line: lines_before + 1,
        is_utf16: bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]),
    }
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn shown(name: &str) -> String {
    printable(name, MAX_MESSAGE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_read_up_to_the_limit_and_not_a_byte_further() {
        let at_limit = io::repeat(b'a').take(MAX_FILE_BYTES as u64);
        let bytes = read_limited(at_limit, 0).unwrap().expect("within limits");
        assert_eq!(bytes.len(), MAX_FILE_BYTES);
        assert!(bytes.capacity() <= MAX_FILE_BYTES + 1);

        let mut endless = io::repeat(b'a').take(u64::MAX);
        assert!(read_limited(&mut endless, usize::MAX).unwrap().is_none());
        assert_eq!(u64::MAX - endless.limit(), MAX_FILE_BYTES as u64 + 1);
    }

    #[test]
    fn a_wrong_size_hint_changes_nothing() {
        for size_hint in [0, 3, 5, 1 << 20] {
            let bytes = read_limited(&b"a: 1\n"[..], size_hint).unwrap();
            assert_eq!(bytes.as_deref(), Some(&b"a: 1\n"[..]));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_by_offset_and_line() {
        let error = not_utf8("a\u{1b}b".to_owned(), 6, b"a: 1\nb\xff");
        assert_eq!(
            error.to_string(),
            "a\\u{1b}b is not UTF-8 text: byte 0xff at offset 6 (line 2)"
        );
        assert!(error.is_invalid_text());
        assert!(not_utf8("f".to_owned(), 0, b"\xff\xfea\0").help().contains("UTF-16"));
    }
}
