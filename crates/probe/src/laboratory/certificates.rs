//! The certificates of ends that speak TLS: one authority and one certificate for both ends, made for one contest.

use std::fmt::Display;
use std::fs::{DirBuilder, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use deckwatch_orb::{Tls, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::error::LaboratoryError;

/// A folder with certificates. Only this user can read it, and it is removed with this value.
pub(crate) struct Certificates(PathBuf);

impl Certificates {
    /// Makes an authority, and a certificate for both ends on the loopback address.
    pub(crate) fn make() -> Result<Self, LaboratoryError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("deckwatch-certificates-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(file(&folder))?;
        let made = Self(folder);
        let [authority, chain, key] = pem().map_err(unusable)?;
        made.write(AUTHORITY, &authority)?;
        made.write(CHAIN, &chain)?;
        made.write(KEY, &key)?;
        // omniORB reads both from one file.
        made.write("end.both", &format!("{chain}{key}"))?;
        Ok(made)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    fn write(&self, name: &str, text: &str) -> Result<(), LaboratoryError> {
        let path = self.0.join(name);
        let mut options = File::options();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut made| made.write_all(text.as_bytes()))
            .map_err(file(&path))
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        // What cannot be removed is in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The options of an end of ours: both ends show a certificate.
pub(crate) fn load(folder: &Path) -> Result<Tls, LaboratoryError> {
    TlsOptions::default()
        .certificate(folder.join(CHAIN), folder.join(KEY))
        .authorities(folder.join(AUTHORITY))
        .require()
        .load()
        .map_err(unusable)
}

/// The authority's certificate, and a certificate of both ends with its key, as PEM.
fn pem() -> Result<[String; 3], rcgen::Error> {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "bench authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "bench");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate()?;
    let chain = params.signed_by(&key, &authority)?;
    Ok([authority.pem(), chain.pem(), key.serialize_pem()])
}

fn unusable(reason: impl Display) -> LaboratoryError {
    LaboratoryError::EndFailed {
        what: "The certificates of the bench".to_owned(),
        reason: reason.to_string(),
    }
}

fn file(path: &Path) -> impl Fn(std::io::Error) -> LaboratoryError {
    move |source| LaboratoryError::File {
        path: path.to_owned(),
        source,
    }
}

const AUTHORITY: &str = "authority.pem";
const CHAIN: &str = "end.pem";
const KEY: &str = "end.key";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn certificates_are_of_this_user_alone_and_go_with_their_contest() {
        let made = Certificates::make().expect("certificates");
        let folder = made.folder().to_owned();
        load(&folder).expect("they can be used");
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let found = entry.expect("a file").metadata().expect("its mode");
            assert_eq!(found.mode() & 0o077, 0);
        }
        drop(made);
        assert!(!folder.exists());
    }
}
