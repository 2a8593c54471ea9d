//! A word as a shell reads it, for commands that are shown to be pasted. Text made from values.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::printable::is_unprintable;

/// A word as bash, zsh and ksh read it: whatever is in it, the shell takes it as it is, and a
/// terminal is sent nothing that drives it.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Some(text) if !text.contains(is_unprintable) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        Some(_) | None => escaped(word.as_bytes()),
    }
}

/// `$'…'`, where every byte can be written as its number.
fn escaped(bytes: &[u8]) -> String {
    let mut shown = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => shown.extend(['\\', c]),
                c if is_unprintable(c) => {
                    let mut room = [0; 4];
                    push_numbers(&mut shown, c.encode_utf8(&mut room).as_bytes());
                }
                c => shown.push(c),
            }
        }
        push_numbers(&mut shown, chunk.invalid());
    }
    shown.push('\'');
    shown
}

/// Three digits each, so that no digit after them is taken for one of them.
fn push_numbers(shown: &mut String, bytes: &[u8]) {
    for byte in bytes {
        *shown += &format!("\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        let rows: [(&[u8], &str); 6] = [
            (b"/tmp/a-1.yaml", "/tmp/a-1.yaml"),
            (b"", "''"),
            (b"my jobs", "'my jobs'"),
            (b"it's $HOME", r"'it'\''s $HOME'"),
            (b"a\x1b[2J'1\\", r"$'a\033[2J\'1\\'"),
            (b"\xff1", r"$'\3771'"),
        ];
        for (word, expected) in rows {
            let shown = quoted(OsStr::from_bytes(word));
            assert_eq!(shown, expected);
            let script = format!("printf %s {shown}");
            let read = Command::new("bash").args(["-c", &script]).output().expect("bash is there");
            assert_eq!(read.stdout, word, "{shown}");
        }
    }
}
