//! Frames that are read whole, byte by byte and in pieces, and those that are refused.

use proptest::prelude::*;

use super::*;

/// A frame as a client sends it.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        middle @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// What a client has said, message by message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Message(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close,
}

/// Reads bytes that come in pieces of this many.
fn read(bytes: &[u8], piece: usize) -> Result<Vec<Said>, Violation> {
    let mut decoder = Decoder::default();
    let (mut said, mut message) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut piece = piece.to_vec();
        let mut input = &mut piece[..];
        while let Some(event) = decoder.next(&mut input)? {
            match event {
                Event::Data { bytes, is_end } => {
                    message.extend_from_slice(bytes);
                    if is_end {
                        said.push(Said::Message(std::mem::take(&mut message)));
                    }
                }
                Event::Ping(payload) => said.push(Said::Ping(payload)),
                Event::Pong => said.push(Said::Pong),
                Event::Close => said.push(Said::Close),
            }
        }
        assert!(input.is_empty(), "all is taken");
    }
    Ok(said)
}

/// The example of RFC 6455, 5.7.
#[test]
fn the_standards_example_is_read() {
    let frame = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(&frame, 100), Ok(vec![Said::Message(b"Hello".to_vec())]));
    assert_eq!(
        super::frame(Opcode::Text, &[b"Hel", b"lo"]),
        [b"\x81\x05".as_slice(), b"Hello"].concat()
    );
}

#[test]
fn a_message_in_parts_may_have_control_frames_within() {
    let frames = [
        masked(0x02, b"one "),
        masked(0x89, b"are you there"),
        masked(0x00, b""),
        masked(0x8a, b""),
        masked(0x80, b"two"),
        masked(0x82, b""),
        masked(0x88, b"\x03\xe8bye"),
    ]
    .concat();
    let expected = vec![
        Said::Ping(b"are you there".to_vec()),
        Said::Pong,
        Said::Message(b"one two".to_vec()),
        Said::Message(Vec::new()),
        Said::Close,
    ];
    for piece in [1, 2, 3, 7, frames.len()] {
        assert_eq!(read(&frames, piece), Ok(expected.clone()), "in pieces of {piece}");
    }
}

#[test]
fn what_breaks_the_standard_is_refused() {
    let long_ping = masked(0x89, &[0; 126]);
    let rows: [(&str, Vec<u8>); 10] = [
        ("not masked", vec![0x82, 0x01, 0x00]),
        ("an extension", masked(0xc2, b"x")),
        ("an unknown opcode", masked(0x83, b"x")),
        ("an unknown control opcode", masked(0x8b, b"x")),
        ("a long control frame", long_ping),
        ("a control frame in parts", masked(0x09, b"x")),
        ("the rest of none", masked(0x80, b"x")),
        ("a message within another", [masked(0x02, b"x"), masked(0x82, b"y")].concat()),
        ("a length with its first bit", vec![0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
        ("two rests", [masked(0x02, b"x"), masked(0x80, b"y"), masked(0x80, b"z")].concat()),
    ];
    for (what, bytes) in rows {
        for piece in [1, bytes.len()] {
            let refused = read(&bytes, piece).expect_err(what);
            assert_eq!(refused.code(), 1002, "{what}");
        }
    }
}

#[test]
fn of_a_frame_without_end_nothing_is_kept() {
    let mut decoder = Decoder::default();
    let mut head = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    let mut input = &mut head[..];
    assert_eq!(decoder.next(&mut input), Ok(None));
    for _ in 0..1_000 {
        let mut piece = [0; 4096];
        let mut input = &mut piece[..];
        match decoder.next(&mut input) {
            Ok(Some(Event::Data { bytes, is_end: false })) => assert_eq!(bytes.len(), 4096),
            other => panic!("{other:?}"),
        }
    }
    assert!(decoder.head.capacity() <= 64 && decoder.control.capacity() == 0);
}

proptest! {
    #[test]
    fn messages_of_any_length_come_whole_however_they_are_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..70_000), 1..4),
        piece in 1_usize..9_000,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|message| masked(0x82, message)).collect();
        let expected = messages.into_iter().map(Said::Message).collect();
        prop_assert_eq!(read(&bytes, piece), Ok(expected));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        piece in 1_usize..100,
    ) {
        let whole = read(&bytes, bytes.len().max(1));
        prop_assert_eq!(read(&bytes, piece).is_err(), whole.is_err());
    }
}
