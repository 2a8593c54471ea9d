//! Asks a server on loopback that speaks plain HTTP.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Whether it answers with 200.
pub(crate) async fn is_ok(port: u16, path: &str) -> bool {
    matches!(ask(port, path).await, Ok(answer) if answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"))
}

/// What it answers, head and all.
pub(crate) async fn ask(port: u16, path: &str) -> io::Result<Vec<u8>> {
    exchange(port, &format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")).await
}

/// What it answers to JSON, head and all.
pub(crate) async fn post(port: u16, path: &str, body: &str) -> io::Result<Vec<u8>> {
    let head = format!("POST {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: {}", body.len());
    exchange(port, &format!("{head}\r\nContent-Type: application/json\r\n\r\n{body}")).await
}

async fn exchange(port: u16, request: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}
