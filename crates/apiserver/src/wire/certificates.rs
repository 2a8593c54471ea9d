//! The certificates of the embedded cluster: kept in a folder, made when they are missing,
//! remade in time. It must not know how they are signed, or how a connection uses them.
//!
//! ```text
//! pki/ca.pem      the authority and its key
//! pki/ca.crt      the authority alone, for `curl --cacert`
//! pki/server.pem  the server's certificate and key
//! pki/admin.pem   a client's certificate and key, for `curl --cert`; also edit, view
//! ```
//!
//! A certificate and its key are one file, so that a crash cannot leave one without the other.

use super::issuer::{self, Issuer};
use super::private_file::{self, PrivateFileError};
use super::{IssueError, KeyedCertificate, KeyedCertificateError, ServerNames};
use crate::access::{Identity, Role};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// How long before its end a certificate is remade: long enough that a server which is started
/// once a month never serves one that has ended.
const REMAKE_AHEAD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The folder inside the data folder.
const FOLDER: &str = "pki";

/// Why there are no certificates.
#[derive(Debug, Error)]
pub enum CertificatesError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The authority on disk is not one. It is not replaced by itself, because every client
    /// trusts it.
    #[error(
        "{} is damaged: {source}; restore it from a copy, or remove it to have a new authority \
         made, which every client then needs", path.display()
    )]
    DamagedAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KeyedCertificateError,
    },
}

/// The certificates that the server and its clients know each other by.
#[derive(Clone, Debug)]
pub struct Certificates {
    authority_pem: String,
    authority: CertificateDer<'static>,
    server: KeyedCertificate,
    clients: [(Role, KeyedCertificate); 3],
}

impl Certificates {
    /// The certificates in `data_folder/pki`, as good as new: what is missing is made, and what
    /// ends within 30 days, or has other names, or another authority, is remade.
    pub fn open(
        data_folder: &Path,
        names: &ServerNames,
        now: SystemTime,
    ) -> Result<Self, CertificatesError> {
        let folder = data_folder.join(FOLDER);
        private_file::create_folder(&folder)?;
        let gathered = Self::gather(&Shelf { folder: Some(folder.clone()) }, names, now)?;
        private_file::sync(&folder)?;
        Ok(gathered)
    }

    /// Certificates that are gone with the process. Nothing is written.
    pub fn in_memory(names: &ServerNames, now: SystemTime) -> Result<Self, CertificatesError> {
        Self::gather(&Shelf { folder: None }, names, now)
    }

    /// The authority's certificate, which clients trust (`kube-root-ca.crt`).
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The authority's certificate, as bytes.
    pub(super) fn authority(&self) -> &CertificateDer<'static> {
        &self.authority
    }

    /// The server's certificate.
    pub fn server(&self) -> &KeyedCertificate {
        &self.server
    }

    /// The certificate of the usual bearer of a role. Controller and node have none: they are
    /// parts of the process.
    pub fn client(&self, role: Role) -> Option<&KeyedCertificate> {
        self.clients.iter().find(|(known, _)| *known == role).map(|(_, keyed)| keyed)
    }

    fn gather(
        shelf: &Shelf,
        names: &ServerNames,
        now: SystemTime,
    ) -> Result<Self, CertificatesError> {
        let authority = shelf.authority(now)?;
        let issuer = Issuer::new(&authority)?;
        let is_good = |keyed: &KeyedCertificate| {
            Ok(keyed.is_signed_by(issuer.certificate())? && keyed.lasts(now, REMAKE_AHEAD)?)
        };
        let server = shelf.take_or_make(
            "server.pem",
            |keyed| Ok(is_good(keyed)? && keyed.names()? == *names),
            || issuer.server(names, now),
        )?;
        let client = |file: &str, identity: Identity| {
            shelf.take_or_make(file, is_good, || issuer.client(&identity, now))
        };
        let clients = [
            (Role::Admin, client("admin.pem", Identity::admin())?),
            (Role::Edit, client("edit.pem", Identity::edit())?),
            (Role::View, client("view.pem", Identity::view())?),
        ];
        Ok(Certificates {
            authority_pem: authority.certificate_pem().to_owned(),
            authority: issuer.certificate().clone(),
            server,
            clients,
        })
    }
}

/// Where certificates are kept: a folder, or nowhere.
struct Shelf {
    folder: Option<PathBuf>,
}

impl Shelf {
    /// The authority that is there, or a new one.
    fn authority(&self, now: SystemTime) -> Result<KeyedCertificate, CertificatesError> {
        let found = match self.path("ca.pem") {
            Some(path) => match private_file::read(&path)? {
                Some(text) => {
                    let damaged = |source| CertificatesError::DamagedAuthority { path, source };
                    let lasting = KeyedCertificate::from_text(&text)
                        .and_then(|keyed| Ok((keyed.not_after()? > now + REMAKE_AHEAD, keyed)));
                    let (is_lasting, keyed) = lasting.map_err(damaged)?;
                    is_lasting.then_some(keyed)
                }
                None => None,
            },
            None => None,
        };
        let authority = match found {
            Some(authority) => authority,
            None => {
                let made = issuer::make_authority(now)?;
                self.put("ca.pem", &made.to_text())?;
                made
            }
        };
        if let Some(path) = self.path("ca.crt")
            && private_file::read(&path)?.as_deref() != Some(authority.certificate_pem())
        {
            self.put("ca.crt", authority.certificate_pem())?;
        }
        Ok(authority)
    }

