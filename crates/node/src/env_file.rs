//! Files of variables that a container's environment refers to (`fileKeyRef`, KEP-3721): a strict
//! part of what a shell reads.
//!
//! ```text
//!   # a comment
//!   NAME='a value, over several lines
//!   if need be'  # and another comment
//! ```

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest file: as large as what a ConfigMap may hold.
const FILE_BYTES: u64 = 1 << 20;

/// The value of a variable in a file; none if the file or the variable is not there, or empty.
///
/// # Errors
///
/// A sentence that says what is wrong with the file.
pub(crate) fn read(path: &Path, key: &str) -> Result<Option<String>, String> {
    let said = |error: &std::io::Error| format!("cannot read {}: {error}", path.display());
    // A container could have put anything there: nobody waits for whoever writes into a pipe.
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(said(&error)),
    };
    if !file.metadata().map_err(|error| said(&error))?.is_file() {
        return Err(format!("cannot read {}: it is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| said(&error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(format!("{} has more than {FILE_BYTES} bytes", path.display()));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is no text", path.display()))?;
    find(&text, key).map_err(|why| format!("{}: {why}", path.display()))
}

/// The value of a variable. What comes after it is not looked at, as by a kubelet.
fn find(text: &str, key: &str) -> Result<Option<String>, String> {
    let mut lines = text.lines().enumerate();
    while let Some((place, line)) = lines.next() {
        let wrong = |what: &str| Err(format!("line {}: {what}", place + 1));
        let line = line.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { return wrong("it has no \"=\"") };
        if name.is_empty() || name.ends_with(BLANK) {
            return wrong("there is no name right before its \"=\"");
        }
        // As a shell: nothing is assigned.
        if value.starts_with(BLANK) {
            if name == key {
                return Ok(None);
            }
            continue;
        }
        let Some(mut rest) = value.strip_prefix('\'') else {
            return wrong("its value is not in single quotes");
        };
        let mut value = String::new();
        let after = loop {
            if let Some((end, after)) = rest.split_once('\'') {
                value.push_str(end);
                break after.trim_start_matches(BLANK);
            }
            value.push_str(rest);
            value.push('\n');
            match lines.next() {
                Some((_, next)) => rest = next,
                None => return wrong("its value has no end"),
            }
        };
        if !after.is_empty() && !after.starts_with('#') {
            return wrong("something comes after its value");
        }
        if name == key {
            return Ok(Some(value).filter(|value| !value.is_empty()));
        }
    }
    Ok(None)
}

/// What may stand before a name and after a value.
const BLANK: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_is_in_single_quotes() {
        let text =
            "# A='no'\n\n  A='1'\nB='$(A) \"x\" \\n' # why\nC='one\n # two\n'\nD= 'x'\nE=''\n";
        let rows = [
            ("A", Some("1")),
            ("B", Some("$(A) \"x\" \\n")),
            ("C", Some("one\n # two\n")),
            ("D", None),
            ("E", None),
            ("F", None),
        ];
        for (key, expected) in rows {
            assert_eq!(find(text, key), Ok(expected.map(str::to_owned)), "{key}");
        }
    }

    #[test]
    fn what_a_shell_might_read_otherwise_is_refused() {
        for (text, expected) in [
            ("A='1'\nB", "line 2: it has no"),
            ("B ='1'", "no name right before"),
            ("='1'", "no name right before"),
            ("B=1", "not in single quotes"),
            ("B=\"1\"", "not in single quotes"),
            ("B='1'2", "comes after"),
            ("\nB='1\n2", "line 2: its value has no end"),
        ] {
            let why = find(text, "B").expect_err(text);
            assert!(why.contains(expected), "{text:?}: {why}");
        }
    }

    /// A container may have put anything where the file is to be.
    #[test]
    fn only_a_file_is_read_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        std::fs::write(folder.path().join("file"), "A='1'").expect("written");
        let (told, answers) = std::sync::mpsc::channel();
        let at = folder.path().to_owned();
        std::thread::spawn(move || {
            for name in ["file", "none", "", "pipe"] {
                told.send(read(&at.join(name), "A")).expect("somebody waits");
            }
        });
        let next = || {
            let limit = std::time::Duration::from_secs(10);
            answers.recv_timeout(limit).expect("it does not wait")
        };
        assert_eq!((next(), next()), (Ok(Some("1".to_owned())), Ok(None)));
        for _ in 0..2 {
            let why = next().expect_err("it is no file");
            assert!(why.ends_with("it is not a file"), "{why}");
        }
    }
}
