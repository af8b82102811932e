//! What references say of TLS: the component of SSLIOP, and that of CSIv2 with its transport layer.

use deckwatch_cdr::EncodeError;
use deckwatch_giop::ior::TaggedComponent;
use deckwatch_giop::ior::security::{
    MechanismTransport, SecurityMechanism, SslTransport, TlsTransport, association,
};

/// The association options of a server that offers TLS.
pub(super) struct TlsOffer {
    supports: u16,
    requires: u16,
}

impl TlsOffer {
    /// `has_plain`: requests may come without TLS too.
    pub(super) const fn new(has_plain: bool) -> Self {
        let supports = association::TLS | association::ESTABLISH_TRUST_IN_CLIENT;
        let (plain, protected) = (
            association::NO_PROTECTION,
            association::INTEGRITY | association::CONFIDENTIALITY,
        );
        if has_plain {
            // Nothing is required. NoProtection among what is required means to TAO that TLS is forbidden: a client of
            // its that protects calls raises NO_PERMISSION.
            Self {
                supports: supports | plain,
                requires: 0,
            }
        } else {
            Self {
                supports,
                requires: protected,
            }
        }
    }

    /// The SSL component, for the port at the profile's own host, and that of CSIv2 with all addresses.
    pub(super) fn components(
        &self,
        ssl: Option<u16>,
        addresses: Vec<(String, u16)>,
    ) -> Result<Vec<TaggedComponent>, EncodeError> {
        let &Self { supports, requires } = self;
        let ssl = ssl.map(|port| {
            SslTransport {
                supports,
                requires,
                port,
            }
            .to_component()
        });
        // A mechanism of CSIv2 says what the transport itself does.
        let of_tls = requires & !association::NO_PROTECTION;
        let transport = MechanismTransport::Tls(TlsTransport {
            supports: supports & !association::NO_PROTECTION,
            requires: of_tls,
            addresses,
        });
        let mechanism = SecurityMechanism {
            requires: of_tls,
            transport,
            ..SecurityMechanism::default()
        };
        let listed = SecurityMechanism::list_to_component(&[mechanism]);
        ssl.into_iter().chain([listed]).collect()
    }
}
