//! The streams of a process as channels of one WebSocket, as Kubernetes has them (remotecommand): the
//! first byte of a message says which. It knows no sockets, and no processes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::frame::{Opcode, Violation, frame};
use crate::console::Size;

/// What a client writes for the process to read.
const STDIN: u8 = 0;
/// What the process writes.
pub(super) const STDOUT: u8 = 1;
/// The same of its standard error.
pub(super) const STDERR: u8 = 2;
/// How it has ended, or why it was not started.
pub(super) const ERROR: u8 = 3;
/// How large the client's screen is.
const RESIZE: u8 = 4;
/// That a channel has ended, from version 5 on.
const CLOSE: u8 = 255;

/// The longest message that is no input: a size takes 30 bytes.
const SHORT_BYTES: usize = 1024;

/// A way to have channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protocol {
    /// What clients call it.
    pub(super) name: &'static str,
    /// Whether messages are text: a digit and base64.
    is_base64: bool,
    /// Whether the end is told as a `Status`; else a failure is told in words, and nothing otherwise.
    pub(super) has_status: bool,
    /// Whether a client can end the input and stay.
    has_close: bool,
}

impl Protocol {
    const V5: Protocol =
        Protocol { name: "v5.channel.k8s.io", is_base64: false, has_status: true, has_close: true };
    const V4: Protocol = Protocol { name: "v4.channel.k8s.io", has_close: false, ..Protocol::V5 };
    const V4_BASE64: Protocol =
        Protocol { name: "v4.base64.channel.k8s.io", is_base64: true, ..Protocol::V4 };
    const V1_BASE64: Protocol =
        Protocol { name: "base64.channel.k8s.io", has_status: false, ..Protocol::V4_BASE64 };

    const ALL: [Protocol; 5] =
        [Protocol::V5, Protocol::V4, Protocol::V4_BASE64, Protocol::UNNAMED, Protocol::V1_BASE64];

    /// That of clients that name none.
    pub(super) const UNNAMED: Protocol =
        Protocol { name: "channel.k8s.io", has_status: false, ..Protocol::V4 };

    pub(super) fn find(name: &str) -> Option<Self> {
        Protocol::ALL.into_iter().find(|known| known.name == name)
    }

    /// All that there are, for people.
    pub(super) fn names() -> String {
        format!("[{}]", Protocol::ALL.map(|known| known.name).join(" "))
    }

    /// The frame of a message on a channel.
    pub(super) fn message(self, channel: u8, bytes: &[u8]) -> Vec<u8> {
        match self.is_base64 {
            true => frame(Opcode::Text, &[&[b'0' + channel], STANDARD.encode(bytes).as_bytes()]),
            false => frame(Opcode::Binary, &[&[channel], bytes]),
        }
    }
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The process is to read this.
    Stdin(Vec<u8>),
    /// There is nothing more to be read.
    EndOfStdin,
    /// The screen is this large.
    Resize(Size),
}

/// Reads messages, which come in parts.
#[derive(Debug)]
pub(super) struct Inbound {
    protocol: Protocol,
    /// Of the message that is coming.
    channel: Option<u8>,
    /// Of base64: fewer than four letters, which mean nothing yet.
    rest: Vec<u8>,
    /// What has come of a short message.
    short: Vec<u8>,
}

impl Inbound {
    pub(super) fn new(protocol: Protocol) -> Self {
        Inbound { protocol, channel: None, rest: Vec::new(), short: Vec::new() }
    }

    /// Takes a part of a message. What is for no channel that there is, is passed over.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        is_end: bool,
    ) -> Result<Option<Input>, Violation> {
        if self.channel.is_none()
            && let Some((first, rest)) = bytes.split_first()
        {
            let digit = if self.protocol.is_base64 { b'0' } else { 0 };
            self.channel = Some(first.wrapping_sub(digit));
            bytes = rest;
        }
        let Some(channel) = self.channel else { return Ok(None) };
        if is_end {
            self.channel = None;
        }
        match channel {
            STDIN => {
                let bytes = self.decode(bytes, is_end)?;
                Ok((!bytes.is_empty()).then_some(Input::Stdin(bytes)))
            }
            RESIZE | CLOSE => {
                let bytes = self.decode(bytes, is_end)?;
                self.short.extend_from_slice(&bytes);
                if self.short.len() > SHORT_BYTES {
                    return Err(Violation::TooBig("a size or a signal takes a few bytes"));
                }
                if !is_end {
                    return Ok(None);
                }
                let message = std::mem::take(&mut self.short);
                Ok(match channel {
                    RESIZE => read_size(&message).map(Input::Resize),
                    _ => {
                        (self.protocol.has_close && message == [STDIN]).then_some(Input::EndOfStdin)
                    }
                })
            }
            _ => Ok(None),
        }
    }

    fn decode(&mut self, bytes: &[u8], is_end: bool) -> Result<Vec<u8>, Violation> {
        if !self.protocol.is_base64 {
            return Ok(bytes.to_vec());
        }
        self.rest.extend_from_slice(bytes);
        let count = if is_end { self.rest.len() } else { self.rest.len() / 4 * 4 };
        let decoded = STANDARD.decode(&self.rest[..count]);
        self.rest.drain(..count);
        decoded.map_err(|_| Violation::Data("a message is not base64"))
    }
}

