//! `deckwatch events list`: channels under names, their state, and that nothing stays of who has left.

use std::process::Command;

use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_naming::NamingService;
use deckwatch_naming::store::Store;
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::Orb;
use deckwatch_orb::cos_naming::NamingContextRef;
use rustix::process::Signal;

use super::Events;
use super::hand::Hand;

/// A naming service and a channel of ours, bound as `deckwatch/NAV`, in this process.
struct World {
    orb: Orb,
    names: String,
    channel: String,
    _service: NamingService,
    _served: EventChannel,
}

impl World {
    fn new(foreign: &Hand) -> Self {
        let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
        let orb = builder.build().expect("an ORB");
        let poa = orb.root_poa().expect("a root adapter");
        poa.the_poa_manager().activate().expect("active");
        let store = Store::in_memory().expect("a store");
        let service = NamingService::start(&orb, store).expect("a service");
        let served = EventChannel::start(&orb, ChannelOptions::default()).expect("a channel");
        let root = NamingContextRef::unchecked_narrow(service.root().object().clone());
        let theirs = orb.string_to_object(&foreign.ior).expect("an IOR");
        let theirs = theirs.expect("not nil");
        let nowhere = orb.string_to_object("corbaloc::127.0.0.1:9/thing");
        let nowhere = nowhere.expect("a URL").expect("not nil");
        for (name, object) in [
            ("deckwatch/NAV", served.reference().object()),
            ("TRACKS", &theirs),
            ("nowhere", &nowhere),
            ("names", root.object()),
        ] {
            bind_with_contexts(&root, name, object, Existing::Keep).expect("bound");
        }
        Self {
            names: orb.object_to_string(root.object()),
            channel: orb.object_to_string(served.reference().object()),
            orb,
            _service: service,
            _served: served,
        }
    }

    fn list(&self, arguments: &[&str]) -> String {
        let list = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args([
                "events",
                "list",
                "--names",
                &self.names,
                "--interval",
                "1ms",
            ])
            .args(arguments)
            .env("NO_COLOR", "1")
            .output()
            .expect("the program starts");
        let errors = String::from_utf8(list.stderr).expect("UTF-8");
        assert_eq!((list.status.code(), &*errors), (Some(0), ""));
        String::from_utf8(list.stdout).expect("UTF-8")
    }

    /// What is listed of our channel.
    fn ours(&self) -> serde_json::Value {
        let rows: serde_json::Value = serde_json::from_str(&self.list(&["--json"])).expect("JSON");
        let rows = rows.as_array().expect("an array");
        let ours = rows.iter().find(|row| row["name"] == "deckwatch/NAV");
        ours.expect("our channel").clone()
    }

    /// Waits until the channel has so many consumers and suppliers.
    fn wait_for(&self, clients: (u64, u64)) -> serde_json::Value {
        loop {
            let ours = self.ours();
            let found = (ours["consumers"].as_u64(), ours["suppliers"].as_u64());
            if found == (Some(clients.0), Some(clients.1)) {
                return ours;
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.orb.shutdown(true).expect("it ends");
    }
}

#[test]
fn channels_are_listed_with_what_is_known_of_them() {
    let foreign = Hand::new();
    let world = World::new(&foreign);
    let listed = world.list(&[]);
    let lines = listed.lines().map(|line| {
        let is_address = |word: &&str| word.starts_with("127.0.0.1:");
        let address = line
            .split_whitespace()
            .find(is_address)
            .expect("an address");
        line.replace(address, "ADDRESS")
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    let ours = world.ours();
    assert_eq!((&ours["queued"], &ours["received"]), (&0.into(), &0.into()));
    assert!(ours["rates"]["received_hz"].is_number(), "{ours}");
}

#[test]
fn a_name_that_a_peer_has_chosen_moves_no_cursor() {
    let foreign = Hand::new();
    let world = World::new(&foreign);
    let root = world.orb.string_to_object(&world.names).expect("an IOR");
    let root = NamingContextRef::unchecked_narrow(root.expect("not nil"));
    let channel = world.orb.string_to_object(&world.channel).expect("an IOR");
    let channel = channel.expect("not nil");
    let harmful = "\u{1b}[31mX\u{1b}]0;owned\u{7}";
    for name in [
        format!("it's{harmful}"),
        format!("one{harmful}/SAME"),
        format!("two{harmful}/SAME"),
    ] {
        bind_with_contexts(&root, &name, &channel, Existing::Keep).expect("bound");
    }
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(arguments)
            .args(["--names", &world.names])
            .env("NO_COLOR", "1")
            .output()
            .expect("the program starts");
        let texts = [output.stdout, output.stderr].map(String::from_utf8);
        texts.map(|text| text.expect("UTF-8")).concat()
    };
    for arguments in [
        &["events", "list", "--interval", "1ms"][..],
        &["events", "list", "--interval", "1ms", "--json"],
        &["names", "list", "--recursive", "--long"],
        // It is one of two.
        &["events", "echo", "SAME"],
    ] {
        let text = run(arguments);
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert!(
            text.contains("\\u001b[31mX\\u001b]0;owned\\u0007"),
            "{text}"
        );
    }
    assert!(run(&["names", "list"]).contains("it's\\u001b"));
}

#[test]
fn the_counts_of_a_channel_return_to_zero_whatever_ended_its_clients() {
    let foreign = Hand::new();
    let world = World::new(&foreign);
    let echo = Events::at(&world.channel, &["echo"]);
    let hz = Events::at(&world.channel, &["hz"]);
    world.wait_for((2, 0));
    let publish = Events::at(
        &world.channel,
        &["publish", "--type", "long", "1", "2", "3"],
    );
    assert_eq!(publish.end().0, Some(0));
    // The name without its context.
    let named = [
        "events",
        "publish",
        "NAV",
        "4",
        "--type",
        "long",
        "--names",
        &world.names,
    ];
    let named = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(named)
        .output();
    let named = named.expect("the program starts");
    let told = String::from_utf8(named.stderr).expect("UTF-8");
    assert_eq!(
        told,
        "NAV is not bound; deckwatch/NAV is taken.\nSent 1 event.\n"
    );
    let waiting = Events::at(&world.channel, &["publish", "--type", "long"]);
    let ours = world.wait_for((2, 1));
    assert_eq!(ours["received"], 4);
    while world.ours()["delivered"] != 8 {}
    for (process, signal) in [
        (&echo, Signal::INT),
        (&hz, Signal::TERM),
        (&waiting, Signal::TERM),
    ] {
        process.signal(signal);
    }
    let ours = world.wait_for((0, 0));
    assert_eq!(
        (&ours["delivered"], &ours["consumers_lost"]),
        (&8.into(), &0.into())
    );
    for process in [echo, hz, waiting] {
        assert_eq!(process.end().0, Some(0));
    }
}
