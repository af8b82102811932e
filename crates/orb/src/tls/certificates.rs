//! Certificates, keys, authorities and revocation lists from files, and what `rustls` makes of them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deckwatch_os::regular;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::{Current, TlsOptions};
use crate::limits::{TLS_FILE_SIZE_MAX, TLS_FILES_MAX};

/// A file of certificates that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The file or directory.
    pub place: PathBuf,
    /// What is wrong with it.
    pub fact: TlsFact,
}

/// What is wrong with a file of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsFact {
    /// It cannot be read, for the reason that the system gives.
    Unreadable(io::ErrorKind),
    /// It is a pipe, a folder or a device, where a file is needed.
    NotRegular,
    /// It has more than [`TLS_FILE_SIZE_MAX`] octets, or a directory more than [`TLS_FILES_MAX`] files.
    TooLarge,
    /// It holds no certificate in PEM.
    NoCertificate,
    /// It holds no private key in PEM.
    NoKey,
    /// The key is encrypted, or of a kind that is not known.
    KeyUnusable,
    /// The key does not belong to the certificate.
    KeyOfAnother,
    /// A certificate in it is damaged.
    CertificateMalformed,
    /// A revocation list in it is damaged.
    ListMalformed,
    /// TLS is required of peers, and no authority to check them by is given.
    NoAuthorities,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.display();
        match &self.fact {
            TlsFact::NotRegular => write!(f, "{place} is not a regular file"),
            TlsFact::Unreadable(kind) => write!(f, "{place} cannot be read: {kind}"),
            TlsFact::TooLarge => write!(
                f,
                "{place} is too large: a file may have {TLS_FILE_SIZE_MAX} octets, a directory {TLS_FILES_MAX} files"
            ),
            TlsFact::NoCertificate => write!(
                f,
                "{place} holds no certificate: write PEM, which begins with -----BEGIN CERTIFICATE-----"
            ),
            TlsFact::NoKey => write!(
                f,
                "{place} holds no private key: write PEM, which begins with -----BEGIN PRIVATE KEY-----"
            ),
            TlsFact::KeyUnusable => write!(
                f,
                "the private key in {place} cannot be used: write an RSA, ECDSA or Ed25519 key without a password"
            ),
            TlsFact::KeyOfAnother => {
                write!(f, "the certificate in {place} does not belong to the private key")
            }
            TlsFact::CertificateMalformed => write!(f, "a certificate in {place} is damaged"),
            TlsFact::ListMalformed => write!(f, "a revocation list in {place} is damaged"),
            TlsFact::NoAuthorities => f.write_str(
                "TLS is required, and no authority is given to check the other end by: give the file of its certificate",
            ),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsFact {
    fn at(self, place: &Path) -> TlsError {
        TlsError {
            place: place.to_owned(),
            fact: self,
        }
    }
}

/// Whom to trust.
struct Trust {
    roots: Arc<RootCertStore>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    /// For errors.
    place: PathBuf,
}

/// The own certificate with those of intermediate authorities, and its key.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    place: PathBuf,
}

impl Current {
    /// Reads the files of `options`.
    pub(super) fn load(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let trust = Trust::load(&options.authorities)?;
        if options.is_required && trust.is_none() {
            return Err(TlsFact::NoAuthorities.at(Path::new("")));
        }
        let own = || {
            options
                .certificate
                .as_ref()
                .map(|(chain, key)| Own::load(chain, key))
                .transpose()
        };
        let checks = trust.as_ref().map(|trust| {
            let clients = check_of_clients(trust, options.is_required, &provider)?;
            Ok((clients, check_of_servers(trust, &provider)?))
        });
        let checks = checks.transpose()?;
        let clients = checks.as_ref().map(|(clients, _)| Arc::clone(clients));
        let server = own()?.map(|own| server(own, clients, &provider));
        let trusted = trust.as_ref().zip(checks.as_ref());
        let client = trusted.map(|(trust, (_, servers))| client(own()?, trust, servers, &provider));
        Ok(Self {
            server: server.transpose()?,
            client: client.transpose()?,
            checks,
        })
    }

    /// What handshakes of clients are answered with.
    pub(super) fn server(&self) -> Option<&Arc<ServerConfig>> {
        self.server.as_ref()
    }
}

impl Own {
    fn load(chain: &Path, key: &Path) -> Result<Self, TlsError> {
        let pem = read(chain)?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let all = all.map_err(|_| TlsFact::CertificateMalformed.at(chain))?;
        if all.is_empty() {
            return Err(TlsFact::NoCertificate.at(chain));
        }
        let pem = read(key)?;
        let first = PrivateKeyDer::pem_slice_iter(&pem).next();
        let found = first.ok_or_else(|| {
            let is_encrypted = pem
                .windows(ENCRYPTED.len())
                .any(|window| window == ENCRYPTED);
            let fact = if is_encrypted {
                TlsFact::KeyUnusable
            } else {
                TlsFact::NoKey
            };
            fact.at(key)
        })?;
        Ok(Self {
            chain: all,
            key: found.map_err(|_| TlsFact::KeyUnusable.at(key))?,
            place: chain.to_owned(),
        })
    }

