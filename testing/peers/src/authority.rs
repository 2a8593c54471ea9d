//! Who is who: the authority of a cluster, and the certificates that it signs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use thiserror::Error;

use crate::program::Mode;

/// The built-in Job controller, as kube-apiserver knows it.
pub const BUILT_IN: &str = "system:serviceaccount:kube-system:job-controller";

/// The group of all controllers of stint's, for the audit log. No right comes with it.
pub const CONTROLLERS: &str = "stint-controllers";

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// It could not be made.
    #[error("a certificate for {subject} cannot be made: {source}")]
    Make {
        /// Who it was for.
        subject: String,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// It could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
}

/// Whom the API server takes somebody for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The group, besides that of all who are known.
    pub group: Option<String>,
}

impl User {
    /// Somebody of this name and no group.
    pub fn named(name: &str) -> Self {
        User { name: name.to_owned(), group: None }
    }

    /// Who may do everything.
    pub fn admin() -> Self {
        User { group: Some("system:masters".to_owned()), ..User::named("admin") }
    }

    /// kube-controller-manager.
    pub fn manager() -> Self {
        User::named("system:kube-controller-manager")
    }

    /// Stint's controller, as `deploy/` installs it: whom its roles are bound to.
    pub fn controller(mode: Mode) -> Self {
        let name = match mode {
            Mode::Beside => "system:serviceaccount:stint-system:stint-controller",
            Mode::Replace => "system:serviceaccount:stint-system:stint-controller-builtin",
        };
        User::controller_named(name)
    }

    /// A controller of stint's by another name.
    pub fn controller_named(name: &str) -> Self {
        User { group: Some(CONTROLLERS.to_owned()), ..User::named(name) }
    }

    /// What drives Pods in place of a kubelet.
    pub fn kubelet() -> Self {
        User::named("fake-kubelet")
    }

    /// The user's name as that of a file.
    pub(crate) fn file(&self) -> String {
        self.name.replace(':', "-")
    }
}

/// A certificate and its key, in files.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Signs the certificates of a cluster.
#[derive(Debug)]
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    certificate: PathBuf,
}

impl Authority {
    /// A new authority, whose files are in `folder`.
    pub(crate) fn new(folder: PathBuf) -> Result<Self, AuthorityError> {
        let subject = "an authority";
        let failed = |source| AuthorityError::Make { subject: subject.to_owned(), source };
        fs::create_dir_all(&folder)
            .map_err(|source| AuthorityError::Write { path: folder.clone(), source })?;
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params("stint testing authority", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).map_err(failed)?.pem();
        let certificate = folder.join("ca.crt");
        write(&certificate, &pem)?;
        Ok(Authority { folder, issuer: Issuer::new(params, key), certificate })
    }

    /// The file with the authority's certificate.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// A certificate for servers on loopback.
    pub(crate) fn server(&self) -> Result<Keyed, AuthorityError> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = params("server", None);
        let parsed = CertificateParams::new(names)
            .map_err(|source| AuthorityError::Make { subject: "server".to_owned(), source })?;
        params.subject_alt_names = parsed.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, "server")
    }

    /// A certificate by which a client is known as `user`.
    pub(crate) fn client(&self, user: &User) -> Result<Keyed, AuthorityError> {
        let known = self.keyed(&user.file());
        if known.key.exists() {
            return Ok(known);
        }
        let mut params = params(&user.name, user.group.as_deref());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, &user.file())
    }

    /// A key for signing tokens: private and public.
    pub(crate) fn token_key(&self) -> Result<Keyed, AuthorityError> {
        let subject = "tokens";
        let key = KeyPair::generate()
            .map_err(|source| AuthorityError::Make { subject: subject.to_owned(), source })?;
        self.keep(subject, &key.public_key_pem(), &key)
    }

    fn sign(&self, mut params: CertificateParams, file: &str) -> Result<Keyed, AuthorityError> {
        let failed = |source| AuthorityError::Make { subject: file.to_owned(), source };
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        self.keep(file, &certificate.pem(), &key)
    }

    fn keep(&self, file: &str, public: &str, key: &KeyPair) -> Result<Keyed, AuthorityError> {
        let keyed = self.keyed(file);
        write(&keyed.certificate, public)?;
        write(&keyed.key, &key.serialize_pem())?;
        Ok(keyed)
    }

    fn keyed(&self, file: &str) -> Keyed {
        let path = |ending: &str| self.folder.join(format!("{file}.{ending}"));
        Keyed { certificate: path("crt"), key: path("key") }
    }
}

fn params(common_name: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

fn write(path: &Path, text: &str) -> Result<(), AuthorityError> {
    fs::write(path, text).map_err(|source| AuthorityError::Write { path: path.to_owned(), source })
}
