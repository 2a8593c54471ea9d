//! A visit to a container over a WebSocket, from its first message to its last.
//!
//! # Guarantees
//!
//! - Nothing is kept for a client but one piece of output and one read of input: who does not read stops
//!   the process, and a process that does not read stops the client.
//! - The visit ends, and the program with it, when the client closes the connection or is gone, when the
//!   server ends, and when nothing was said for a long time.
//! - All that the program has written comes before how it ended.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep_until, timeout};

use super::channel::{ERROR, Inbound, Input, Protocol, STDERR, STDOUT};
use super::frame::{Decoder, Event, Opcode, Violation, frame};
use super::handshake::Agreed;
use crate::console::{Console, Errand, Piece, Session, Size, VisitOptions, Wanted};
use crate::status::Status;

/// What is read from the connection at once.
const READ_BYTES: usize = 16 << 10;

/// How many answers to a client's pings may wait. Who sends more without reading misses some.
const WAITING_PONGS: usize = 4;

/// How long a client may take to agree to the end.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// How patient a conversation is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long nothing may be said.
    pub(crate) idle_time: Duration,
    /// How often the client is given a sign of life. kubectl wants one every minute, and does not get
    /// any for its own asking while its input waits for a process that does not read.
    pub(crate) sign_of_life: Duration,
}

/// A visit that was agreed on.
pub(crate) struct Conversation {
    protocol: Protocol,
    console: Box<dyn Console>,
    errand: Errand,
    wanted: Wanted,
    patience: Patience,
}

/// Why a visit is over.
#[derive(Debug)]
enum Over {
    /// The program has ended, and that was said.
    Ended,
    /// The client has closed the connection.
    Closed,
    /// The client is gone.
    Gone,
    /// The client cannot be understood.
    Broken(Violation),
    /// Nothing was said for too long.
    Idle,
    /// The server ends.
    Drained,
}

impl Over {
    /// The code that the connection is closed with; none if there is nobody to tell.
    fn code(&self) -> Option<u16> {
        match self {
            Over::Ended | Over::Closed => Some(1000),
            Over::Idle | Over::Drained => Some(1001),
            Over::Broken(violation) => Some(violation.code()),
            Over::Gone => None,
        }
    }
}

impl Conversation {
    pub(crate) fn new(
        agreed: &Agreed,
        console: Box<dyn Console>,
        options: VisitOptions,
        patience: Patience,
    ) -> Self {
        let VisitOptions { errand, wanted, .. } = options;
        Conversation { protocol: agreed.protocol, console, errand, wanted, patience }
    }

    /// Has the conversation, until it is over or `drained` is there.
    pub(crate) async fn run<C>(self, connection: C, drained: impl Future<Output = ()>)
    where
        C: AsyncRead + AsyncWrite,
    {
        let (reader, writer) = split(connection);
        let mut ear = Ear::new(reader);
        let mut writer = Writer { to: writer, protocol: self.protocol, is_within: false };
        let over = tokio::select! {
            over = self.visit(&mut ear, &mut writer) => over,
            () = drained => Over::Drained,
        };
        tracing::debug!(?over, "a visit to a container is over");
        // The other half of a frame cannot be told from what is put in its place.
        if let Some(code) = over.code().filter(|_| !writer.is_within) {
            let parting = async {
                let close = frame(Opcode::Close, &[&code.to_be_bytes()]);
                if writer.write(&close).await.is_ok() && !matches!(over, Over::Closed) {
                    ear.hear_out().await;
                }
                let _ = writer.to.shutdown().await;
            };
            let _ = timeout(CLOSING_TIME, parting).await;
        }
    }

