//! The frames of a WebSocket, as a server reads and writes them (RFC 6455, 5). It knows no sockets: bytes
//! in, events out. Payloads are handed on as they come; nothing is kept but the head of a frame, and of
//! control frames their 125 bytes at most.

/// The most bytes of a control frame.
const CONTROL_BYTES: usize = 125;

/// The longest head of a frame that a client sends: two bytes, a length of eight, and a mask.
const HEAD_BYTES: usize = 14;

/// What kind of frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn number(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// Why a client cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    /// It does not keep to the standard.
    #[error("{0}")]
    Protocol(&'static str),
    /// A message is not what it is said to be.
    #[error("{0}")]
    Data(&'static str),
    /// A message is too long for what it is.
    #[error("{0}")]
    TooBig(&'static str),
}

impl Violation {
    /// The code of the frame that closes the connection (RFC 6455, 7.4.1).
    pub(super) fn code(self) -> u16 {
        match self {
            Violation::Protocol(_) => 1002,
            Violation::Data(_) => 1007,
            Violation::TooBig(_) => 1009,
        }
    }
}

/// Something that a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'b> {
    /// A part of a message, and whether it is the last one. It may be empty.
    Data { bytes: &'b [u8], is_end: bool },
    /// The client wants a sign of life.
    Ping(Vec<u8>),
    /// The client gives one.
    Pong,
    /// The client is done.
    Close,
}

/// Reads frames.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// Of the head that is coming.
    head: Vec<u8>,
    frame: Option<Frame>,
    /// Whether a message was begun and not ended.
    is_within: bool,
    /// Of the control frame that is coming.
    control: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    mask: [u8; 4],
    /// How many bytes have come, for the mask.
    come: u64,
    left: u64,
}

impl Decoder {
    /// The next event in these bytes, which are unmasked where they are and taken off the front; `None`
    /// if there are too few for one.
    pub(super) fn next<'b>(
        &mut self,
        input: &mut &'b mut [u8],
    ) -> Result<Option<Event<'b>>, Violation> {
        loop {
            let Some(frame) = &mut self.frame else {
                let Some(frame) = self.read_head(input)? else { return Ok(None) };
                self.frame = Some(frame);
                continue;
            };
            if input.is_empty() && frame.left > 0 {
                return Ok(None);
            }
            let count = usize::try_from(frame.left).unwrap_or(usize::MAX).min(input.len());
            let (bytes, rest) = std::mem::take(input).split_at_mut(count);
            *input = rest;
            frame.unmask(bytes);
            let (opcode, is_over) = (frame.opcode, frame.left == 0);
            let is_end = is_over && frame.is_final;
            if is_over {
                self.frame = None;
            }
            if !opcode.is_control() {
                self.is_within = !is_end;
                return Ok(Some(Event::Data { bytes, is_end }));
            }
            self.control.extend_from_slice(bytes);
            if is_over {
                let payload = std::mem::take(&mut self.control);
                return Ok(Some(match opcode {
                    Opcode::Ping => Event::Ping(payload),
                    Opcode::Pong => Event::Pong,
                    Opcode::Close | Opcode::Continuation | Opcode::Text | Opcode::Binary => {
                        Event::Close
                    }
                }));
            }
        }
    }

    /// Takes the head of a frame off the input, once it is whole.
    fn read_head(&mut self, input: &mut &mut [u8]) -> Result<Option<Frame>, Violation> {
        loop {
            if let Some(frame) = self.parse_head()? {
                self.head.clear();
                return Ok(Some(frame));
            }
            let Some((first, rest)) = std::mem::take(input).split_first_mut() else {
                return Ok(None);
            };
            self.head.push(*first);
            *input = rest;
            debug_assert!(self.head.len() <= HEAD_BYTES, "a head is read before it is longer");
        }
    }

    fn parse_head(&self) -> Result<Option<Frame>, Violation> {
        let [first, second, rest @ ..] = &self.head[..] else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(Violation::Protocol("no extensions were agreed on"));
        }
        let is_final = first & 0x80 != 0;
        let opcode = Opcode::of(first & 0x0f).ok_or(Violation::Protocol("an unknown opcode"))?;
        if second & 0x80 == 0 {
            return Err(Violation::Protocol("what a client sends is masked"));
        }
        let length = second & 0x7f;
        if opcode.is_control() && (!is_final || usize::from(length) > CONTROL_BYTES) {
            return Err(Violation::Protocol("a control frame is short, and whole"));
        }
        if !opcode.is_control() && (opcode == Opcode::Continuation) != self.is_within {
            return Err(Violation::Protocol("a message within another, or the rest of none"));
        }
        let (left, mask) = match length {
            126 => match rest {
                [a, b, mask @ ..] => (u64::from(u16::from_be_bytes([*a, *b])), mask),
                _ => return Ok(None),
            },
            127 => match rest.split_first_chunk::<8>() {
                Some((length, mask)) => (u64::from_be_bytes(*length), mask),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        if left > i64::MAX as u64 {
            return Err(Violation::Protocol("the first bit of a length is zero"));
        }
        let Ok(mask) = <[u8; 4]>::try_from(mask) else { return Ok(None) };
        Ok(Some(Frame { opcode, is_final, mask, come: 0, left }))
    }
}

impl Frame {
    /// Takes the mask off the next bytes.
    fn unmask(&mut self, bytes: &mut [u8]) {
        let shift = (self.come % 4) as usize;
        let mut mask = self.mask;
        mask.rotate_left(shift);
        for chunk in bytes.chunks_mut(4) {
            for (byte, mask) in chunk.iter_mut().zip(mask) {
                *byte ^= mask;
            }
        }
        self.come += bytes.len() as u64;
        self.left -= bytes.len() as u64;
    }
}

/// A whole frame as a server sends it, of these parts.
pub(super) fn frame(opcode: Opcode, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(length + HEAD_BYTES);
    frame.push(0x80 | opcode.number());
    match length {
        0..=125 => frame.push(length as u8),
        126..=0xffff => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

#[cfg(test)]
mod tests;
