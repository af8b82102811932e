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
        prop_assert_eq!(Network::around(base, prefix), Some(network));
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
        rules in prop::collection::vec((0..3_u32, 0..6_usize, 0..3_usize, 0..4_i32), 0..5),
        asked in (0..3_u32, 0..6_usize, 0..3_usize, 0..4_i32),
    ) {
        let names = [None, Some("NAV"), Some("LOG")];
        let made = rules.iter().map(|(user, action, on, event)| Rule {
            who: vec![if *user == 0 { Who::Anyone } else { Who::User(*user) }],
            may: vec![Action::ALL[*action].0],
            on: names[*on].map(|name| vec![name.to_owned()]),
            types: (*event > 0).then(|| Ranges::new(vec![Range { first: *event, last: *event }])),
            ..Rule::default()
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
        let asked = Asked {
            action: Some(Action::ALL[action].0),
            operation: b"push",
            object: names[object],
            events: Some(events),
        };
        prop_assert_eq!(table.permits(Subject::user(user), &asked), naive);
        let of_some = Asked { events: None, ..asked };
        prop_assert!(!naive || table.permits(Subject::user(user), &of_some));
    }
}

fn consume(events: Option<Events>) -> Asked<'static> {
    Asked {
        action: Some(Action::Consume),
        operation: b"connect_push_consumer",
        object: None,
        events,
    }
}

#[test]
fn what_no_rule_permits_is_refused() {
    let anyone = Subject::UNKNOWN;
    assert!(!Table::default().permits(anyone, &consume(None)));
    let network = Who::Network("10.0.0.0/8".parse().unwrap());
    let table = Table::new(vec![Rule {
        who: vec![network, Who::User(7)],
        may: vec![Action::Consume],
        sources: Some(Ranges::new(vec![Range { first: 1, last: 9 }])),
        ..Rule::default()
    }]);
    let peer = Subject::at(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)));
    let of = |source| Events {
        event_type: None,
        source,
    };
    let may = |subject, source| table.permits(subject, &consume(Some(of(source))));
    assert!(may(peer, Some(9)) && may(Subject::user(7), Some(1)));
    assert!(
        !may(peer, Some(10)) && !may(peer, None),
        "any source needs a rule for all"
    );
    assert!(!may(anyone, Some(9)) && !may(Subject::user(8), Some(9)));
    let supply = Asked {
        action: Some(Action::Supply),
        ..consume(None)
    };
    assert!(!table.permits(peer, &supply));
}

#[test]
fn name_of_a_certificate_is_a_peer_of_its_own() {
    let table = Table::new(vec![Rule {
        who: vec![Who::Name("rts.ship".to_owned())],
        may: vec![Action::Consume],
        ..Rule::default()
    }]);
    let named = |name| Subject {
        name: Some(name),
        ..Subject::at(IpAddr::V4(Ipv4Addr::LOCALHOST))
    };
    assert!(table.permits(named("rts.ship"), &consume(None)));
    assert!(table.permits(named("RTS.Ship"), &consume(None)));
    for other in [
        "rts.ship.evil",
        "rts.ship\0",
        "*.ship",
        "rts.ship.",
        " rts.ship",
    ] {
        assert!(!table.permits(named(other), &consume(None)), "{other}");
    }
    let uri = "spiffe://ship/Captain";
    let table = Table::default().with(Rule {
        who: vec![Who::Name(uri.to_owned())],
        may: vec![Action::Consume],
        ..Rule::default()
    });
    assert!(table.permits(named(uri), &consume(None)));
    assert!(!table.permits(named("spiffe://ship/captain"), &consume(None)));
    assert!(!table.permits(Subject::at(IpAddr::V4(Ipv4Addr::LOCALHOST)), &consume(None)));
}

#[test]
fn operations_of_an_adapter_are_permitted_by_name_and_object() {
    let table = Table::new(vec![Rule {
        who: vec![Who::Anyone],
        operations: vec!["heading".to_owned()],
        on: Some(vec!["ship/nav/".to_owned(), "rudder".to_owned()]),
        ..Rule::default()
    }]);
    let may = |operation: &str, object| {
        let asked = Asked {
            action: None,
            operation: operation.as_bytes(),
            object,
            events: None,
        };
        table.permits(Subject::UNKNOWN, &asked)
    };
    assert!(may("heading", Some("ship/nav/gyro")) && may("heading", Some("rudder")));
    assert!(!may("set_heading", Some("rudder")), "another operation");
    assert!(!may("heading", Some("ship/navy")) && !may("heading", Some("rudder2")));
    assert!(!may("heading", None), "an object without a name");
}

#[test]
fn without_a_table_this_host_does_everything_and_others_read() {
    let table = Table::local(1000);
    let may = |subject, action| {
        let asked = Asked {
            action: Some(action),
            ..consume(None)
        };
        table.permits(subject, &asked)
    };
    let far = Subject::at(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
    let own_address = Subject {
        is_this_host: true,
        ..far
    };
    let here = [
        Subject::at(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        own_address,
        Subject::user(1000),
    ];
    for (action, _) in Action::ALL {
        assert!(here.iter().all(|subject| may(*subject, action)), "{action}");
        let reads = matches!(action, Action::Resolve | Action::Consume | Action::Observe);
        for stranger in [far, Subject::user(1001), Subject::UNKNOWN] {
            assert_eq!(may(stranger, action), reads, "{action}");
        }
    }
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