    async fn visit<C>(self, ear: &mut Ear<C>, writer: &mut Writer<C>) -> Over
    where
        C: AsyncRead + AsyncWrite,
    {
        let Conversation { protocol, console, errand, wanted, patience } = self;
        // As a kubelet does, so that the client knows that it can begin.
        let hello = match wanted {
            Wanted { stdout: true, .. } => STDOUT,
            Wanted { stderr: true, .. } => STDERR,
            _ => ERROR,
        };
        if writer.say(hello, b"").await.is_err() {
            return Over::Gone;
        }
        let (what, command) = match &errand {
            Errand::Exec { command } => ("error executing command in container", command.join(" ")),
            Errand::Attach => ("error attaching to container", String::new()),
        };
        let Session { stdin, output, resize } = match console.visit(errand, wanted).await {
            Ok(session) => session,
            Err(why) => return writer.finish(&Status::internal(format!("{what}: {why}"))).await,
        };
        let spoken = Mutex::new(Instant::now());
        let (pongs, asked) = mpsc::channel(WAITING_PONGS);
        let inbound = Inbound::new(protocol);
        let mut listener = Listener { stdin, resize, inbound, pongs, spoken: &spoken };
        let mut speaker = Speaker { writer, wanted, what, command, spoken: &spoken };
        tokio::select! {
            over = speaker.speak(output, asked, patience.sign_of_life) => over,
            over = listener.listen(ear) => over,
            () = silence(&spoken, patience.idle_time) => Over::Idle,
        }
    }
}

/// Waits until nothing was said for so long.
async fn silence(spoken: &Mutex<Instant>, idle_time: Duration) {
    loop {
        let last = *spoken.lock().expect("nobody panics with it");
        if last.elapsed() >= idle_time {
            return;
        }
        sleep_until(last + idle_time).await;
    }
}

/// Reads what a client says. Whatever it is interrupted in, it goes on where it was.
struct Ear<C> {
    from: ReadHalf<C>,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// The part of the buffer that was not looked at.
    left: Range<usize>,
}

/// Something that a client has said.
enum Heard {
    Data { bytes: Vec<u8>, is_end: bool },
    Ping(Vec<u8>),
    Pong,
    Close,
}

impl<C: AsyncRead> Ear<C> {
    fn new(from: ReadHalf<C>) -> Self {
        Ear { from, decoder: Decoder::default(), buffer: vec![0; READ_BYTES], left: 0..0 }
    }

    async fn next(&mut self) -> Result<Heard, Over> {
        loop {
            let mut input = &mut self.buffer[self.left.clone()];
            let before = input.len();
            let event = self.decoder.next(&mut input).map_err(Over::Broken)?;
            self.left.start += before - input.len();
            match event {
                Some(Event::Data { bytes, is_end }) => {
                    return Ok(Heard::Data { bytes: bytes.to_vec(), is_end });
                }
                Some(Event::Ping(payload)) => return Ok(Heard::Ping(payload)),
                Some(Event::Pong) => return Ok(Heard::Pong),
                Some(Event::Close) => return Ok(Heard::Close),
                None => {}
            }
            match self.from.read(&mut self.buffer).await {
                Ok(count @ 1..) => self.left = 0..count,
                Ok(_) | Err(_) => return Err(Over::Gone),
            }
        }
    }

    /// Passes over what a client still has to say, until he agrees to the end.
    async fn hear_out(&mut self) {
        while let Ok(Heard::Data { .. } | Heard::Ping(_) | Heard::Pong) = self.next().await {}
    }
}

/// Who listens to the client.
struct Listener<'s> {
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    resize: Option<Box<dyn Fn(Size) + Send + Sync>>,
    inbound: Inbound,
    pongs: mpsc::Sender<Vec<u8>>,
    spoken: &'s Mutex<Instant>,
}

