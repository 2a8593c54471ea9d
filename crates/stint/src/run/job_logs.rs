//! What the containers of Jobs print, line by line, with the Job and the index in front.

use std::collections::HashSet;

use futures_util::AsyncBufReadExt;
use http::Request;
use kube::Client;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::pod_sight::PodSight;

/// Lines on their way; what waits stays in the log files.
const MAX_WAITING: usize = 256;

/// The longest line that is held; a longer one is shown in pieces.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Follows the logs of containers as they begin.
pub(crate) struct JobLogs {
    client: Client,
    begun: HashSet<(String, String)>,
    lines: Sender<Vec<u8>>,
}

impl JobLogs {
    /// And where the lines come from.
    pub(crate) fn new(client: Client) -> (Self, Receiver<Vec<u8>>) {
        let (lines, received) = channel(MAX_WAITING);
        (JobLogs { client, begun: HashSet::new(), lines }, received)
    }

    /// A Pod of a Job was seen.
    pub(crate) fn observe(&mut self, pod: &PodSight, title: &str) {
        for container in pod.begun_containers() {
            let key = (pod.uid().to_owned(), container.to_owned());
            if !self.begun.insert(key) {
                continue;
            }
            let prefix = match pod.index() {
                Some(index) => format!("[{title}/{index}] "),
                None => format!("[{}] ", pod.name()),
            };
            let (namespace, name) = (pod.namespace(), pod.name());
            let path = format!(
                "/api/v1/namespaces/{namespace}/pods/{name}/log?follow=true&container={container}"
            );
            tokio::spawn(follow(self.client.clone(), path, prefix, self.lines.clone()));
        }
    }
}

async fn follow(client: Client, path: String, prefix: String, lines: Sender<Vec<u8>>) {
    let Ok(request) = Request::get(path).body(Vec::new()) else { return };
    let Ok(log) = client.request_stream(request).await else { return };
    let mut log = std::pin::pin!(log);
    let mut line = prefix.clone().into_bytes();
    loop {
        let piece = match log.fill_buf().await {
            Ok(piece) if !piece.is_empty() => piece,
            _ => break,
        };
        let end = piece.iter().position(|byte| *byte == b'\n');
        let room = MAX_LINE_BYTES.saturating_sub(line.len()).max(1);
        let taken = end.map_or(piece.len(), |end| end + 1).min(room);
        line.extend_from_slice(&piece[..taken]);
        log.consume_unpin(taken);
        let is_whole = line.last() == Some(&b'\n');
        if is_whole || line.len() >= MAX_LINE_BYTES {
            if !is_whole {
                line.push(b'\n');
            }
            if lines.send(std::mem::replace(&mut line, prefix.clone().into_bytes())).await.is_err()
            {
                return;
            }
        }
    }
    if line.len() > prefix.len() {
        line.push(b'\n');
        let _ = lines.send(line).await;
    }
}
