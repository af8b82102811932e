//! Every form of a `corbaloc:` URL.

use super::*;

fn iiop(version: Version, host: &str, port: u16) -> Address {
    Address::Iiop {
        version,
        host: host.to_owned(),
        port,
    }
}

fn unix(version: Version, path: &str) -> Address {
    Address::Unix {
        version,
        path: path.to_owned(),
    }
}

#[test]
fn a_url_of_a_socket_becomes_a_profile_of_this_host_and_again_a_url() {
    let text = "corbaloc:omniunix:/run/nav:/k";
    let ior = text.parse::<Corbaloc>().unwrap().to_ior("here").unwrap();
    let profile = ior.unwrap().iiop_profiles().next().unwrap().unwrap();
    assert_eq!((&*profile.host, profile.port), ("here", 0));
    let sockets: Vec<_> = profile.unix_addresses().collect();
    assert_eq!(sockets, [("here".to_owned(), "/run/nav".to_owned())]);
    assert_eq!(Corbaloc::try_from(&profile).unwrap().to_string(), text);
}

#[test]
fn a_url_of_shared_memory_becomes_a_profile_of_this_host_and_again_a_url() {
    let text = "corbaloc:shm:/run/nav:,shm:1.1@/run/other:/k";
    let url = text.parse::<Corbaloc>().unwrap();
    assert_eq!(url.to_string(), text);
    let ior = url.to_ior("here").unwrap().unwrap();
    let profile = ior.iiop_profiles().next().unwrap().unwrap();
    let found: Vec<_> = profile.shared_memory_addresses().collect();
    assert_eq!(found, [("here".to_owned(), "/run/nav".to_owned())]);
    let again = Corbaloc::try_from(&profile).unwrap().to_string();
    assert_eq!(again, "corbaloc:shm:/run/nav:/k");
}

#[test]
fn a_url_over_tls_becomes_a_profile_with_the_ssl_component_and_again_a_url() {
    let text = "corbaloc:ssliop:1.2@nav.ship:2810,ssliop:1.1@[::1]:7/k";
    let url = text.parse::<Corbaloc>().unwrap();
    assert_eq!(url.to_string(), text);
    let ior = url.to_ior("here").unwrap().unwrap();
    let profile = ior.iiop_profiles().next().unwrap().unwrap();
    assert_eq!((&*profile.host, profile.port), ("nav.ship", 0));
    assert_eq!(profile.tls_addresses(), [("nav.ship".to_owned(), 2810)]);
    assert!(profile.requires_tls());
    let again = Corbaloc::try_from(&profile).unwrap().to_string();
    assert_eq!(again, "corbaloc:ssliop:1.2@nav.ship:2810/k");
    let usual = "corbaloc:ssliop:nav:1/k".parse::<Corbaloc>().unwrap();
    assert_eq!(usual.to_string(), "corbaloc:ssliop:1.2@nav:1/k");
    let old = "corbaloc:ssliop:1.0@nav:1/k".parse::<Corbaloc>();
    assert!(
        old.is_err(),
        "its port is in a component, which 1.0 has not"
    );
}

#[test]
fn host_with_a_second_version_sign_is_refused() {
    let error = "corbaloc::1.0@b.12@b/key".parse::<Corbaloc>().unwrap_err();
    assert_eq!(error, ReferenceError::expected(14, "a host"));
}

/// Checks that a URL has these addresses and this key, and is written as a URL with the same.
#[track_caller]
fn is_read(text: &str, addresses: &[Address], key: &str) {
    let url: Corbaloc = text.parse().unwrap();
    assert_eq!(
        (&*url.addresses, url.key.as_slice()),
        (addresses, key.as_bytes()),
        "{text}"
    );
    assert_eq!(url.to_string().parse(), Ok(url));
}

#[test]
fn every_form_of_the_clause_is_read() {
    for (text, addresses, key) in [
        (
            "corbaloc::host/key",
            vec![iiop(Version::V1_0, "host", 2809)],
            "key",
        ),
        (
            "corbaloc:iiop:host:12/a/b",
            vec![iiop(Version::V1_0, "host", 12)],
            "a/b",
        ),
        (
            "CORBALOC:IIOP:1.1@host:12/",
            vec![iiop(Version::V1_1, "host", 12)],
            "",
        ),
        (
            "corbaloc::1.2@[fe80::1]:12/k",
            vec![iiop(Version::V1_2, "fe80::1", 12)],
            "k",
        ),
        (
            "corbaloc::[::1]/k%20%2f",
            vec![iiop(Version::V1_0, "::1", 2809)],
            "k /",
        ),
        (
            "corbaloc::a,iiop:1.2@b:1/k",
            vec![iiop(Version::V1_0, "a", 2809), iiop(Version::V1_2, "b", 1)],
            "k",
        ),
        (
            "corbaloc:rir:/NameService",
            vec![Address::InitialReference],
            "NameService",
        ),
        ("corbaloc:rir:", vec![Address::InitialReference], ""),
        (
            "corbaloc::[fe80::1%eth0]:12/k",
            vec![iiop(Version::V1_0, "fe80::1%eth0", 12)],
            "k",
        ),
    ] {
        is_read(text, &addresses, key);
    }
}

