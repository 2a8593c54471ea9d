//! From a request to who is asking. It must not know what the caller wants, or where tokens
//! are kept.

use super::{Acquaintance, Identity, Peer};
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, Method};
use ring::digest;
use std::fmt;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;

/// The paths that tell whether the server is well, and nothing else.
pub(crate) const HEALTH_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Why a caller is not known. The answer to all of it is 401 and [`Unauthorized::MESSAGE`]; the
/// reason is for the server's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unauthorized {
    /// Neither a certificate nor a token.
    #[error("the request has neither a client certificate nor a bearer token")]
    Anonymous,
    /// The Authorization header is not a bearer token.
    #[error("the Authorization header is not a bearer token")]
    Scheme,
    /// Nobody has this token.
    #[error("the bearer token is not known")]
    UnknownToken,
}

impl Unauthorized {
    /// The message of the answer, which says no more than kube-apiserver's.
    pub const MESSAGE: &'static str = "Unauthorized";
}

/// Whether a request is answered without knowing who asks: questions after the server's health.
pub fn is_public(method: &Method, path: &str) -> bool {
    (method == Method::GET || method == Method::HEAD) && HEALTH_PATHS.contains(&path)
}

/// Knows the callers by their tokens. Only hashes of the tokens are kept, so that no memory
/// dump or log gives one away.
pub struct Authenticator {
    tokens: Vec<(TokenHash, Identity)>,
}

impl Authenticator {
    /// Knows the bearers of these tokens. An empty token is nobody's.
    pub fn new<T: AsRef<str>>(tokens: impl IntoIterator<Item = (T, Identity)>) -> Self {
        let tokens = tokens
            .into_iter()
            .filter(|(token, _)| !token.as_ref().is_empty())
            .map(|(token, identity)| (TokenHash::of(token.as_ref()), identity))
            .collect();
        Authenticator { tokens }
    }

    /// Who is asking. What the connection proves goes before what the request says, as in
    /// kube-apiserver: a [`Peer`] in the extensions, then the Authorization header. An
    /// [`Acquaintance`] in the extensions is made with who is known.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Identity, Unauthorized> {
        let identity = self.identify(headers, extensions)?;
        if let Some(acquaintance) = extensions.get::<Acquaintance>() {
            acquaintance.make();
        }
        Ok(identity.clone())
    }

    fn identify<'a>(
        &'a self,
        headers: &HeaderMap,
        extensions: &'a Extensions,
    ) -> Result<&'a Identity, Unauthorized> {
        if let Some(identity) = extensions.get::<Peer>().and_then(Peer::identity) {
            return Ok(identity);
        }
        let token = bearer(headers)?;
        self.bearer_of(token).ok_or(Unauthorized::UnknownToken)
    }

    /// Who has this token. Every token is compared, and each as a whole, so that the time tells
    /// nothing.
    fn bearer_of(&self, token: &str) -> Option<&Identity> {
        let asked = TokenHash::of(token);
        let mut found = Choice::from(0);
        let mut place = 0u64;
        for (at, (hash, _)) in (0u64..).zip(&self.tokens) {
            let same = hash.0.ct_eq(&asked.0);
            place.conditional_assign(&at, same);
            found |= same;
        }
        let place = usize::try_from(place).expect("a place in a vector");
        bool::from(found).then(|| &self.tokens[place].1)
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<&str> = self.tokens.iter().map(|(_, who)| who.user.as_str()).collect();
        f.debug_struct("Authenticator").field("users", &users).finish_non_exhaustive()
    }
}

/// The SHA-256 of a token. Tokens are random and long: there is nothing to guess them from.
struct TokenHash([u8; digest::SHA256_OUTPUT_LEN]);

impl TokenHash {
    fn of(token: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, token.as_bytes());
        TokenHash(hash.as_ref().try_into().expect("a SHA-256 has this length"))
    }
}