    /// What is in a file, if it is good; otherwise what is made instead. A certificate can
    /// always be made anew, so that a damaged one is no error.
    fn take_or_make(
        &self,
        file: &str,
        is_good: impl Fn(&KeyedCertificate) -> Result<bool, KeyedCertificateError>,
        make: impl FnOnce() -> Result<KeyedCertificate, IssueError>,
    ) -> Result<KeyedCertificate, CertificatesError> {
        if let Some(path) = self.path(file)
            && let Some(text) = private_file::read(&path)?
        {
            match KeyedCertificate::from_text(&text).and_then(|keyed| Ok((is_good(&keyed)?, keyed)))
            {
                Ok((true, keyed)) => return Ok(keyed),
                Ok((false, _)) => tracing::info!(file = %path.display(), "certificate is remade"),
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "certificate is damaged, remade");
                }
            }
        }
        let made = make()?;
        self.put(file, &made.to_text())?;
        Ok(made)
    }

    fn put(&self, file: &str, text: &str) -> Result<(), CertificatesError> {
        match self.path(file) {
            Some(path) => Ok(private_file::put(&path, text)?),
            None => Ok(()),
        }
    }

    fn path(&self, file: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access;
    use std::fs;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn names() -> ServerNames {
        ServerNames::new([], [""; 0])
    }

    fn open(folder: &Path, now: SystemTime) -> Certificates {
        Certificates::open(folder, &names(), now).expect("certificates")
    }

    #[test]
    fn certificates_are_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let first = open(folder.path(), now);
        let second = open(folder.path(), now + DAY);
        assert_eq!(first.authority_pem(), second.authority_pem());
        assert_eq!(first.server(), second.server());
        assert_eq!(first.clients, second.clients);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        open(folder.path(), SystemTime::now());
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let pki = folder.path().join(FOLDER);
        assert_eq!(mode(&pki), 0o700);
        let mut files = 0;
        for entry in fs::read_dir(&pki).expect("a folder") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            files += 1;
        }
        assert_eq!(files, 6);
    }

    #[test]
    fn a_certificate_that_ends_within_thirty_days_is_remade_and_the_authority_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let first = open(folder.path(), now);
        let still = open(folder.path(), now + DAY * 334);
        assert_eq!(first.server(), still.server());
        let later = open(folder.path(), now + DAY * 336);
        assert_ne!(first.server(), later.server());
        assert_ne!(first.client(Role::Admin), later.client(Role::Admin));
        assert_eq!(first.authority_pem(), later.authority_pem());
    }

    #[test]
    fn an_authority_that_ends_is_remade_with_all_that_it_signed() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let first = open(folder.path(), now);
        let before = open(folder.path(), now + DAY * 3610);
        assert_eq!(first.authority_pem(), before.authority_pem());
        let authority_ends = now + DAY * 3650;
        assert!(before.server().not_after().expect("a time") <= authority_ends);
        let later = open(folder.path(), now + DAY * 3630);
        assert_ne!(first.authority_pem(), later.authority_pem());
        assert!(later.server().is_signed_by(later.authority()).expect("readable"));
        let copy = fs::read_to_string(folder.path().join("pki/ca.crt")).expect("readable");
        assert_eq!(copy, later.authority_pem());
    }

    #[test]
    fn other_names_need_another_certificate() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let first = open(folder.path(), now);
        assert_eq!(first.server().names().expect("readable"), names());
        let named = ServerNames::new([], ["build.example"]);
        let second = Certificates::open(folder.path(), &named, now).expect("certificates");
        assert_ne!(first.server(), second.server());
        assert_eq!(second.server().names().expect("readable"), named);
        assert_eq!(first.client(Role::View), second.client(Role::View));
    }

    #[test]
    fn a_name_that_cannot_stand_in_a_certificate_is_told() {
        let named = ServerNames::new([], ["bü.example"]);
        let error = Certificates::in_memory(&named, SystemTime::now()).expect_err("not ASCII");
        assert!(error.to_string().contains("bü.example"), "{error}");
    }

    #[test]
    fn a_damaged_certificate_is_remade_and_a_damaged_authority_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let first = open(folder.path(), now);
        let pki = folder.path().join(FOLDER);
        fs::write(pki.join("server.pem"), "torn").expect("written");
        let other = Certificates::in_memory(&names(), now).expect("certificates");
        let strange = other.client(Role::Edit).expect("there is one").to_text();
        fs::write(pki.join("edit.pem"), strange).expect("written");
        let second = open(folder.path(), now);
        assert_ne!(first.server(), second.server());
        let edit = second.client(Role::Edit).expect("there is one");
        assert!(edit.is_signed_by(second.authority()).expect("readable"));

        let text = fs::read_to_string(pki.join("ca.pem")).expect("readable");
        for damage in ["", &text[..text.len() / 2], &text[text.len() / 2..]] {
            fs::write(pki.join("ca.pem"), damage).expect("written");
            let error = Certificates::open(folder.path(), &names(), now).expect_err("damaged");
            assert!(matches!(error, CertificatesError::DamagedAuthority { .. }), "{error}");
            assert!(error.to_string().contains("ca.pem"), "{error}");
        }
    }

    #[test]
    fn a_client_is_known_by_its_certificate() {
        let made = Certificates::in_memory(&names(), SystemTime::now()).expect("certificates");
        for (role, identity) in [
            (Role::Admin, Identity::admin()),
            (Role::Edit, Identity::edit()),
            (Role::View, Identity::view()),
        ] {
            let der = made.client(role).expect("there is one").certificate().expect("readable");
            assert_eq!(access::identify(&der), Ok(identity));
        }
        assert!(made.client(Role::Node).is_none());
    }

    #[test]
    fn nothing_that_is_printed_shows_a_key() {
        let made = Certificates::in_memory(&names(), SystemTime::now()).expect("certificates");
        assert!(!format!("{made:?}").contains("PRIVATE"));
    }
}
