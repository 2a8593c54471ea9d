//! The protobuf wire: tags, varints and lengths, and how to get past what nobody knows. It
//! knows no message. Nothing is copied, and every step gets on by at least a byte.

use thiserror::Error;

/// How deep groups may be nested. Kubernetes has none; they can only be passed over.
const MAX_GROUP_DEPTH: usize = 100;

/// Bytes that are no protobuf.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// There is less than a length says, or a number does not end.
    #[error("unexpected EOF")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("integer overflow")]
    Overflow,
    /// A field number is 0, or none of protobuf's.
    #[error("illegal tag {0}")]
    IllegalTag(u64),
    /// There is no such wire type.
    #[error("illegal wireType {0}")]
    IllegalWireType(u64),
    /// The field is written as something else.
    #[error("wrong wireType = {0}")]
    WrongWireType(u8),
    /// A group ends that has not begun.
    #[error("unexpected end of group")]
    EndOfGroup,
    /// Groups within groups.
    #[error("groups are nested too deeply")]
    TooDeep,
}

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    GroupStart = 3,
    GroupEnd = 4,
    Fixed32 = 5,
}

/// What stands before each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire_type: WireType,
}

impl Tag {
    /// Refuses a field that is not written as its type is.
    pub(super) fn expect(self, wire_type: WireType) -> Result<(), WireError> {
        if self.wire_type == wire_type {
            Ok(())
        } else {
            Err(WireError::WrongWireType(self.wire_type as u8))
        }
    }
}

/// Reads one message from its first byte to its last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The tag of the next field, or none after the last.
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, WireError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = match tag & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            3 => WireType::GroupStart,
            4 => WireType::GroupEnd,
            5 => WireType::Fixed32,
            other => return Err(WireError::IllegalWireType(other)),
        };
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok(Some(Tag { number, wire_type })),
            _ => Err(WireError::IllegalTag(tag >> 3)),
        }
    }

    /// A number. What is above its 64th bit is lost, as it is to Go.
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(WireError::Truncated)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError::Overflow)
    }

    /// Bytes with their length in front.
    pub(super) fn bytes(&mut self) -> Result<&'b [u8], WireError> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| WireError::Truncated)?)
    }

    /// Gets past the field of a tag.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), WireError> {
        let mut depth = 0;
        let mut wire_type = tag.wire_type;
        loop {
            match wire_type {
                WireType::Varint => drop(self.varint()?),
                WireType::Fixed64 => drop(self.take(8)?),
                WireType::Bytes => drop(self.bytes()?),
                WireType::Fixed32 => drop(self.take(4)?),
                WireType::GroupStart if depth == MAX_GROUP_DEPTH => return Err(WireError::TooDeep),
                WireType::GroupStart => depth += 1,
                WireType::GroupEnd if depth == 0 => return Err(WireError::EndOfGroup),
                WireType::GroupEnd => depth -= 1,
            }
            if depth == 0 {
                return Ok(());
            }
            wire_type = self.tag()?.ok_or(WireError::Truncated)?.wire_type;
        }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u64, WireError> {
        Reader::new(bytes).varint()
    }

    #[test]
    fn numbers_have_up_to_ten_bytes() {
        assert_eq!(number(&[0]), Ok(0));
        assert_eq!(number(&[0xac, 0x02]), Ok(300));
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(number(&minus_one), Ok(u64::MAX));
        assert_eq!(number(&minus_one[..9]), Err(WireError::Truncated));
        assert_eq!(number(&[0xff; 11]), Err(WireError::Overflow));
        assert_eq!(number(&[]), Err(WireError::Truncated));
    }

    #[test]
    fn a_length_may_not_go_past_the_end() {
        assert_eq!(Reader::new(b"\x02ab").bytes(), Ok(&b"ab"[..]));
        assert_eq!(Reader::new(b"\x03ab").bytes(), Err(WireError::Truncated));
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader::new(&huge).bytes(), Err(WireError::Truncated));
    }

    #[test]
    fn fields_of_every_wire_type_are_passed_over() {
        let fields: [&[u8]; 5] = [
            b"\x08\x7f",
            b"\x09\0\0\0\0\0\0\0\0",
            b"\x0a\x02ab",
            b"\x0b\x08\x01\x13\x0a\x01a\x14\x0c",
            b"\x0d\0\0\0\0",
        ];
        for field in fields {
            let mut reader = Reader::new(field);
            let tag = reader.tag().expect("a tag").expect("a field");
            assert_eq!((tag.number, reader.skip(tag)), (1, Ok(())), "{field:?}");
            assert!(reader.is_empty(), "{field:?}");
        }
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let skip = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            reader.tag().and_then(|tag| reader.skip(tag.expect("a field")))
        };
        assert_eq!(skip(b"\0"), Err(WireError::IllegalTag(0)));
        assert_eq!(skip(b"\x0e"), Err(WireError::IllegalWireType(6)));
        assert_eq!(skip(b"\x0c"), Err(WireError::EndOfGroup));
        assert_eq!(skip(b"\x0b\x08\x01"), Err(WireError::Truncated));
        assert_eq!(skip(&[0x0b; MAX_GROUP_DEPTH]), Err(WireError::Truncated));
        assert_eq!(skip(&[0x0b; MAX_GROUP_DEPTH + 1]), Err(WireError::TooDeep));
    }
}