/// The token of the Authorization header. The scheme may be written in any case, and what
/// follows the token is not looked at, as in kube-apiserver.
fn bearer(headers: &HeaderMap) -> Result<&str, Unauthorized> {
    let header = headers.get(AUTHORIZATION).ok_or(Unauthorized::Anonymous)?;
    let text = header.to_str().map_err(|_| Unauthorized::Scheme)?.trim();
    if text.is_empty() {
        return Err(Unauthorized::Anonymous);
    }
    let mut words = text.split(' ');
    let scheme = words.next().expect("a split has a first part");
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unauthorized::Scheme);
    }
    words.next().filter(|token| !token.is_empty()).ok_or(Unauthorized::Scheme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn authenticator() -> Authenticator {
        Authenticator::new([("aaaa", Identity::admin()), ("vvvv", Identity::view())])
    }

    fn ask(header: Option<&str>) -> Result<Identity, Unauthorized> {
        ask_as(header, None)
    }

    fn ask_as(header: Option<&str>, peer: Option<Peer>) -> Result<Identity, Unauthorized> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            let value = HeaderValue::from_bytes(header.as_bytes()).expect("a header");
            headers.insert(AUTHORIZATION, value);
        }
        let mut extensions = Extensions::new();
        if let Some(peer) = peer {
            extensions.insert(peer);
        }
        authenticator().authenticate(&headers, &extensions)
    }

    #[test]
    fn a_token_is_known_by_its_whole_text() {
        assert_eq!(ask(Some("Bearer aaaa")), Ok(Identity::admin()));
        assert_eq!(ask(Some("bearer vvvv")), Ok(Identity::view()));
        for wrong in ["Bearer aaa", "Bearer aaaaa", "Bearer AAAA", "Bearer vvvva"] {
            assert_eq!(ask(Some(wrong)), Err(Unauthorized::UnknownToken), "{wrong}");
        }
    }

    #[test]
    fn whoever_says_nothing_is_anonymous() {
        assert_eq!(ask(None), Err(Unauthorized::Anonymous));
        assert_eq!(ask(Some("  ")), Err(Unauthorized::Anonymous));
    }

    #[test]
    fn other_schemes_are_refused() {
        for wrong in ["Basic YTpi", "aaaa", "Bearer", "Bearer  aaaa", "Bearer\taaaa", "Bearer ä"] {
            assert!(ask(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_empty_token_is_nobodys() {
        let authenticator = Authenticator::new([("", Identity::admin())]);
        assert!(authenticator.bearer_of("").is_none());
    }

    #[test]
    fn the_connection_goes_before_the_token() {
        let address = "127.0.0.1:9".parse().expect("an address");
        let with = Peer::Remote { address, certificate: Some(Identity::edit()) };
        assert_eq!(ask_as(Some("Bearer aaaa"), Some(with)), Ok(Identity::edit()));
        let without = Peer::Remote { address, certificate: None };
        assert_eq!(ask_as(Some("Bearer aaaa"), Some(without.clone())), Ok(Identity::admin()));
        assert_eq!(ask_as(None, Some(without)), Err(Unauthorized::Anonymous));
        let inside = Peer::InProcess(Identity::controller());
        assert_eq!(ask_as(None, Some(inside)), Ok(Identity::controller()));
    }

    #[test]
    fn only_health_is_public() {
        for path in HEALTH_PATHS {
            assert!(is_public(&Method::GET, path), "{path}");
            assert!(!is_public(&Method::POST, path), "{path}");
        }
        for path in ["/version", "/metrics", "/livez/", "/livez/../api", "/Livez", "", "/", "/api"]
        {
            assert!(!is_public(&Method::GET, path), "{path}");
        }
    }

    #[test]
    fn nothing_that_is_printed_shows_a_token() {
        let printed = format!("{:?}", authenticator());
        assert!(printed.contains("admin") && !printed.contains("aaaa"), "{printed}");
    }
}
