//! Naming and events between this ORB and omniORB. tshark checks the octets.

use std::process::Command;

use crate::common::{Capture, Running, omniorb_program, port_of, root, run, scratch};
use crate::names::{Names, OmniNames, deckwatch};
use deckwatch_cdr::Any;
use deckwatch_cdr::value::{MemberPath, Value};
use deckwatch_event::cos_event_channel_admin::{EventChannelRef, ProxyPushConsumerRef};
use deckwatch_idl::model::Model;
use deckwatch_orb::Orb;
use deckwatch_testkit::program;

/// Starts `deckwatch channel`, bound to a name.
fn channel(names: &Names, name: &str) -> (Running, String) {
    let mut process =
        Running::start(deckwatch().args(["channel", "--bind", name, "--names", &names.url]));
    let ior = process.line_with("IOR:");
    (process, ior)
}

/// A supplier of NAV events whose types are known only at run time.
struct NavSupplier {
    orb: Orb,
    proxy: ProxyPushConsumerRef,
    model: Model,
}

impl NavSupplier {
    fn connect(channel: &str) -> Self {
        let model = Model::load(root().join("idl/deckwatch/nav.idl"), &[]).expect("nav.idl");
        let orb = Orb::builder().build().expect("an ORB");
        let object = orb
            .string_to_object(channel)
            .expect("an IOR")
            .expect("not nil");
        let admin = EventChannelRef::unchecked_narrow(object)
            .for_suppliers()
            .expect("an answer")
            .expect("not nil");
        let proxy = admin
            .obtain_push_consumer()
            .expect("an answer")
            .expect("not nil");
        proxy.connect_push_supplier(None).expect("connected");
        Self { orb, proxy, model }
    }

    fn push(&self, sequence: u32) {
        let type_code = self.model.type_code("Nav::NavData").expect("the type");
        let mut value = Value::default_for(&type_code).expect("a value");
        let mut set = |member: &str, to: Value| {
            let path = MemberPath::resolve(&type_code, member).expect("a member");
            *path.slot(&mut value).expect("its place") = to;
        };
        set("sequence_number", Value::ULong(sequence));
        set("attitude.heading_deg", Value::Double(271.5));
        let mut source = b"RTS".to_vec();
        source.resize(16, 0);
        set("source", Value::Octets(source));
        let event = Any::from_dynamic(&type_code, &value).expect("an event");
        self.proxy.push(&event).expect("pushed");
    }
}

#[test]
fn nameclt_lists_and_resolves_through_our_naming_and_catior_reads_our_references() {
    if program("nameclt").is_none() || program("catior").is_none() {
        return;
    }
    let names = Names::start();
    names.nameclt(&["bind_new_context", "ships"]).expect("done");
    names
        .nameclt(&["bind", "ships/nav.channel", &names.ior])
        .expect("done");
    assert_eq!(names.nameclt(&["list"]).expect("done"), "ships/");
    assert_eq!(
        names.nameclt(&["list", "ships"]).expect("done"),
        "nav.channel"
    );
    let resolved = names
        .nameclt(&["resolve", "ships/nav.channel"])
        .expect("done");
    let explained = run(Command::new("catior").arg(resolved.trim()));
    assert!(
        explained.contains("IDL:omg.org/CosNaming/NamingContextExt:1.0"),
        "{explained}"
    );
    assert!(
        explained.contains(&format!("IIOP 1.2 127.0.0.1 {}", names.port())),
        "{explained}"
    );
    let ours = run(deckwatch().args(["names", "list", "ships", "--names", &names.url]));
    assert_eq!(ours.trim(), "nav.channel");
    names
        .nameclt(&["unbind", "ships/nav.channel"])
        .expect("done");
    names.nameclt(&["remove_context", "ships"]).expect("done");
    assert_eq!(names.nameclt(&["list"]).expect("done"), "");
}

