//! A certificate with its key, as text, and what can be read from it. It must not know what it
//! is for.

use super::ServerNames;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;

/// Where the key begins in a file that holds both.
const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";

/// Why a text is not a certificate with its key.
#[derive(Debug, Error)]
pub enum KeyedCertificateError {
    /// There is no private key in it.
    #[error("it has no private key")]
    NoKey,
    /// The key cannot be read.
    #[error("its private key cannot be read: {source}")]
    ReadKey {
        /// What the reader says.
        source: rcgen::Error,
    },
    /// The certificate's text cannot be read.
    #[error("its certificate cannot be read: {source}")]
    ReadPem {
        /// What the reader says.
        source: pem::Error,
    },
    /// The certificate's bytes cannot be read.
    #[error("its certificate cannot be read: {detail}")]
    ReadCertificate {
        /// What the reader says.
        detail: String,
    },
    /// The key is not the certificate's.
    #[error("its private key is not that of its certificate")]
    OtherKey,
}

/// A certificate with its private key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyedCertificate {
    certificate_pem: String,
    key_pem: String,
}

impl KeyedCertificate {
    pub(super) fn new(certificate_pem: String, key_pem: String) -> Self {
        KeyedCertificate { certificate_pem, key_pem }
    }

    /// The certificate.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key. It is a secret.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Both in one text, so that one file holds both or neither.
    pub(super) fn to_text(&self) -> String {
        format!("{}{}", self.certificate_pem, self.key_pem)
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub(super) fn from_text(text: &str) -> Result<Self, KeyedCertificateError> {
        let at = text.find(KEY_BEGINS).ok_or(KeyedCertificateError::NoKey)?;
        let (certificate_pem, key_pem) = text.split_at(at);
        let keyed = KeyedCertificate::new(certificate_pem.to_owned(), key_pem.to_owned());
        let key = keyed.key()?;
        let der = keyed.certificate()?;
        if parse(&der)?.public_key().subject_public_key.data
            != rcgen::PublicKeyData::der_bytes(&key)
        {
            return Err(KeyedCertificateError::OtherKey);
        }
        Ok(keyed)
    }

    /// The certificate's bytes.
    pub(super) fn certificate(&self) -> Result<CertificateDer<'static>, KeyedCertificateError> {
        CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())
            .map_err(|source| KeyedCertificateError::ReadPem { source })
    }

    /// The key, to sign with.
    pub(super) fn key(&self) -> Result<rcgen::KeyPair, KeyedCertificateError> {
        rcgen::KeyPair::from_pem(&self.key_pem)
            .map_err(|source| KeyedCertificateError::ReadKey { source })
    }

    /// The key's bytes.
    pub(super) fn key_der(&self) -> Result<PrivateKeyDer<'static>, KeyedCertificateError> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|source| KeyedCertificateError::ReadPem { source })
    }

    /// Whether the certificate is good now and for `ahead` longer.
    pub(super) fn lasts(
        &self,
        now: SystemTime,
        ahead: Duration,
    ) -> Result<bool, KeyedCertificateError> {
        let der = self.certificate()?;
        let certificate = parse(&der)?;
        let validity = certificate.validity();
        Ok(time(validity.not_before) <= now && now + ahead < time(validity.not_after))
    }

    /// Until when the certificate is good.
    pub(super) fn not_after(&self) -> Result<SystemTime, KeyedCertificateError> {
        let der = self.certificate()?;
        Ok(time(parse(&der)?.validity().not_after))
    }

    /// Whether the certificate was signed with the key of `authority`.
    pub(super) fn is_signed_by(
        &self,
        authority: &CertificateDer<'_>,
    ) -> Result<bool, KeyedCertificateError> {
        let der = self.certificate()?;
        let authority = parse(authority)?;
        Ok(parse(&der)?.verify_signature(Some(authority.public_key())).is_ok())
    }

    /// The names and addresses in the certificate.
    pub(super) fn names(&self) -> Result<ServerNames, KeyedCertificateError> {
        let der = self.certificate()?;
        let certificate = parse(&der)?;
        let extension = certificate.subject_alternative_name().map_err(unread)?;
        let names = extension.iter().flat_map(|extension| &extension.value.general_names);
        Ok(ServerNames::exactly(names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|ip| ip.to_string()),
            _ => None,
        })))
    }
}

impl fmt::Debug for KeyedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedCertificate").finish_non_exhaustive()
    }
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, KeyedCertificateError> {
    parse_x509_certificate(der).map(|(_, certificate)| certificate).map_err(unread)
}

fn unread(error: impl fmt::Display) -> KeyedCertificateError {
    KeyedCertificateError::ReadCertificate { detail: error.to_string() }
}

/// A time of a certificate. What lies before 1970 lies at 1970: it is long past.
fn time(time: ASN1Time) -> SystemTime {
    let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
