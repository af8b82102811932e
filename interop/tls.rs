//! The SSL transports of omniORB, JacORB and TAO and our TLS, each as client and as server, with certificates of one
//! authority.

use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_orb::{Counter, Orb, SystemException, SystemExceptionKind, TlsOptions, own_minor};
use deckwatch_testkit::certificates::{Authority, Issued};

use crate::common::{Running, omniorb_program, port_of, run, scratch, try_run};
use crate::echo;
use crate::gaps::gap;
use crate::jacorb::jacorb_program_in;
use crate::tao::Tao;

/// omniORB's transport for SSL, which its programs load beside them; or a counted skip.
fn transport() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").expect("the folder can be read");
    let mut places = folders.filter_map(|folder| {
        let file = folder.ok()?.path().join("libomnisslTP4.so.2");
        file.is_file().then_some(file)
    });
    let found = places.next();
    if found.is_none() {
        deckwatch_testkit::skip("libomniorb4-2", "omniORB's SSL transport is not installed");
    }
    found
}

/// A command with omniORB's SSL, its authority, and a certificate with its key.
fn with_ssl(program: &Path, transport: &Path, authority: &Authority, own: &Issued) -> Command {
    let both = own.chain.with_extension("both");
    let read = |file: &PathBuf| std::fs::read(file).expect("it has been written");
    std::fs::write(&both, [read(&own.chain), read(&own.key)].concat()).expect("it is written");
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", transport)
        .arg("-ORBsslCAFile")
        .arg(authority.file())
        .arg("-ORBsslKeyFile")
        .arg(both)
        // Without a password omniORB sets no key.
        .args([
            "-ORBsslKeyPassword",
            "none",
            "-ORBsslVerifyMode",
            "peer,fail",
        ])
        .args(["-ORBclientCallTimeOutPeriod", "20000"]);
    command
}