#[test]
fn our_clients_use_omninames() {
    let Some(theirs) = OmniNames::start("omninames") else {
        return;
    };
    let at = &theirs.url;
    let names = |arguments: &[&str]| {
        run(deckwatch()
            .arg("names")
            .args(arguments)
            .args(["--names", at]))
    };
    names(&["bind", "a/b.c", "corbaloc::127.0.0.1:9/thing", "--contexts"]);
    assert_eq!(names(&["list"]).trim(), "a/");
    assert_eq!(names(&["list", "a"]).trim(), "b.c");
    assert!(names(&["resolve", "a/b.c"]).starts_with("IOR:"));
    names(&["unbind", "a/b.c"]);
    assert_eq!(names(&["list", "a"]).trim(), "");
}

#[test]
fn omniorb_consumer_receives_nav_events_and_tshark_finds_nothing_malformed() {
    const EVENTS: u32 = 50;
    let folder = scratch("nav-events");
    let idl = [
        "omg/CosEventComm.idl",
        "omg/CosEventChannelAdmin.idl",
        "deckwatch/nav.idl",
    ];
    let Some(consumer) = omniorb_program("nav_consumer", &idl) else {
        return;
    };
    let names = Names::start();
    let (channel_process, ior) = channel(&names, "NAV");
    let Some(capture) = Capture::start(&folder, &[names.port(), port_of(&ior)]) else {
        return;
    };
    let mut consuming = Running::start(
        Command::new(consumer)
            .args(names.initial())
            .args(["NAV", &EVENTS.to_string()]),
    );
    consuming.line_with("ready");
    let supplier = NavSupplier::connect(&ior);
    for sequence in 0..EVENTS {
        supplier.push(sequence);
    }
    let (status, heard) = consuming.wait();
    let events: Vec<&String> = heard
        .iter()
        .filter(|line| line.starts_with("event "))
        .collect();
    let expected: Vec<String> = (0..EVENTS)
        .map(|number| format!("event {number} heading 271.5 source RTS"))
        .collect();
    assert_eq!(events, expected.iter().collect::<Vec<_>>());
    assert!(status.success(), "{heard:?}");
    supplier.orb.shutdown(true).expect("it ends");
    channel_process.terminate();
    let (status, said) = channel_process.wait();
    assert!(status.success(), "{said:?}");
    assert!(
        said.iter().any(|line| line.starts_with(&format!(
            "events received {EVENTS}, delivered {EVENTS}, displaced 0"
        ))),
        "{said:?}"
    );
    let (messages, malformed) = capture.finish();
    assert!(
        messages[2] > 2 * EVENTS as usize,
        "only {messages:?} frames of GIOP captured"
    );
    assert_eq!(malformed, Vec::<String>::new());
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn echo_prints_the_events_of_an_omniorb_supplier() {
    const EVENTS: u64 = 20;
    let idl = [
        "omg/CosEventComm.idl",
        "omg/CosEventChannelAdmin.idl",
        "deckwatch/nav.idl",
    ];
    let Some(supplier) = omniorb_program("nav_supplier", &idl) else {
        return;
    };
    let names = Names::start();
    let (channel_process, _) = channel(&names, "NAV");
    let at = ["--names", &names.url];
    let count = EVENTS.to_string();
    let echo = Running::start(
        deckwatch()
            .args(["events", "echo", "NAV", "--json", "--type", "Nav::NavData"])
            .args(at)
            .args(["--count", &count]),
    );
    let list = || {
        run(deckwatch()
            .args(["events", "list", "--interval", "1ms"])
            .args(at))
    };
    while !list().contains("1 consumer") {}
    run(Command::new(supplier)
        .args(names.initial())
        .args(["NAV", &count]));
    let (status, lines) = echo.wait();
    assert!(status.success(), "{lines:?}");
    let events = lines.iter().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["type"], "IDL:Nav/NavData:1.0");
        assert_eq!(line["value"]["attitude"]["heading_deg"], 271.5);
        assert_eq!(line["value"]["operating_mode"], "navigating");
        line["value"]["sequence_number"].as_u64().expect("a number")
    });
    assert_eq!(events.collect::<Vec<_>>(), (0..EVENTS).collect::<Vec<_>>());
    while !list().contains("0 consumers, 0 suppliers") {}
    channel_process.terminate();
    let (status, said) = channel_process.wait();
    assert!(status.success(), "{said:?}");
}
