//! Conversations with a client that the test plays, and with programs that it plays, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

/// What a program does.
#[derive(Clone, Copy)]
enum Play {
    /// Says what it reads, and exits with 7 at the end of that.
    Echo,
    /// Speaks without end.
    Loud,
    /// Reads nothing, and never ends.
    Deaf,
    /// Says something on both outputs, and exits with 0.
    Both,
    /// Does not start.
    Missing,
}

#[derive(Clone, Default)]
struct Seen {
    pieces: Arc<AtomicUsize>,
    sizes: Arc<Mutex<Vec<Size>>>,
    ended: Arc<Mutex<Option<oneshot::Sender<()>>>>,
}

struct Player {
    play: Play,
    seen: Seen,
}

/// Tells that the program was ended.
struct Told(Seen);

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(ended) = self.0.ended.lock().expect("nobody panics").take() {
            let _ = ended.send(());
        }
    }
}

impl Console for Player {
    fn visit(
        self: Box<Self>,
        _: Errand,
        wanted: Wanted,
    ) -> BoxFuture<'static, Result<Session, String>> {
        let Player { play, seen } = *self;
        let (typed, reads) = duplex(100);
        let told = Told(seen.clone());
        let text = |text: &'static str| Bytes::from_static(text.as_bytes());
        let output: Pin<Box<dyn futures_util::Stream<Item = Piece> + Send>> = match play {
            Play::Missing => return Box::pin(async { Err("there is no such program".to_owned()) }),
            Play::Both => {
                let pieces =
                    [Piece::Stdout(text("out")), Piece::Stderr(text("err")), Piece::Exited(0)];
                Box::pin(stream::iter(pieces).map(move |piece| (piece, &told).0))
            }
            Play::Deaf => Box::pin(stream::pending().map(move |piece| (piece, &told, &reads).0)),
            Play::Loud => Box::pin(stream::repeat_with(move || {
                told.0.pieces.fetch_add(1, Ordering::Relaxed);
                Piece::Stdout(Bytes::from(vec![b'x'; 1000]))
            })),
            Play::Echo => Box::pin(stream::unfold(Some((reads, told)), async |state| {
                let (mut reads, told) = state?;
                let mut buffer = [0; 10];
                match reads.read(&mut buffer).await {
                    Ok(count @ 1..) => {
                        let piece = Piece::Stdout(Bytes::copy_from_slice(&buffer[..count]));
                        Some((piece, Some((reads, told))))
                    }
                    _ => Some((Piece::Exited(7), None)),
                }
            })),
        };
        let resize = move |size| seen.sizes.lock().expect("nobody panics").push(size);
        let stdin = wanted.stdin.then(|| Box::pin(typed) as Pin<Box<dyn AsyncWrite + Send>>);
        let session = Session { stdin, output, resize: Some(Box::new(resize)) };
        Box::pin(async { Ok(session) })
    }
}

const ALL: Wanted = Wanted { stdin: true, stdout: true, stderr: true, tty: false };

const PATIENCE: Patience =
    Patience { idle_time: Duration::from_secs(3600), sign_of_life: Duration::from_secs(3600) };

/// The test's end of a conversation.
struct Client {
    stream: DuplexStream,
    conversation: JoinHandle<()>,
    seen: Seen,
    ended: oneshot::Receiver<()>,
    drain: Option<oneshot::Sender<()>>,
}

impl Client {
    fn begin(protocol: &str, play: Play, wanted: Wanted, patience: Patience) -> Self {
        let (stream, server) = duplex(4096);
        let (ended, is_ended) = oneshot::channel();
        let seen = Seen { ended: Arc::new(Mutex::new(Some(ended))), ..Seen::default() };
        let conversation = Conversation {
            protocol: Protocol::find(protocol).expect("a protocol"),
            console: Box::new(Player { play, seen: seen.clone() }),
            errand: Errand::Exec { command: vec!["sh".into(), "-c".into()] },
            wanted,
            patience,
        };
        let (drain, drained) = oneshot::channel();
        let drained = async {
            if drained.await.is_err() {
                std::future::pending().await
            }
        };
        let conversation = tokio::spawn(conversation.run(server, drained));
        Client { stream, conversation, seen, ended: is_ended, drain: Some(drain) }
    }

