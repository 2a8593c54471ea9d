//! A bearer token in a file, as a Pod has that of its service account, and clients that show it.
//!
//! The client library sends what is in the file as it is, and a line break at its end makes a
//! header that cannot be sent. What a token is does not depend on white space around it, so it
//! is left out here, as client-go does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use kube::client::ClientBuilder;
use kube::config::AuthInfo;
use kube::{Client, Config};
use thiserror::Error;
use tower_layer::Layer;
use tower_service::Service;

use crate::reach::told;

/// How long a token is good for without another look at its file. Kubernetes asks clients to look
/// once a minute, as it writes a new token long before the old one ends.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// Why there is no client.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("cannot use the token in {}: {source}", path.display())]
    Token { path: PathBuf, source: io::Error },
    #[error("{}", told(.0))]
    Kube(#[from] kube::Error),
}

/// The client of a configuration.
pub(crate) fn client(mut config: Config) -> Result<Client, ClientError> {
    let Some(file) = take_token_file(&mut config.auth_info) else {
        return Ok(Client::try_from(config)?);
    };
    let path = PathBuf::from(file);
    let token = TokenFile::open(&path).map_err(|source| ClientError::Token { path, source })?;
    Ok(ClientBuilder::try_from(config)?.with_layer(&token).build())
}

/// The token file, if it is what counts: anything else that says who is asking goes before it,
/// but for a program that would be run.
fn take_token_file(info: &mut AuthInfo) -> Option<String> {
    let is_basic = info.username.is_some() && info.password.is_some();
    if info.auth_provider.is_some() || is_basic || info.token.is_some() {
        return None;
    }
    let file = info.token_file.take()?;
    info.exec = None;
    Some(file)
}

/// A token that is looked up in its file from time to time.
#[derive(Clone, Debug)]
struct TokenFile {
    path: PathBuf,
    last: Arc<Mutex<(HeaderValue, Instant)>>,
}

impl TokenFile {
    fn open(path: &Path) -> io::Result<Self> {
        let last = Arc::new(Mutex::new((read(path)?, Instant::now())));
        Ok(Self { path: path.to_owned(), last })
    }

    /// What to say at a time. A file that cannot be read any more leaves the last token: it may
    /// be being replaced.
    fn header(&self, now: Instant) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(last.1) >= READ_AGAIN
            && let Ok(header) = read(&self.path)
        {
            *last = (header, now);
        }
        last.0.clone()
    }
}

fn read(path: &Path) -> io::Result<HeaderValue> {
    let text = fs::read_to_string(path)?;
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let token = text.trim();
    if token.is_empty() {
        return Err(wrong("the file is empty"));
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|_| wrong("it has characters that no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}

impl<S> Layer<S> for TokenFile {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken { inner, token: self.clone() }
    }
}

/// A service whose requests bear the token.
#[derive(Clone, Debug)]
struct WithToken<S> {
    inner: S,
    token: TokenFile,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for WithToken<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let header = self.token.header(Instant::now());
        request.headers_mut().insert(AUTHORIZATION, header);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn white_space_around_a_token_is_no_part_of_it() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("token");
        for text in ["abc", "abc\n", " abc\r\n\n"] {
            fs::write(&path, text).expect("it can be written");
            assert_eq!(read(&path).expect("a token"), "Bearer abc", "{text:?}");
        }
        for (text, why) in [("\n", "empty"), ("a\nb", "characters")] {
            fs::write(&path, text).expect("it can be written");
            let said = read(&path).expect_err("it is no token").to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_token_is_read_again_after_a_minute_and_kept_while_there_is_none() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, "one\n").expect("it can be written");
        let token = TokenFile::open(&path).expect("a token");
        let start = Instant::now();
        fs::write(&path, "two\n").expect("it can be written");
        assert_eq!(token.header(start), "Bearer one");
        assert_eq!(token.header(start + 2 * READ_AGAIN), "Bearer two");
        fs::remove_file(&path).expect("it can be removed");
        assert_eq!(token.header(start + 4 * READ_AGAIN), "Bearer two");
    }

    #[test]
    fn a_token_file_counts_after_everything_that_is_written_down() {
        let file = || AuthInfo { token_file: Some("f".to_owned()), ..AuthInfo::default() };
        assert_eq!(take_token_file(&mut file()).as_deref(), Some("f"));
        let mut inline = AuthInfo { token: Some("t".to_owned().into()), ..file() };
        assert_eq!(take_token_file(&mut inline), None);
        assert_eq!(take_token_file(&mut AuthInfo::default()), None);
    }
}
