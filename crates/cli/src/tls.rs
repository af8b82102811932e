//! The options of TLS, the same for every command that serves or calls.

use std::path::PathBuf;

use anyhow::Context as _;
use deckwatch_orb::{OrbBuilder, Tls, TlsOptions};

/// A heading of its own for each option: one for the whole would be that of the options behind it, too.
const HEADING: &str = "TLS";

/// Certificates and authorities.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TlsArgs {
    /// Show this certificate (PEM; those of intermediate authorities behind it)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM, without a password)
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Trust what the authorities in this file or folder have signed and its revocation lists do not name (PEM); may be
    /// given several times
    #[arg(long, help_heading = HEADING, value_name = "FILE|FOLDER")]
    tls_authorities: Vec<PathBuf>,
    /// Use no TCP without TLS; a server demands a certificate of each client over TLS
    #[arg(long, help_heading = HEADING)]
    tls_require: bool,
}

impl TlsArgs {
    /// Reads the files; `None` without an option of TLS.
    pub(crate) fn load(&self) -> anyhow::Result<Option<Tls>> {
        let has_any = self.tls_certificate.is_some() || !self.tls_authorities.is_empty();
        if !has_any && !self.tls_require {
            return Ok(None);
        }
        let mut options = TlsOptions::default();
        if let (Some(chain), Some(key)) = (&self.tls_certificate, &self.tls_key) {
            options = options.certificate(chain, key);
        }
        for place in &self.tls_authorities {
            options = options.authorities(place);
        }
        if self.tls_require {
            options = options.require();
        }
        options.load().map(Some).context("TLS cannot be set up")
    }

    /// The builder with these options.
    pub(crate) fn over(&self, builder: OrbBuilder) -> anyhow::Result<OrbBuilder> {
        Ok(match self.load()? {
            Some(tls) => builder.tls(&tls),
            None => builder,
        })
    }

    /// The address to listen at: where TLS is required, one of TCP is one of TLS.
    pub(crate) fn listen_at(&self, listen: &str) -> String {
        let is_plain = matches!(
            listen.parse(),
            Ok(deckwatch_orb::transport::Endpoint::Tcp { .. })
        );
        if self.tls_require && is_plain {
            format!("tls:{listen}")
        } else {
            listen.to_owned()
        }
    }
}
