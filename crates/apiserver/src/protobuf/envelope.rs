//! What every body is wrapped in: four bytes to know it by, and `runtime.Unknown`, which says
//! of what type the object within is. It knows no types.

use thiserror::Error;

use super::wire::{Reader, WireError, WireType};

/// What every body starts with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// The object of a body, still as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// As the body says; empty if it does not.
    pub api_version: &'b str,
    /// As the body says; empty if it does not.
    pub kind: &'b str,
    /// The object.
    pub raw: &'b [u8],
}

/// A body that is no envelope.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EnvelopeError {
    /// It does not start as they do.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    /// There is nothing in it.
    #[error("empty body")]
    Empty,
    /// It is no protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Its texts are no texts.
    #[error("the type in the envelope is not valid UTF-8")]
    NoText,
    /// The object within is compressed, or otherwise not as it is.
    #[error("the content encoding {0:?} is not supported")]
    Encoded(String),
}

/// Opens the envelope of a body.
pub fn open(body: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    let unknown = body.strip_prefix(MAGIC).ok_or(EnvelopeError::NoMagic)?;
    if unknown.is_empty() {
        return Err(EnvelopeError::Empty);
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(unknown);
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 => {
                tag.expect(WireType::Bytes)?;
                read_type(reader.bytes()?, &mut envelope)?;
            }
            2 => {
                tag.expect(WireType::Bytes)?;
                envelope.raw = reader.bytes()?;
            }
            3 => {
                tag.expect(WireType::Bytes)?;
                let encoding = reader.bytes()?;
                if !encoding.is_empty() {
                    let shown = &encoding[..encoding.len().min(SHOWN_BYTES)];
                    let shown = String::from_utf8_lossy(shown).into_owned();
                    return Err(EnvelopeError::Encoded(shown));
                }
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok(envelope)
}

/// The most of an encoding's name that is shown.
const SHOWN_BYTES: usize = 64;

fn read_type<'b>(bytes: &'b [u8], envelope: &mut Envelope<'b>) -> Result<(), EnvelopeError> {
    let mut reader = Reader::new(bytes);
    while let Some(tag) = reader.tag()? {
        let said = match tag.number {
            1 => &mut envelope.api_version,
            2 => &mut envelope.kind,
            _ => {
                reader.skip(tag)?;
                continue;
            }
        };
        tag.expect(WireType::Bytes)?;
        *said = std::str::from_utf8(reader.bytes()?).map_err(|_| EnvelopeError::NoText)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_says_what_is_in_it() {
        let body = b"k8s\0\x0a\x0b\x0a\x02v1\x12\x05Event\x12\x02ab\x1a\0\x22\0";
        let opened = Envelope { api_version: "v1", kind: "Event", raw: b"ab" };
        assert_eq!(open(body), Ok(opened));
        let nameless = b"k8s\0\x12\x01a";
        assert_eq!(open(nameless), Ok(Envelope { raw: b"a", ..Envelope::default() }));
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        assert_eq!(open(b""), Err(EnvelopeError::NoMagic));
        assert_eq!(open(b"{}"), Err(EnvelopeError::NoMagic));
        assert_eq!(open(b"k8s\0"), Err(EnvelopeError::Empty));
        assert_eq!(open(b"k8s\0\x12\x05a"), Err(WireError::Truncated.into()));
        assert_eq!(open(b"k8s\0\x10\x05"), Err(WireError::WrongWireType(0).into()));
        assert_eq!(open(b"k8s\0\x0a\x03\x0a\x01\xff"), Err(EnvelopeError::NoText));
        let gzip = open(b"k8s\0\x1a\x04gzip").expect_err("refused");
        assert_eq!(gzip.to_string(), "the content encoding \"gzip\" is not supported");
    }
}
