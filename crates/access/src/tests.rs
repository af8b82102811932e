//! The rules against a naive model of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn address() -> impl Strategy<Value = IpAddr> {
    // Few distinct bits, so that prefixes are often shared.
    prop_oneof![
        (0..4_u32, 0..4_u32).prop_map(|(a, b)| IpAddr::V4(Ipv4Addr::from_bits(a << 30 | b))),
        (0..4_u128, 0..4_u128).prop_map(|(a, b)| IpAddr::V6(Ipv6Addr::from_bits(a << 126 | b))),
    ]
}

/// The bits of an address as text: a network contains the addresses that begin with its own.
fn digits(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("4{:032b}", address.to_bits()),
        IpAddr::V6(address) => format!("6{:0128b}", address.to_bits()),
    }
}

proptest! {
    #[test]
    fn network_contains_what_has_its_prefix(base in address(), other in address(), prefix: u8) {
        let prefix = prefix % if base.is_ipv4() { 33 } else { 129 };
        let network = match format!("{base}/{prefix}").parse::<Network>() {
            Ok(network) | Err(NetworkError::HostBits(network)) => network,
            Err(error) => panic!("{base}/{prefix}: {error:?}"),
        };
        let of_both = usize::from(prefix) + 1;
        let naive = digits(other).starts_with(&digits(base)[..of_both]);
        prop_assert_eq!(network.contains(other), naive);
        prop_assert!(network.contains(base));
        prop_assert_eq!(network.to_string().parse(), Ok(network));
    }

    #[test]
    fn ranges_contain_what_one_of_them_contains(
        all in prop::collection::vec((-9..9_i32, 0..5_i32), 0..6),
        value in -12..16_i32,
    ) {
        let ranges = all.iter().map(|(first, more)| Range { first: *first, last: first + more });
        let naive = ranges.clone().any(|range| (range.first..=range.last).contains(&value));
        prop_assert_eq!(Ranges::new(ranges.collect()).contains(value), naive);
    }

    #[test]
    fn hostile_texts_are_refused_or_read(text in ".{0,40}") {
        let _ = text.parse::<Network>();
        let _ = text.parse::<Range>();
    }

    #[test]
    fn table_permits_what_one_rule_permits(
        rules in prop::collection::vec((0..3_u32, 0..4_usize, 0..3_usize, 0..4_i32), 0..5),
        asked in (0..3_u32, 0..4_usize, 0..3_usize, 0..4_i32),
    ) {
        let names = [None, Some("NAV"), Some("LOG")];
        let made = rules.iter().map(|(user, action, on, event)| Rule {
            who: vec![if *user == 0 { Who::Anyone } else { Who::User(*user) }],
            may: vec![Action::ALL[*action].0],
            on: names[*on].map(|name| vec![name.to_owned()]),
            types: (*event > 0).then(|| Ranges::new(vec![Range { first: *event, last: *event }])),
            sources: None,
        });
        let (user, action, object, event) = asked;
        let naive = rules.iter().any(|(of, may, on, types)| {
            (*of == 0 || *of == user)
                && *may == action
                && (*on == 0 || *on == object)
                && (*types == 0 || *types == event)
        });
        let events = Events { event_type: (event > 0).then_some(event), source: None };
        let table = Table::new(made.collect());
        let action = Action::ALL[action].0;
        prop_assert_eq!(
            table.permits(Subject::User(user), action, names[object], events),
            naive
        );
        prop_assert!(!naive || table.permits_some(Subject::User(user), action, names[object]));
    }
}

#[test]
fn what_no_rule_permits_is_refused() {
    let anyone = Subject::Unknown;
    assert!(!Table::default().permits_some(anyone, Action::Consume, None));
    let network = Who::Network("10.0.0.0/8".parse().unwrap());
    let table = Table::new(vec![Rule {
        who: vec![network, Who::User(7)],
        may: vec![Action::Consume],
        on: None,
        types: None,
        sources: Some(Ranges::new(vec![Range { first: 1, last: 9 }])),
    }]);
    let peer = Subject::Address(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)));
    let of = |source| Events {
        event_type: None,
        source,
    };
    let may = |subject, source| table.permits(subject, Action::Consume, None, of(source));
    assert!(may(peer, Some(9)) && may(Subject::User(7), Some(1)));
    assert!(
        !may(peer, Some(10)) && !may(peer, None),
        "any source needs a rule for all"
    );
    assert!(!may(anyone, Some(9)) && !may(Subject::User(8), Some(9)));
    assert!(!table.permits_some(peer, Action::Supply, None));
}

#[test]
fn malformed_networks_are_told_apart() {
    let error = |text: &str| text.parse::<Network>().unwrap_err();
    assert_eq!(error("ship"), NetworkError::NoAddress);
    assert_eq!(error("10.0.0.0/33"), NetworkError::NoPrefix);
    assert_eq!(error("10.0.0.0/+8"), NetworkError::NoPrefix);
    let meant: Network = "10.1.0.0/16".parse().unwrap();
    assert_eq!(error("10.1.2.3/16"), NetworkError::HostBits(meant));
    assert!("20-29".parse::<Range>().is_ok() && "29-20".parse::<Range>().is_err());
    assert!("-1".parse::<Range>().is_err() && "99999999999".parse::<Range>().is_err());
}
