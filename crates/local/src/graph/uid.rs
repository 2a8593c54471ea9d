//! What tells an object from every other that there has ever been.

use std::fmt;
use std::sync::Arc;

/// A uid. There are many of them, so the usual form takes no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Uid(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    /// A UUID in its usual spelling.
    Uuid([u8; 16]),
    /// Anything else that an owner reference may say.
    Text(Arc<str>),
}

/// Where the hyphens of a UUID are.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    pub(crate) fn new(text: &str) -> Self {
        Uid(parse(text.as_bytes()).map_or_else(|| Form::Text(text.into()), Form::Uuid))
    }
}

/// The bytes of a UUID that is spelled as it would be printed.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (place, &letter) in text.iter().enumerate() {
        if HYPHENS.contains(&place) {
            if letter != b'-' {
                return None;
            }
            continue;
        }
        let digit = match letter {
            b'0'..=b'9' => letter - b'0',
            b'a'..=b'f' => letter - b'a' + 10,
            _ => return None,
        };
        bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Text(text) => f.write_str(text),
            Form::Uuid(bytes) => {
                for (place, byte) in bytes.iter().enumerate() {
                    if [4, 6, 8, 10].contains(&place) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uid_is_printed_as_it_was_written() {
        let uuid = "0123abcd-4567-89ef-0000-ffffffffffff";
        let upper = uuid.to_uppercase();
        for text in [uuid, &upper, "", "u1", "0123abcd-4567-89ef-0000_ffffffffffff"] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
        assert!(matches!(Uid::new(uuid).0, Form::Uuid(_)));
        assert!(matches!(Uid::new(&upper).0, Form::Text(_)));
        assert_eq!(size_of::<Uid>(), 24);
    }
}
