//! The bearer tokens: one for each role, made at the first start, kept in a folder. It must not
//! know what a token opens.
//!
//! ```text
//! tokens/admin   the token of the role, and a newline; also edit, view, controller, node
//! ```

use super::private_file::{self, PrivateFileError};
use crate::access::{Identity, Role};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How many random bytes a token has: as many as the hash it is compared by.
const RANDOM_BYTES: usize = 32;

/// How long a token must be at least, in case somebody writes their own: 128 bits in
/// hexadecimal digits.
const MIN_CHARS: usize = 32;

/// How long a token may be: it must fit into a request's head with room to spare.
const MAX_CHARS: usize = 4096;

/// The folder inside the data folder.
const FOLDER: &str = "tokens";

/// Why there are no tokens.
#[derive(Debug, Error)]
pub enum TokensError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The operating system has no random bytes.
    #[error("cannot make a token: the operating system gives no random bytes")]
    Random,
    /// What is in a file cannot be a token.
    #[error(
        "{} holds no token: it must be {MIN_CHARS} to {MAX_CHARS} letters, digits and -._~+/=; \
         remove it to have a new one made", path.display()
    )]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// One token for each role.
#[derive(Clone)]
pub struct Tokens([(Role, String); Role::ALL.len()]);

impl Tokens {
    /// The tokens in `data_folder/tokens`. Those that are missing are made.
    pub fn open(data_folder: &Path) -> Result<Self, TokensError> {
        let folder = data_folder.join(FOLDER);
        private_file::create_folder(&folder)?;
        let tokens = Self::each(|role| {
            let path = folder.join(role.name());
            match private_file::read(&path)? {
                Some(text) => parse(&text).ok_or(TokensError::NoToken { path }),
                None => {
                    let token = make()?;
                    private_file::put(&path, &format!("{token}\n"))?;
                    Ok(token)
                }
            }
        })?;
        private_file::sync(&folder)?;
        Ok(tokens)
    }

    /// Tokens that are gone with the process. Nothing is written.
    pub fn in_memory() -> Result<Self, TokensError> {
        Self::each(|_| make())
    }

    /// The token of a role. It is a secret.
    pub fn get(&self, role: Role) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == role);
        &found.expect("every role has a token").1
    }

    /// Each token with whom it stands for, as the
    /// [`Authenticator`](crate::access::Authenticator) takes them. `node` is the name of the
    /// node, for that role.
    pub fn bearers(&self, node: &str) -> impl Iterator<Item = (&str, Identity)> {
        self.0.iter().map(move |(role, token)| (token.as_str(), Identity::of(*role, node)))
    }

    fn each(
        mut token: impl FnMut(Role) -> Result<String, TokensError>,
    ) -> Result<Self, TokensError> {
        let mut tokens = Role::ALL.map(|role| (role, String::new()));
        for (role, text) in &mut tokens {
            *text = token(*role)?;
        }
        Ok(Tokens(tokens))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// A new token.
fn make() -> Result<String, TokensError> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| TokensError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The token in a file, if it can be said in a header (RFC 6750, `b64token`).
fn parse(text: &str) -> Option<String> {
    let token = text.trim();
    let is_sayable = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let is_token = (MIN_CHARS..=MAX_CHARS).contains(&token.len()) && token.bytes().all(is_sayable);
    is_token.then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Authenticator, Unauthorized};
    use http::header::AUTHORIZATION;
    use http::{Extensions, HeaderMap};
    use std::collections::HashSet;
    use std::fs;

    #[test]
    fn tokens_are_made_once_and_are_all_different() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Tokens::open(folder.path()).expect("tokens");
        let second = Tokens::open(folder.path()).expect("tokens");
        assert_eq!(first.0, second.0);
        let other = Tokens::in_memory().expect("tokens");
        let all: HashSet<&str> =
            Role::ALL.iter().flat_map(|role| [first.get(*role), other.get(*role)]).collect();
        assert_eq!(all.len(), 2 * Role::ALL.len());
        assert!(all.iter().all(|token| token.len() == 2 * RANDOM_BYTES));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        Tokens::open(folder.path()).expect("tokens");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join(FOLDER)), 0o700);
        for role in Role::ALL {
            assert_eq!(mode(&folder.path().join(FOLDER).join(role.name())), 0o600);
        }
    }

    #[test]
    fn a_file_without_a_token_is_told_and_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        Tokens::open(folder.path()).expect("tokens");
        let path = folder.path().join("tokens/view");
        let long = "a".repeat(MAX_CHARS + 1);
        for wrong in ["", "\n", "short", "with a space and thirty-two characters", &long] {
            fs::write(&path, wrong).expect("written");
            let error = Tokens::open(folder.path()).expect_err("no token");
            assert!(error.to_string().contains("tokens/view"), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("readable"), wrong);
        }
        let own = "0123456789abcdef0123456789ABCDE=";
        fs::write(&path, format!("  {own}\r\n")).expect("written");
        assert_eq!(Tokens::open(folder.path()).expect("tokens").get(Role::View), own);
    }

    #[test]
    fn a_token_opens_for_its_role() {
        let tokens = Tokens::in_memory().expect("tokens");
        let authenticator = Authenticator::new(tokens.bearers("here"));
        let ask = |token: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
            authenticator.authenticate(&headers, &Extensions::new())
        };
        for role in Role::ALL {
            assert_eq!(ask(tokens.get(role)), Ok(Identity::of(role, "here")));
        }
        let other = Tokens::in_memory().expect("tokens");
        assert_eq!(ask(other.get(Role::Admin)), Err(Unauthorized::UnknownToken));
    }

    #[test]
    fn nothing_that_is_printed_shows_a_token() {
        let tokens = Tokens::in_memory().expect("tokens");
        assert!(!format!("{tokens:?}").contains(tokens.get(Role::Admin)));
    }
}