#[test]
fn omniorb_and_we_call_each_other_over_tls_and_refuse_a_revoked_certificate() {
    let idl = ["deckwatch/echo.idl"];
    let (Some(transport), Some(client), Some(server)) = (
        transport(),
        omniorb_program("echo/client", &idl),
        omniorb_program("echo/server", &idl),
    ) else {
        return;
    };
    let folder = scratch("tls");
    let authority = Authority::new(&folder, "fleet");
    let nav = authority.issue("nav", &["127.0.0.1"]);
    let [bridge, lost] = ["bridge", "lost"].map(|name| authority.issue(name, &["127.0.0.1"]));
    let list = authority.revoke(&[&lost]);
    let options = |own: &Issued| {
        let options = TlsOptions::default().certificate(&own.chain, &own.key);
        options
            .authorities(authority.file())
            .authorities(&list)
            .require()
    };

    let ours = options(&nav).load().expect("its files are there");
    let builder = Orb::builder().tls(&ours).listen("tls:127.0.0.1:0");
    let ours = builder.expect("an endpoint").build().expect("an ORB");
    let reference = echo::activate(&ours).expect("an echo object").to_string();
    assert_eq!(port_of(&reference), 0, "nobody is to call it without TLS");
    let call = |own: &Issued| {
        let mut command = with_ssl(&client, &transport, &authority, own);
        try_run(command.args([&reference, "2000"]))
    };
    call(&bridge).unwrap_or_else(|said| panic!("omniORB calls us: {said}"));
    let served = ours.counters().read(Counter::Requests);
    assert_ne!(served, 0);
    call(&lost).expect_err("its certificate is revoked");
    assert_eq!(ours.counters().read(Counter::Requests), served);

    let mut command = with_ssl(&server, &transport, &authority, &nav);
    let mut process = Running::start(command.args(["-ORBendPoint", "giop:ssl:127.0.0.1:"]));
    let theirs = process.line_with("IOR:");
    let calling = |own: &Issued| {
        let tls = options(own).load().expect("its files are there");
        Orb::builder().tls(&tls).build().expect("an ORB")
    };
    let caller = calling(&bridge);
    echo::call(&caller, &theirs, 2_000).expect("we call omniORB");
    caller.shutdown(true).expect("it ends");
    // A server that the list names is not called.
    drop(process);
    let mut command = with_ssl(&server, &transport, &authority, &lost);
    let mut process = Running::start(command.args(["-ORBendPoint", "giop:ssl:127.0.0.1:"]));
    let theirs = process.line_with("IOR:");
    let caller = calling(&bridge);
    let object = caller
        .string_to_object(&theirs)
        .expect("a reference")
        .expect("not nil");
    let refused = object
        .non_existent()
        .expect_err("its certificate is revoked");
    assert_eq!(refused.kind, SystemExceptionKind::NoPermission);
    assert_eq!(refused.minor, own_minor::TLS_REVOKED);
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// A Java keystore with a certificate, its key, and the authority.
fn keystore(authority: &Authority, own: &Issued) -> PathBuf {
    let store = own.chain.with_extension("p12");
    run(Command::new("openssl")
        .args(["pkcs12", "-export", "-passout", "pass:changeit", "-inkey"])
        .arg(&own.key)
        .arg("-in")
        .arg(&own.chain)
        .arg("-certfile")
        .arg(authority.file())
        .arg("-out")
        .arg(&store));
    run(Command::new("keytool")
        .args([
            "-importcert",
            "-noprompt",
            "-alias",
            "fleet",
            "-storepass",
            "changeit",
            "-file",
        ])
        .arg(authority.file())
        .arg("-keystore")
        .arg(&store));
    store
}

/// JacORB's properties of TLS; 60 stands for certificates at both ends.
fn jacorb_options(store: &Path) -> Vec<String> {
    let sockets = "org.jacorb.security.ssl.sun_jsse.SSL";
    vec![
        "-Djacorb.security.support_ssl=on".to_owned(),
        format!("-Djacorb.ssl.socket_factory={sockets}SocketFactory"),
        format!("-Djacorb.ssl.server_socket_factory={sockets}ServerSocketFactory"),
        format!("-Djacorb.security.keystore={}", store.display()),
        "-Djacorb.security.keystore_password=changeit".to_owned(),
        "-Djacorb.security.jsse.trustees_from_ks=on".to_owned(),
        "-Djacorb.security.ssl.client.supported_options=60".to_owned(),
        "-Djacorb.security.ssl.client.required_options=60".to_owned(),
        "-Djacorb.security.ssl.server.supported_options=60".to_owned(),
        "-Djacorb.security.ssl.server.required_options=60".to_owned(),
    ]
}

#[test]
fn jacorb_and_we_call_each_other_over_tls() {
    let (Some(_), Some(_)) = (
        deckwatch_testkit::program("openssl"),
        deckwatch_testkit::program("keytool"),
    ) else {
        return;
    };
    let Some(program) = jacorb_program_in("jacorb-tls", "deckwatch/echo.idl") else {
        return;
    };
    let folder = scratch("jacorb-tls");
    let authority = Authority::new(&folder, "fleet");
    let [nav, bridge] = ["nav", "bridge"].map(|name| authority.issue(name, &["127.0.0.1"]));
    let [of_nav, of_bridge] = [&nav, &bridge].map(|own| keystore(&authority, own));
    let options = |own: &Issued| {
        let options = TlsOptions::default().certificate(&own.chain, &own.key);
        options.authorities(authority.file()).require()
    };
    let tls = options(&nav).load().expect("its files are there");
    let builder = Orb::builder().tls(&tls).listen("tls:127.0.0.1:0");
    let ours = builder.expect("an endpoint").build().expect("an ORB");
    let reference = echo::activate(&ours).expect("an echo object").to_string();
    let said = run(program
        .command_with(&jacorb_options(&of_bridge))
        .args(["client", &reference]));
    assert_eq!(said.trim(), "as sent");
    let mut command = program.command_with(&jacorb_options(&of_nav));
    let mut process = Running::start(command.arg("server"));
    let theirs = process.line_with("IOR:");
    let tls = options(&bridge).load().expect("its files are there");
    let caller = Orb::builder().tls(&tls).build().expect("an ORB");
    let object = caller
        .string_to_object(&theirs)
        .expect("a reference")
        .expect("not nil");
    let octets = vec![7_u8; 3 << 20];
    let echoed = object.invoke(
        "echo_octets",
        |w| w.write_octet_sequence(&octets),
        |r| r.read_octet_sequence().map(<[u8]>::to_vec),
        |_, _| Ok(None),
    );
    let echoed: Result<_, SystemException> = echoed;
    assert!(echoed.expect("we call JacORB") == octets);
    caller.shutdown(true).expect("it ends");
    ours.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

/// TAO reads no revocation lists; ours name a certificate.
#[test]
fn tao_and_we_call_each_other_over_tls_and_we_refuse_a_revoked_certificate() {
    let Some(tao) = Tao::find() else { return };
    if !tao.has_tls() {
        deckwatch_testkit::skip("tao", "it is built without SSLIOP");
        return;
    }
    let caller = tao.plain_program("tao/tls/caller.cc", "deckwatch/echo.idl");
    let client = tao.plain_program("omniorb/echo/client.cc", "deckwatch/echo.idl");
    let server = tao.plain_program("omniorb/echo/server.cc", "deckwatch/echo.idl");
    let folder = scratch("tao-tls");
    let authority = Authority::new(&folder, "fleet");
    let [nav, bridge, lost] =
        ["nav", "bridge", "lost"].map(|name| authority.issue(name, &["127.0.0.1"]));
    let list = authority.revoke(&[&lost]);
    let options = |own: &Issued| {
        let options = TlsOptions::default().certificate(&own.chain, &own.key);
        options.authorities(authority.file()).authorities(&list)
    };
    let with_ssl = |program: &Path, own: &Issued, more: &str| {
        tao.over_tls(program, &authority.file(), (&own.chain, &own.key), more)
    };
    let call = |reference: &str, own: &Issued, more: &str| {
        let mut command = with_ssl(&caller, own, more);
        try_run(command.arg(reference))
    };

    // TLS alone, and TLS beside plain TCP.
    for (plain, require) in [(None, true), (Some("127.0.0.1:0"), false)] {
        let tls = options(&nav);
        let tls = if require { tls.require() } else { tls };
        let tls = tls.load().expect("its files are there");
        let builder = Orb::builder().tls(&tls).listen("tls:127.0.0.1:0");
        let mut builder = builder.expect("an endpoint");
        if let Some(plain) = plain {
            builder = builder.listen(plain).expect("an endpoint");
        }
        let ours = builder.build().expect("an ORB");
        let reference = echo::activate(&ours).expect("an echo object").to_string();
        let called = call(&reference, &bridge, "");
        called.unwrap_or_else(|said| panic!("TAO calls us: {said}"));
        let mut command = with_ssl(&client, &bridge, "");
        let called = try_run(command.args([&reference, "2000"]));
        gap("tao-references-over-tls", &called);
        let served = ours.counters().read(Counter::Requests);
        assert_ne!(served, 0);
        let refused = call(&reference, &lost, "");
        refused.expect_err("its certificate is revoked");
        assert_eq!(ours.counters().read(Counter::Requests), served);
        if plain.is_some() {
            // The plain endpoint takes a client that protects nothing.
            let called = call(&reference, &bridge, "-SSLNoProtection");
            called.unwrap_or_else(|said| panic!("TAO calls us without TLS: {said}"));
        }
        ours.shutdown(true).expect("it ends");
    }

    let start = |own: &Issued| {
        let mut command = with_ssl(&server, own, "");
        Running::start(command.args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"]))
    };
    let calling = || {
        let tls = options(&bridge).require();
        let tls = tls.load().expect("its files are there");
        Orb::builder().tls(&tls).build().expect("an ORB")
    };
    let mut process = start(&nav);
    let theirs = process.line_with("IOR:");
    let caller = calling();
    echo::call(&caller, &theirs, 2_000).expect("we call TAO");
    caller.shutdown(true).expect("it ends");
    drop(process);
    // A server that the list names is not called.
    let mut process = start(&lost);
    let theirs = process.line_with("IOR:");
    let caller = calling();
    let object = caller
        .string_to_object(&theirs)
        .expect("a reference")
        .expect("not nil");
    let refused = object
        .non_existent()
        .expect_err("its certificate is revoked");
    assert_eq!(refused.kind, SystemExceptionKind::NoPermission);
    assert_eq!(refused.minor, own_minor::TLS_REVOKED);
    caller.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}
