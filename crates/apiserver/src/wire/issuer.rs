//! Makes certificates: the authority's own, the server's and those of clients. It must not know
//! where they are kept.

use super::{KeyedCertificate, KeyedCertificateError, ServerNames};
use crate::access::Identity;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use std::time::{Duration, SystemTime};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::CertificateDer;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the authority is good for: ten years, as kubeadm's. When it ends, every client
/// needs the new one.
const AUTHORITY_LASTS: Duration = DAY.saturating_mul(3650);

/// How long other certificates are good for: a year, as kubeadm's. They are remade at a start,
/// so that it takes a process that runs for a year without one to see the end of them.
const CERTIFICATE_LASTS: Duration = DAY.saturating_mul(365);

/// How far a client's clock may be behind ours.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// Why a certificate could not be made.
#[derive(Debug, Error)]
pub enum IssueError {
    /// No key could be made.
    #[error("cannot make a private key: {source}")]
    MakeKey {
        /// What the maker says.
        source: rcgen::Error,
    },
    /// The authority's certificate could not be made.
    #[error("cannot make the certificate authority: {source}")]
    MakeAuthority {
        /// What the maker says.
        source: rcgen::Error,
    },
    /// The authority could not be read.
    #[error("cannot read the certificate authority: {source}")]
    ReadAuthority {
        /// What the reader says.
        source: rcgen::Error,
    },
    /// The authority's certificate or key could not be read.
    #[error("the certificate authority is not usable: {source}")]
    UseAuthority {
        /// What the reader says.
        source: KeyedCertificateError,
    },
    /// A name cannot stand in a certificate.
    #[error("{name:?} cannot stand in the server's certificate: {source}")]
    Name {
        /// The name.
        name: String,
        /// What the maker says.
        source: rcgen::Error,
    },
    /// A certificate could not be signed.
    #[error("cannot sign the certificate of {subject:?}: {source}")]
    Sign {
        /// Whose certificate.
        subject: String,
        /// What the maker says.
        source: rcgen::Error,
    },
}

/// Makes a certificate authority.
pub(super) fn make_authority(now: SystemTime) -> Result<KeyedCertificate, IssueError> {
    let key = make_key()?;
    let mut params = params("stint-ca", None, now, now + AUTHORITY_LASTS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let certificate =
        params.self_signed(&key).map_err(|source| IssueError::MakeAuthority { source })?;
    Ok(KeyedCertificate::new(certificate.pem(), key.serialize_pem()))
}

/// Signs with an authority's key.
pub(super) struct Issuer {
    issuer: rcgen::Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    not_after: SystemTime,
}

impl Issuer {
    pub(super) fn new(authority: &KeyedCertificate) -> Result<Self, IssueError> {
        let unusable = |source| IssueError::UseAuthority { source };
        let certificate = authority.certificate().map_err(unusable)?;
        let key = authority.key().map_err(unusable)?;
        let issuer = rcgen::Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|source| IssueError::ReadAuthority { source })?;
        let not_after = authority.not_after().map_err(unusable)?;
        Ok(Issuer { issuer, certificate, not_after })
    }

    /// The authority's certificate.
    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A certificate for a server with these names.
    pub(super) fn server(
        &self,
        names: &ServerNames,
        now: SystemTime,
    ) -> Result<KeyedCertificate, IssueError> {
        let mut params = params("stint-apiserver", None, now, self.until(now));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in names.iter() {
            let parsed = CertificateParams::new([name.to_owned()])
                .map_err(|source| IssueError::Name { name: name.to_owned(), source })?;
            params.subject_alt_names.extend(parsed.subject_alt_names);
        }
        self.sign(params, "stint-apiserver")
    }

    /// A certificate by which a client is known as `identity`.
    pub(super) fn client(
        &self,
        identity: &Identity,
        now: SystemTime,
    ) -> Result<KeyedCertificate, IssueError> {
        let group = identity.role.group();
        let mut params = params(&identity.user, Some(group), now, self.until(now));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, &identity.user)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        subject: &str,
    ) -> Result<KeyedCertificate, IssueError> {
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = make_key()?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .map_err(|source| IssueError::Sign { subject: subject.to_owned(), source })?;
        Ok(KeyedCertificate::new(certificate.pem(), key.serialize_pem()))
    }

    /// No certificate outlives the authority that it is judged by.
    fn until(&self, now: SystemTime) -> SystemTime {
        self.not_after.min(now + CERTIFICATE_LASTS)
    }
}

/// An ECDSA key on P-256: made in well under a millisecond, and every client knows it.
fn make_key() -> Result<KeyPair, IssueError> {
    KeyPair::generate().map_err(|source| IssueError::MakeKey { source })
}

fn params(
    common_name: &str,
    organization: Option<&str>,
    now: SystemTime,
    until: SystemTime,
) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = until.into();
    params
}