    /// What is wrong with it, by the error of `rustls`.
    fn fault(place: &Path, error: &rustls::Error) -> TlsError {
        let fact = match error {
            rustls::Error::InconsistentKeys(_) => TlsFact::KeyOfAnother,
            rustls::Error::InvalidCertificate(_) => TlsFact::CertificateMalformed,
            _ => TlsFact::KeyUnusable,
        };
        fact.at(place)
    }
}

/// A private key with a password begins with this.
const ENCRYPTED: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";

/// How the files of a directory end that are read.
const ENDINGS: [&str; 4] = ["pem", "crt", "cer", "crl"];

impl Trust {
    /// `None` without a place.
    fn load(places: &[PathBuf]) -> Result<Option<Self>, TlsError> {
        let Some(first) = places.first() else {
            return Ok(None);
        };
        let (mut roots, mut revoked) = (RootCertStore::empty(), Vec::new());
        for place in places {
            let before = roots.len();
            for file in files(place)? {
                let pem = read(&file)?;
                for certificate in CertificateDer::pem_slice_iter(&pem) {
                    let malformed = || TlsFact::CertificateMalformed.at(&file);
                    let certificate = certificate.map_err(|_| malformed())?;
                    roots.add(certificate).map_err(|_| malformed())?;
                }
                for list in CertificateRevocationListDer::pem_slice_iter(&pem) {
                    revoked.push(list.map_err(|_| TlsFact::ListMalformed.at(&file))?);
                }
            }
            // A file may hold revocation lists alone, if another has authorities.
            if roots.len() == before && revoked.is_empty() {
                return Err(TlsFact::NoCertificate.at(place));
            }
        }
        if roots.is_empty() {
            return Err(TlsFact::NoCertificate.at(first));
        }
        Ok(Some(Self {
            roots: Arc::new(roots),
            revoked,
            place: first.clone(),
        }))
    }

    fn fault(&self, error: &VerifierBuilderError) -> TlsError {
        match error {
            VerifierBuilderError::InvalidCrl(_) => TlsFact::ListMalformed.at(&self.place),
            _ => TlsFact::NoCertificate.at(&self.place),
        }
    }
}

/// The files of a place, in the order of their names.
fn files(place: &Path) -> Result<Vec<PathBuf>, TlsError> {
    let unreadable = |error: io::Error| TlsFact::Unreadable(error.kind()).at(place);
    if !place.metadata().map_err(unreadable)?.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in place.read_dir().map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let ending = file.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending)) && file.is_file() {
            found.push(file);
        }
        if found.len() > TLS_FILES_MAX {
            return Err(TlsFact::TooLarge.at(place));
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    regular::read(file, TLS_FILE_SIZE_MAX).map_err(|error| {
        let fact = match error.kind() {
            io::ErrorKind::FileTooLarge => TlsFact::TooLarge,
            io::ErrorKind::InvalidInput => TlsFact::NotRegular,
            kind => TlsFact::Unreadable(kind),
        };
        fact.at(file)
    })
}

/// What checks the certificates of clients.
fn check_of_clients(
    trust: &Trust,
    is_required: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = Arc::clone(&trust.roots);
    let check = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
    let check = check.with_crls(trust.revoked.iter().cloned());
    // An authority without a list has revoked nothing.
    let check = check.allow_unknown_revocation_status();
    let check = if is_required {
        check
    } else {
        check.allow_unauthenticated()
    };
    check.build().map_err(|error| trust.fault(&error))
}

/// What checks the certificates of servers.
fn check_of_servers(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let roots = Arc::clone(&trust.roots);
    let check = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
    let check = check.with_crls(trust.revoked.iter().cloned());
    let check = check.allow_unknown_revocation_status();
    check.build().map_err(|error| trust.fault(&error))
}

fn server(
    own: Own,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let place = own.place.clone();
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider));
    let versions = builder.with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| Own::fault(&place, &error))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(clients),
    };
    let config = builder.with_single_cert(own.chain, own.key);
    let mut config = config.map_err(|error| Own::fault(&place, &error))?;
    // A session that is resumed would not check the client's certificate again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client(
    own: Option<Own>,
    trust: &Trust,
    servers: &Arc<WebPkiServerVerifier>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider));
    let versions = builder.with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| Own::fault(&trust.place, &error))?;
    let builder = builder.with_webpki_verifier(Arc::clone(servers));
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(Own { chain, key, place }) => {
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| Own::fault(&place, &error))?
        }
    };
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_keeps_no_session_that_a_client_could_resume_without_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let authority = deckwatch_testkit::certificates::Authority::new(folder.path(), "ship");
        let own = authority.issue("nav", &["nav.ship"]);
        let options = TlsOptions::default()
            .certificate(&own.chain, &own.key)
            .authorities(authority.file());
        let current = Current::load(&options).unwrap();
        let config = current.server().unwrap();
        assert_eq!(config.send_tls13_tickets, 0);
        assert!(!config.session_storage.can_cache() && !config.ticketer.enabled());
    }
}