/// As Go reads it: whatever case the names are in.
fn read_size(message: &[u8]) -> Option<Size> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(message) else { return None };
    let number = |name: &str| {
        let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| u16::try_from(value.as_u64()?).ok())
    };
    Some(Size { columns: number("width")?, rows: number("height")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbound(name: &str) -> Inbound {
        Inbound::new(Protocol::find(name).expect("a protocol"))
    }

    fn stdin(text: &str) -> Result<Option<Input>, Violation> {
        Ok(Some(Input::Stdin(text.as_bytes().to_vec())))
    }

    #[test]
    fn the_first_byte_says_which_channel() {
        let mut inbound = inbound("v5.channel.k8s.io");
        assert_eq!(inbound.take(b"\0hello", true), stdin("hello"));
        assert_eq!(inbound.take(b"", true), Ok(None), "an empty message means nothing");
        assert_eq!(inbound.take(b"", false), Ok(None), "the first part may be empty");
        assert_eq!(inbound.take(b"\0", false), Ok(None));
        assert_eq!(inbound.take(b"by parts", true), stdin("by parts"));
        assert_eq!(inbound.take(b"\x07for nobody", true), Ok(None));
        let size = br#"{"Width":80,"height":24}"#;
        let resized = inbound.take(&[b"\x04", &size[..]].concat(), true);
        assert_eq!(resized, Ok(Some(Input::Resize(Size { columns: 80, rows: 24 }))));
        assert_eq!(inbound.take(b"\x04{\"Width\":80,\"Height\":70000}", true), Ok(None));
        assert_eq!(inbound.take(b"\x04nonsense", true), Ok(None));
        assert_eq!(inbound.take(b"\xff\0", true), Ok(Some(Input::EndOfStdin)));
        assert_eq!(inbound.take(b"\xff\x01", true), Ok(None), "only the input has an end");
    }

    #[test]
    fn the_end_of_the_input_is_told_from_version_5_on() {
        assert_eq!(inbound("v4.channel.k8s.io").take(b"\xff\0", true), Ok(None));
    }

    #[test]
    fn a_size_without_end_is_refused() {
        let mut inbound = inbound("v5.channel.k8s.io");
        assert_eq!(inbound.take(b"\x04", false), Ok(None));
        let refused = (0..1_000).find_map(|_| inbound.take(&[b' '; 100], false).err());
        assert_eq!(refused.map(Violation::code), Some(1009));
        assert!(inbound.short.len() < 2 * SHORT_BYTES);
    }

    #[test]
    fn base64_is_read_however_it_is_cut() {
        let text = b"0aGVsbG8gd29ybGQ=";
        for cut in 1..text.len() {
            let mut inbound = inbound("v4.base64.channel.k8s.io");
            let mut read = Vec::new();
            for (part, is_end) in [(&text[..cut], false), (&text[cut..], true)] {
                if let Some(Input::Stdin(bytes)) = inbound.take(part, is_end).expect("base64") {
                    read.extend(bytes);
                }
            }
            assert_eq!(read, b"hello world", "cut at {cut}");
        }
        let refused = inbound("base64.channel.k8s.io").take(b"0a*", true).expect_err("no base64");
        assert_eq!(refused.code(), 1007);
    }

    #[test]
    fn messages_are_written_as_the_protocol_says() {
        let binary = Protocol::find("v5.channel.k8s.io").expect("a protocol");
        assert_eq!(binary.message(STDOUT, b"hi"), b"\x82\x03\x01hi");
        let text = Protocol::find("v4.base64.channel.k8s.io").expect("a protocol");
        assert_eq!(text.message(STDERR, b"hi"), b"\x81\x052aGk=");
    }
}
