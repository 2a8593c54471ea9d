//! Large answers in fewer bytes, for clients that take them so: as kube-apiserver does it (KEP-156,
//! the gate APIResponseCompression), as fast as it goes rather than as small as it gets. An
//! answer is compressed as it is read: it is not in memory as a whole because of this.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, VARY};
use http::{HeaderMap, Response};

use super::body::Body;

/// Answers up to this size are sent as they are: what a smaller one saves on the wire is not
/// worth the time.
const THRESHOLD_BYTES: usize = 128 * 1024;

/// The fastest there is.
const LEVEL: Compression = Compression::new(1);

/// How much is compressed at a time of an answer that is there as a whole.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether a client takes answers so. As kube-apiserver reads the header, which knows no
/// preferences.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|coding| coding.trim() == "gzip"))
}

/// The same answer, compressed if it is large. What has no end is not.
pub(crate) fn compressed(answer: Response<Body>) -> Response<Body> {
    if answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let (body, is_compressed) = body.compressed_above(THRESHOLD_BYTES, Gzip::new);
    if is_compressed {
        mark(&mut head.headers);
    }
    Response::from_parts(head, body)
}

/// Says that a body is compressed.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// A text that is kept, compressed once.
pub(crate) fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything").into()
}

/// Pieces of an answer, compressed one by one.
pub(super) struct Gzip {
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    /// What is left of the piece under way.
    rest: Bytes,
    /// `None` after the last piece.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzip {
    pub(super) fn new(pieces: Box<dyn Iterator<Item = Bytes> + Send>) -> Self {
        let encoder = GzEncoder::new(Vec::new(), LEVEL);
        Gzip { pieces, rest: Bytes::new(), encoder: Some(encoder) }
    }
}

impl Iterator for Gzip {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let encoder = self.encoder.as_mut()?;
        loop {
            if self.rest.is_empty() {
                let Some(next) = self.pieces.next() else {
                    let encoder = self.encoder.take().expect("it is there");
                    return Some(encoder.finish().expect("memory takes everything").into());
                };
                self.rest = next;
            }
            let now = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
            encoder.write_all(&now).expect("memory takes everything");
            let made = std::mem::take(encoder.get_mut());
            if !made.is_empty() {
                return Some(made.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt;

    use super::*;

    async fn read(body: Body) -> Vec<u8> {
        let read = body.collect().await.expect("all of it");
        read.to_bytes().to_vec()
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * at % 251) as u8).collect()
    }

    #[tokio::test]
    async fn what_is_large_is_compressed_however_it_is_made() {
        for bytes in [0, 1, THRESHOLD_BYTES, THRESHOLD_BYTES + 1, 5 * THRESHOLD_BYTES] {
            let whole = text(bytes);
            let pieces: Vec<Bytes> = whole.chunks(50_000).map(Bytes::copy_from_slice).collect();
            let bodies = [Body::from(Bytes::from(whole.clone())), Body::pieces(pieces.into_iter())];
            for body in bodies {
                let answer = compressed(Response::new(body));
                let is_compressed = answer.headers().contains_key(CONTENT_ENCODING);
                assert_eq!(is_compressed, bytes > THRESHOLD_BYTES, "{bytes}");
                let vary = answer.headers().get(VARY).map(HeaderValue::as_bytes);
                assert_eq!(vary, is_compressed.then_some(&b"Accept-Encoding"[..]), "{bytes}");
                let mut got = read(answer.into_body()).await;
                if is_compressed {
                    let mut plain = Vec::new();
                    GzDecoder::new(&got[..]).read_to_end(&mut plain).expect("gzip");
                    got = plain;
                }
                assert!(got == whole, "{bytes} bytes came otherwise");
            }
        }
    }

    #[tokio::test]
    async fn what_has_no_end_is_not_compressed() {
        let large = Bytes::from(text(2 * THRESHOLD_BYTES));
        let body = Body::stream(futures_util::stream::iter([large.clone()]));
        let answer = compressed(Response::new(body));
        assert!(!answer.headers().contains_key(CONTENT_ENCODING));
        assert!(read(answer.into_body()).await == large);
    }

    #[test]
    fn pieces_are_made_as_they_are_read() {
        let mut made = 0;
        let piece = Bytes::from(text(100_000));
        let source = std::iter::from_fn(move || {
            made += 1;
            assert!(made < 100, "more was made than was asked for");
            Some(piece.clone())
        });
        let mut compressed = Gzip::new(Box::new(source));
        assert!(compressed.next().is_some_and(|piece| !piece.is_empty()));
    }

    #[test]
    fn only_the_word_itself_is_taken() {
        let rows = [
            ("gzip", true),
            ("deflate, gzip, br", true),
            ("gzip;q=1.0", false),
            ("identity", false),
            ("", false),
            ("xgzip", false),
        ];
        for (header, expected) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, header.parse().expect("a header"));
            assert_eq!(takes_gzip(&headers), expected, "{header}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
