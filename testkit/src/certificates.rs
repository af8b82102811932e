//! Authorities, certificates and revocation lists for tests of TLS, as files in PEM.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SanType, SerialNumber, date_time_ymd,
};

/// An authority that signs certificates.
pub struct Authority {
    folder: PathBuf,
    name: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    serial: AtomicU64,
}

/// A certificate with its key, in files.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The certificate.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    serial: u64,
}

impl Authority {
    /// Makes an authority, whose certificate is `NAME.pem` in the folder.
    ///
    /// # Panics
    /// Panics if a file cannot be written.
    #[must_use]
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key is made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let made = Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            issuer,
            serial: AtomicU64::new(1),
        };
        std::fs::write(made.file(), made.issuer.pem()).expect("it is written");
        made
    }

    /// The file of its certificate.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.pem", self.name))
    }

    /// Issues a certificate for a common name and these alternative names: DNS names, addresses, or URIs with `://`.
    ///
    /// # Panics
    /// Panics if a file cannot be written.
    #[must_use]
    pub fn issue(&self, name: &str, alternative: &[&str]) -> Issued {
        self.issue_until(2_096, name, alternative)
    }

    /// As [`Authority::issue`]; it has expired.
    ///
    /// # Panics
    /// Panics if a file cannot be written.
    #[must_use]
    pub fn issue_expired(&self, name: &str, alternative: &[&str]) -> Issued {
        self.issue_until(2_001, name, alternative)
    }

    fn issue_until(&self, year: i32, name: &str, alternative: &[&str]) -> Issued {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let alternatives = alternative.iter().map(|text| match text.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) if text.contains("://") => {
                SanType::URI((*text).try_into().expect("a URI is ASCII"))
            }
            Err(_) => SanType::DnsName((*text).try_into().expect("a name is ASCII")),
        });
        params.subject_alt_names = alternatives.collect();
        params.not_before = date_time_ymd(2_000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        params.serial_number = Some(SerialNumber::from(serial));
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().expect("a key is made");
        let certificate = params.signed_by(&key, &self.issuer).expect("it is signed");
        let file = |ending| self.folder.join(format!("{name}-{serial}.{ending}"));
        let issued = Issued {
            chain: file("chain"),
            key: file("key"),
            serial,
        };
        std::fs::write(&issued.chain, certificate.pem()).expect("it is written");
        std::fs::write(&issued.key, key.serialize_pem()).expect("it is written");
        issued
    }

    /// Writes the list of revoked certificates, `NAME.crl` in the folder, and returns its path.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn revoke(&self, revoked: &[&Issued]) -> PathBuf {
        let number = self.serial.fetch_add(1, Ordering::Relaxed);
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2_020, 1, 1),
            next_update: date_time_ymd(2_096, 1, 1),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .iter()
                .map(|one| RevokedCertParams {
                    serial_number: SerialNumber::from(one.serial),
                    revocation_time: date_time_ymd(2_020, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).expect("it is signed");
        let file = self.folder.join(format!("{}.crl", self.name));
        std::fs::write(&file, list.pem().expect("it is text")).expect("it is written");
        file
    }
}