impl Listener<'_> {
    /// Does what the client says, until he is done.
    async fn listen<C: AsyncRead>(&mut self, ear: &mut Ear<C>) -> Over {
        loop {
            match ear.next().await {
                Ok(Heard::Data { bytes, is_end }) => {
                    *self.spoken.lock().expect("nobody panics with it") = Instant::now();
                    match self.inbound.take(&bytes, is_end) {
                        Ok(Some(said)) => self.hear(said).await,
                        Ok(None) => {}
                        Err(violation) => return Over::Broken(violation),
                    }
                }
                Ok(Heard::Ping(payload)) => drop(self.pongs.try_send(payload)),
                Ok(Heard::Pong) => {}
                Ok(Heard::Close) => return Over::Closed,
                Err(over) => return over,
            }
        }
    }

    async fn hear(&mut self, said: Input) {
        match said {
            Input::Stdin(bytes) => {
                if let Some(stdin) = &mut self.stdin
                    && stdin.write_all(&bytes).await.is_err()
                {
                    // Who has closed his input does not want any; the rest is passed over.
                    self.stdin = None;
                }
            }
            Input::EndOfStdin => self.stdin = None,
            Input::Resize(size) => self.resize.iter().for_each(|resize| resize(size)),
        }
    }
}

/// Who tells the client what the program says.
struct Speaker<'s, C> {
    writer: &'s mut Writer<C>,
    wanted: Wanted,
    /// What has failed if it fails, and the command, for people.
    what: &'static str,
    command: String,
    spoken: &'s Mutex<Instant>,
}

impl<C: AsyncWrite> Speaker<'_, C> {
    /// Tells all of it, until the end is told.
    async fn speak(
        &mut self,
        mut output: Pin<Box<dyn Stream<Item = Piece> + Send>>,
        mut asked: mpsc::Receiver<Vec<u8>>,
        sign_of_life: Duration,
    ) -> Over {
        let mut signs = interval_at(Instant::now() + sign_of_life, sign_of_life);
        loop {
            let said = tokio::select! {
                piece = output.next() => self.tell(piece).await,
                Some(payload) = asked.recv() => self.pong(&payload).await,
                // One that nobody has asked for is a sign of life as well (RFC 6455, 5.5.3).
                _ = signs.tick() => self.pong(&[]).await,
            };
            if let Err(over) = said {
                return over;
            }
        }
    }

    async fn tell(&mut self, piece: Option<Piece>) -> Result<(), Over> {
        *self.spoken.lock().expect("nobody panics with it") = Instant::now();
        let status = match piece {
            Some(Piece::Stdout(bytes)) if self.wanted.stdout => {
                return self.writer.say(STDOUT, &bytes).await.map_err(|_| Over::Gone);
            }
            Some(Piece::Stderr(bytes)) if self.wanted.stderr => {
                return self.writer.say(STDERR, &bytes).await.map_err(|_| Over::Gone);
            }
            Some(Piece::Stdout(_) | Piece::Stderr(_)) => return Ok(()),
            Some(Piece::Exited(0)) | None => Status::success_of_a_program(),
            Some(Piece::Exited(code)) => Status::exited(code, &self.command),
            Some(Piece::Lost(why)) => Status::internal(format!("{}: {why}", self.what)),
        };
        Err(self.writer.finish(&status).await)
    }

    async fn pong(&mut self, payload: &[u8]) -> Result<(), Over> {
        self.writer.write(&frame(Opcode::Pong, &[payload])).await.map_err(|_| Over::Gone)
    }
}

/// Who writes to the client.
struct Writer<C> {
    to: WriteHalf<C>,
    protocol: Protocol,
    /// Whether a frame was begun and not ended.
    is_within: bool,
}

impl<C: AsyncWrite> Writer<C> {
    async fn say(&mut self, channel: u8, bytes: &[u8]) -> std::io::Result<()> {
        let message = self.protocol.message(channel, bytes);
        self.write(&message).await
    }

    /// Says how it has ended.
    async fn finish(&mut self, status: &Status) -> Over {
        let said = match self.protocol.has_status {
            true => self.say(ERROR, &status.to_json()).await,
            false if status.is_failure() => self.say(ERROR, status.message().as_bytes()).await,
            false => Ok(()),
        };
        if said.is_ok() { Over::Ended } else { Over::Gone }
    }

    async fn write(&mut self, frame: &[u8]) -> std::io::Result<()> {
        self.is_within = true;
        self.to.write_all(frame).await?;
        self.to.flush().await?;
        self.is_within = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