    fn usual(play: Play) -> Self {
        Self::begin("v5.channel.k8s.io", play, ALL, PATIENCE)
    }

    async fn send(&mut self, first: u8, payload: &[u8]) {
        // A mask of zeroes is one.
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..=125 => frame.push(0x80 | short as u8),
            long => frame.extend([&[0x80 | 127][..], &(long as u64).to_be_bytes()].concat()),
        }
        frame.extend([0; 4]);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.expect("it listens");
    }

    /// The next frame: its first byte, and what is in it.
    async fn next(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).await.expect("a frame");
        let length = match head[1] {
            126 => self.stream.read_u16().await.expect("a length").into(),
            127 => self.stream.read_u64().await.expect("a length") as usize,
            short => short.into(),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.expect("a payload");
        (head[0], payload)
    }

    /// Everything on one channel until the connection is closed, and the code of that.
    async fn all(&mut self) -> ([Vec<u8>; 4], u16) {
        let mut channels = [const { Vec::new() }; 4];
        loop {
            match self.next().await {
                (0x82, message) => channels[usize::from(message[0])].extend(&message[1..]),
                (0x88, code) => {
                    return (channels, u16::from_be_bytes([code[0], code[1]]));
                }
                (0x8a, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn status(channels: &[Vec<u8>; 4]) -> Value {
    serde_json::from_slice(&channels[3]).expect("a Status")
}

#[tokio::test]
async fn input_goes_in_and_output_comes_out_until_the_exit_code() {
    let mut client = Client::usual(Play::Echo);
    assert_eq!(client.next().await, (0x82, vec![1]), "a sign that it has begun");
    client.send(0x82, b"\0hello, ").await;
    client.send(0x02, b"\0wor").await;
    client.send(0x80, b"ld").await;
    client.send(0x82, b"\x04{\"Width\":80,\"Height\":24}").await;
    client.send(0x82, b"\x09for nobody").await;
    client.send(0x82, b"\xff\0").await;
    let (channels, code) = client.all().await;
    assert_eq!((&channels[1][..], code), (&b"hello, world"[..], 1000));
    let status = status(&channels);
    assert_eq!(
        (&status["status"], &status["reason"], &status["details"]["causes"]),
        (
            &json!("Failure"),
            &json!("NonZeroExitCode"),
            &json!([{"reason": "ExitCode", "message": "7"}])
        )
    );
    assert_eq!(*client.seen.sizes.lock().unwrap(), [Size { columns: 80, rows: 24 }]);
    client.send(0x88, b"\x03\xe8").await;
    client.conversation.await.expect("it has ended");
}

#[tokio::test]
async fn only_what_is_wanted_is_told_and_success_is_told_by_protocol() {
    let wanted = Wanted { stdout: false, ..ALL };
    for (protocol, expected) in [("v4.channel.k8s.io", true), ("channel.k8s.io", false)] {
        let mut client = Client::begin(protocol, Play::Both, wanted, PATIENCE);
        let (channels, code) = client.all().await;
        assert_eq!((&channels[1][..], &channels[2][..], code), (&b""[..], &b"err"[..], 1000));
        match expected {
            true => assert_eq!(status(&channels)["status"], "Success"),
            false => assert!(channels[3].is_empty()),
        }
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let expected = "Internal error occurred: error executing command in container: there is no \
                    such program";
    let mut client = Client::usual(Play::Missing);
    assert_eq!(status(&client.all().await.0)["message"], expected);
    let mut client = Client::begin("channel.k8s.io", Play::Missing, ALL, PATIENCE);
    assert_eq!(client.all().await.0[3], expected.as_bytes());
}

#[tokio::test]
async fn who_does_not_read_stops_the_program() {
    let mut client = Client::usual(Play::Loud);
    client.next().await;
    let mut before = usize::MAX;
    // Until it stays as it is.
    while before != client.seen.pieces.load(Ordering::Relaxed) {
        before = client.seen.pieces.load(Ordering::Relaxed);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert!(before < 10, "{before} pieces for a buffer of 4096 bytes");
    // And goes on with who reads again.
    for _ in 0..20 {
        client.next().await;
    }
    assert!(client.seen.pieces.load(Ordering::Relaxed) > before);
    // Whose frame is not taken whole cannot be told anything.
    client.drain.take().expect("it was not used").send(()).expect("it runs");
    (&mut client.ended).await.expect("it is told");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_stops_the_client_who_still_has_signs_of_life() {
    let patience = Patience { sign_of_life: Duration::from_secs(10), ..PATIENCE };
    let mut client = Client::begin("v5.channel.k8s.io", Play::Deaf, ALL, patience);
    client.next().await;
    let (mut reader, mut writer) = split(client.stream);
    let sending = async {
        let head = [&[0x82, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[0; 5]].concat();
        writer.write_all(&head).await.expect("it listens");
        let mut sent = 0;
        let stuck = async {
            loop {
                sent += writer.write(&[0; 1000]).await.expect("it listens");
            }
        };
        let stuck: Result<(), _> = timeout(Duration::from_secs(60), stuck).await;
        assert!(stuck.is_err() && sent < 64 << 10, "{sent} bytes");
    };
    let signs = async {
        for _ in 0..5 {
            let mut sign = [0; 2];
            reader.read_exact(&mut sign).await.expect("a sign");
            assert_eq!(sign, [0x8a, 0]);
        }
    };
    tokio::join!(sending, signs);
    // Who goes away without a word ends it, although nobody reads what he has sent.
    drop((reader, writer));
    (&mut client.ended).await.expect("it is told");
}

#[tokio::test]
async fn pings_are_answered_and_a_close_ends_the_program() {
    let mut client = Client::usual(Play::Deaf);
    client.next().await;
    client.send(0x89, b"there?").await;
    assert_eq!(client.next().await, (0x8a, b"there?".to_vec()));
    client.send(0x8a, b"").await;
    client.send(0x88, b"\x03\xe8bye").await;
    assert_eq!(client.next().await, (0x88, vec![0x03, 0xe8]));
    (&mut client.ended).await.expect("it is told");
    client.conversation.await.expect("it has ended");
}

#[tokio::test]
async fn who_is_gone_without_a_word_ends_the_program() {
    let mut client = Client::usual(Play::Deaf);
    client.next().await;
    drop(client.stream);
    client.ended.await.expect("it is told");
    client.conversation.await.expect("it has ended");
}

#[tokio::test]
async fn the_end_of_the_server_ends_the_program() {
    let mut client = Client::usual(Play::Deaf);
    client.next().await;
    client.drain.take().expect("it was not used").send(()).expect("it runs");
    assert_eq!(client.all().await.1, 1001);
    (&mut client.ended).await.expect("it is told");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_for_hours_is_sent_away() {
    let mut client = Client::usual(Play::Deaf);
    client.next().await;
    tokio::time::sleep(Duration::from_secs(3000)).await;
    client.send(0x82, b"\0").await;
    client.send(0x89, b"").await;
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert!(client.ended.try_recv().is_err(), "it has said something meanwhile");
    assert_eq!(client.all().await.1, 1001);
    (&mut client.ended).await.expect("it is told");
}

#[tokio::test]
async fn who_cannot_be_understood_is_told_so_and_the_program_ends() {
    let rows: [(&[u8], u16); 5] = [
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
        (&[0x82, 0x01, 0x00], 1002),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002),
        (&[0x80, 0x80, 0, 0, 0, 0], 1002),
        (&[0x89, 0xfe, 0x10, 0x00, 0, 0, 0, 0], 1002),
    ];
    for (bytes, expected) in rows {
        let mut client = Client::usual(Play::Deaf);
        client.stream.write_all(bytes).await.expect("it listens");
        assert_eq!(client.all().await.1, expected, "{bytes:?}");
        (&mut client.ended).await.expect("it is told");
    }
    let mut client = Client::usual(Play::Deaf);
    client.send(0x82, &[&[4][..], &[b' '; 100_000]].concat()).await;
    assert_eq!(client.all().await.1, 1009);
    let mut client = Client::begin("v4.base64.channel.k8s.io", Play::Deaf, ALL, PATIENCE);
    assert_eq!(client.next().await, (0x81, b"1".to_vec()));
    client.send(0x81, b"0****").await;
    assert_eq!(client.all().await.1, 1007);
}
