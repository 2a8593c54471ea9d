//! One request by HTTP, over TLS or not. Of the answer only the code counts.

use std::io;

use k8s_openapi::api::core::v1::{HTTPGetAction, HTTPHeader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::tls;

/// How much of an answer's head is read: the first line is all that counts.
const HEAD_BYTES: usize = 512;

/// Sends a request and gives the code of the answer.
pub(super) async fn request(
    host: &str,
    port: u16,
    path: &str,
    get: &HTTPGetAction,
) -> io::Result<u16> {
    let stream = TcpStream::connect((host, port)).await?;
    match get.scheme.as_deref() {
        Some("HTTPS") => exchange(tls::connect(host, stream).await?, host, port, path, get).await,
        _ => exchange(stream, host, port, path, get).await,
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    port: u16,
    path: &str,
    get: &HTTPGetAction,
) -> io::Result<u16> {
    let is_plain = |text: &str| !text.contains(['\r', '\n']);
    let headers = get.http_headers.as_deref().unwrap_or_default();
    let own_host = headers.iter().find(|it| it.name.eq_ignore_ascii_case("host"));
    let host = own_host.map_or_else(|| format!("{host}:{port}"), |it| it.value.clone());
    let mut text =
        format!("GET {} HTTP/1.1\r\nHost: {host}\r\n", path.replace(['\r', '\n', ' '], "%20"));
    // An Accept that says nothing is a wish for none.
    let is_sent = |it: &&HTTPHeader| {
        let is_named = |name: &str| it.name.eq_ignore_ascii_case(name);
        !is_named("host") && (!is_named("accept") || !it.value.is_empty())
    };
    for header in headers.iter().filter(is_sent) {
        if is_plain(&header.name) && is_plain(&header.value) {
            text.push_str(&format!("{}: {}\r\n", header.name, header.value));
        }
    }
    if !headers.iter().any(|it| it.name.eq_ignore_ascii_case("user-agent")) {
        text.push_str("User-Agent: kube-probe/1.36\r\n");
    }
    if !headers.iter().any(|it| it.name.eq_ignore_ascii_case("accept")) {
        text.push_str("Accept: */*\r\n");
    }
    text.push_str("Connection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut head = Vec::new();
    let mut buffer = [0; HEAD_BYTES];
    while !head.contains(&b'\n') && head.len() < HEAD_BYTES {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let line = String::from_utf8_lossy(&head);
    let code = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    code.ok_or_else(|| io::Error::other("the answer is not HTTP"))
}
