//! The words of the store for a peer over the network, and where a context leads that a peer has bound (ADR 0025).

use std::net::{IpAddr, SocketAddr};

use deckwatch_orb::{Caller, LocalProcess, Origin};

/// Says in words of the store who sent a request over the network: its address, and the name in its certificate.
pub(crate) fn maker_over_network(address: IpAddr, name: Option<&str>) -> String {
    name.map_or_else(
        || address.to_string(),
        |name| format!("{address}{CERTIFICATE}{name}"),
    )
}

/// What stands between the address of a maker and the name in its certificate.
pub(crate) const CERTIFICATE: &str = " cert:";

fn address_of(maker: &str) -> &str {
    maker
        .split_once(CERTIFICATE)
        .map_or(maker, |(address, _)| address)
}

/// Where a context leads that a peer has bound, by the words of the store for that peer.
pub(crate) fn origin_of(maker: &str) -> Origin {
    let user = |uid| Caller::Unix(LocalProcess { uid, pid: 0 });
    let caller = if maker.is_empty() {
        Caller::ThisProcess
    } else if let Some(Ok(uid)) = maker.strip_prefix("uid ").map(str::parse) {
        user(uid)
    } else if let Ok(address) = address_of(maker).parse::<IpAddr>() {
        Caller::Tcp(SocketAddr::new(address, 0))
    } else {
        Caller::Unknown
    };
    caller.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_orb::peers::Peer;

    #[test]
    fn maker_of_a_binding_says_where_its_context_leads() {
        let own = deckwatch_os::process::effective_user();
        assert_eq!(origin_of(""), Origin::Own);
        assert_eq!(origin_of(&format!("uid {own}")), Origin::Own);
        assert_eq!(origin_of("uid 4294967294"), Origin::Host);
        assert_eq!(origin_of("127.0.0.1"), Origin::Host);
        assert_eq!(origin_of("::1"), Origin::Host);
        assert!(matches!(
            origin_of("198.51.100.7"),
            Origin::Network(Peer::Address(_))
        ));
        let named = maker_over_network(IpAddr::from([127, 0, 0, 1]), Some("nav.ship"));
        assert_eq!(named, "127.0.0.1 cert:nav.ship");
        assert_eq!(origin_of(&named), Origin::Host, "by its address");
        for unknown in ["unknown", "uid", "uid x", "somebody", "127.0.0.1 "] {
            assert_eq!(
                origin_of(unknown),
                Origin::Network(Peer::Unknown),
                "{unknown}"
            );
        }
    }
}