#[test]
fn every_form_of_a_unix_socket_is_read() {
    for (text, addresses, key) in [
        (
            "corbaloc:omniunix:/run/nav.sock:/a/b",
            vec![unix(Version::V1_2, "/run/nav.sock")],
            "a/b",
        ),
        (
            "corbaloc:omniunix:1.1@/run/nav,:b:1,omniunix:/c",
            vec![
                unix(Version::V1_1, "/run/nav"),
                iiop(Version::V1_0, "b", 1),
                unix(Version::V1_2, "/c"),
            ],
            "",
        ),
        (
            "corbaloc:omniunix:1.2@/run/a@b:",
            vec![unix(Version::V1_2, "/run/a@b")],
            "",
        ),
    ] {
        is_read(text, &addresses, key);
    }
}

#[test]
fn what_is_malformed_is_located() {
    for (text, message) in [
        ("corbalok::h/k", "expected corbaloc: at character 1"),
        (
            "corbaloc:uiop:h/k",
            "expected iiop:, :, ssliop:, omniunix:, shm: or rir: at character 10",
        ),
        (
            "corbaloc::2.0@h/k",
            "expected an IIOP version from 1.0 to 1.4 at character 11",
        ),
        (
            "corbaloc::h:x/k",
            "expected a port from 0 to 65535 at character 13",
        ),
        (
            "corbaloc::h:70000/k",
            "expected a port from 0 to 65535 at character 13",
        ),
        ("corbaloc::/k", "expected a host at character 11"),
        (
            "corbaloc::h,:[::g]/k",
            "expected an IPv6 address at character 15",
        ),
        (
            "corbaloc::[::1/k",
            "expected ] after an IPv6 address at character 15",
        ),
        (
            "corbaloc::h/k%2",
            "expected a hexadecimal digit at character 16",
        ),
        (
            "corbaloc:omniunix::/k",
            "expected the path of a socket at character 19",
        ),
        (
            "corbaloc:omniunix:1.0@/s:/k",
            "expected version 1.1 or 1.2 of a socket at character 19",
        ),
        (
            "corbaloc:omniunix:/s:k",
            "expected , or / and a key at character 22",
        ),
        (
            "corbaloc:rir:,:h/k",
            "expected rir: as the only address at character 10",
        ),
    ] {
        assert_eq!(
            text.parse::<Corbaloc>().unwrap_err().to_string(),
            message,
            "{text}"
        );
    }
}

#[test]
fn a_url_becomes_a_reference_with_a_profile_an_address() {
    let url: Corbaloc = "corbaloc:iiop:1.1@a:1,:b:2/k".parse().unwrap();
    let ior = url.to_ior("here").unwrap().unwrap();
    let profiles: Vec<_> = ior.iiop_profiles().map(Result::unwrap).collect();
    assert_eq!(
        (profiles[0].minor, &*profiles[0].host, profiles[0].port),
        (1, "a", 1)
    );
    assert_eq!(
        (profiles[1].minor, &*profiles[1].host, profiles[1].port),
        (0, "b", 2)
    );
    assert_eq!(profiles[1].object_key, b"k");
    assert_eq!(
        "corbaloc:rir:/X"
            .parse::<Corbaloc>()
            .unwrap()
            .to_ior("here"),
        Ok(None)
    );
}

#[test]
fn too_many_addresses_and_too_long_a_text_are_refused() {
    const SCHEME: &str = "corbaloc:";
    let of = |count| {
        let addresses = vec![":a"; count].join(",");
        format!("{SCHEME}{addresses}/k").parse::<Corbaloc>()
    };
    assert!(of(ADDRESSES_MAX).is_ok());
    let at = SCHEME.len() + ADDRESSES_MAX * ":a,".len();
    let refused = ReferenceError::expected(at, "fewer addresses");
    assert_eq!(of(ADDRESSES_MAX + 1), Err(refused));
    let of = |len| {
        let head = ":a/";
        let key = "k".repeat(len - head.len());
        format!("{SCHEME}{head}{key}").parse::<Corbaloc>()
    };
    assert!(of(REFERENCE_TEXT_MAX).is_ok());
    let at = SCHEME.len() + REFERENCE_TEXT_MAX;
    let refused = ReferenceError::expected(at, "the end of the reference");
    assert_eq!(of(REFERENCE_TEXT_MAX + 1), Err(refused));
}
