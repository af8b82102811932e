//! What the book and the scenarios say is true of the program.

use std::path::Path;
use std::time::Duration;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::scheduling::{Scheduling, SchedulingClass};
use deckwatch_meter::disturbance::{TakenTime, Taker};
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_meter::judge::InvalidReason;
use deckwatch_scenario::mission::{LoadWork, Mission};

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_mission_in_the_book_can_be_run() {
    let page = std::fs::read_to_string(root().join("docs/book/missions.md")).expect("the page");
    let block = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let path = root().join("scenarios/of-the-book.toml");
    let block = block.expect("a mission in the page");
    for variant in [None, Some("loaded")] {
        let mission =
            Mission::parse(&path, block, variant).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(mission.flows.len(), 1);
        assert_eq!(mission.loads.len(), if variant.is_some() { 2 } else { 0 });
    }
}

#[test]
fn the_scenarios_are_the_papers() {
    let nav = Mission::load(&root().join("scenarios/nav.toml"), None).expect("sound");
    assert_eq!(nav.flows[0].arrivals.rate_hz(), 20.0);
    assert_eq!(nav.flows[0].deadline.as_millis(), 50);
    let fleet = Mission::load(&root().join("scenarios/nav-fleet.toml"), None).expect("sound");
    let destinations: Vec<_> = fleet
        .flows
        .iter()
        .map(|flow| (flow.to.len(), flow.arrivals.rate_hz()))
        .collect();
    assert_eq!(destinations, [(17, 16.0), (18, 1.0)]);
    for variant in ["real-time", "real-time-loaded"] {
        let path = root().join("scenarios/nav-fleet.toml");
        let fleet = Mission::load(&path, Some(variant)).expect("sound");
        for flow in &fleet.flows {
            let all = flow.consumer_scheduling.iter();
            let all = all.chain([&flow.supplier_scheduling]);
            let is_fifo = |it: &Scheduling| matches!(it.class, SchedulingClass::Fifo { .. });
            assert!(all.into_iter().all(is_fifo), "{variant} {}", flow.name);
            assert_eq!(flow.carriers[0].name(), "rt-event");
        }
    }
    let loaded = Mission::load(&root().join("scenarios/nav.toml"), Some("loaded")).expect("sound");
    for load in &loaded.loads {
        let paper = LoadWork::Loops {
            processes: 20,
            count: 500_000,
            sleep: Duration::from_micros(1),
        };
        assert_eq!(load.work, paper);
    }
    assert_eq!(loaded.loads.len(), 2);
}

#[test]
fn the_eight_experiments_have_the_numbers_that_the_paper_prints() {
    const PRINTED: [(&str, &str); 8] = [
        ("fig11", "21 out of 100,000 (0.02%)"),
        ("fig12", "883, approximately 0.9%"),
        ("fig13", "49, or 0.05%"),
        ("fig14", "over 32,000 (32%)"),
        ("fig15", "no late messages at all"),
        ("fig16", "18 (0.02%)"),
        ("fig17", "8 out of 100,000"),
        ("fig18", "59 (0.06%)"),
    ];
    let path = root().join("scenarios/nav-paper.toml");
    for (index, (variant, late)) in PRINTED.into_iter().enumerate() {
        let is_real_time = index >= 4;
        let mission = Mission::load(&path, Some(variant)).expect("sound");
        let printed = mission.published.as_ref().expect("the paper's number");
        assert_eq!(printed.late, late);
        let figure = format!("Fig. {}. ", index + 11);
        assert!(printed.figure.starts_with(&figure), "{}", printed.figure);
        assert_eq!(mission.is_on_loopback(), index % 4 < 2, "{variant}");
        assert_eq!(!mission.loads.is_empty(), index % 2 == 1, "{variant}");
        let flow = &mission.flows[0];
        let carrier = if is_real_time { "rt-event" } else { "event" };
        assert_eq!(flow.carriers[0].to_string(), carrier, "{variant}");
        assert_eq!(
            flow.supplier_scheduling.lock_memory, is_real_time,
            "{variant}"
        );
        assert_eq!(flow.arrivals.rate_hz(), 20.0);
    }
}

#[test]
fn a_carrier_of_all_flows_that_is_not_there_is_told_with_its_place() {
    let path = root().join("scenarios/nav-paper.toml");
    let text = std::fs::read_to_string(&path).expect("the mission");
    let text = text.replace("carrier = \"rt-event\"", "carrier = \"token-ring\"");
    // The variants without it can be run.
    Mission::parse(&path, &text, Some("fig11")).unwrap_or_else(|error| panic!("{error}"));
    let error = Mission::parse(&path, &text, Some("fig15")).expect_err("no such carrier");
    let said = error.to_string();
    assert!(
        said.contains(":11: error: this deckwatch has no carrier `token-ring`"),
        "{said}"
    );
    assert!(said.contains("corba-oneway, event"), "{said}");
}

/// A mission in a folder of its own, beside the network of the scenarios.
fn mission_on_a_network_file(hosts: &str) -> Result<Mission, String> {
    let folder = std::env::temp_dir().join(format!(
        "deckwatch-net-{}-{}",
        std::process::id(),
        hosts.len()
    ));
    std::fs::create_dir_all(&folder).expect("writable");
    std::fs::copy(
        root().join("scenarios/two-decks.toml"),
        folder.join("decks.toml"),
    )
    .expect("copied");
    let text = format!(
        "name = \"n\"\nhosts = [{{ name = \"RTS\" }}, {{ name = \"{hosts}\" }}]\n\
         flows = [{{ name = \"F\", octets = 64, from = \"RTS\", to = [\"{hosts}\"], carrier = \"udp\", \
         rate_hz = 10, deadline = \"50ms\", late = \"3 in 10_000\", duration = \"1s\" }}]\n\
         [network]\nfile = \"decks.toml\"\n"
    );
    std::fs::write(folder.join("m.toml"), text).expect("writable");
    let mission = Mission::load(&folder.join("m.toml"), None).map_err(|error| error.to_string());
    std::fs::remove_dir_all(&folder).expect("there");
    mission
}

#[test]
fn a_mission_takes_its_network_from_a_file_beside_it() {
    let mission = mission_on_a_network_file("SONAR").expect("sound");
    let layout = mission.network.layout.expect("drawn");
    assert_eq!(layout.hosts, ["RTS", "SONAR"]);
    let error = mission_on_a_network_file("RADAR").expect_err("no such host");
    assert!(
        error.contains("m.toml:2:37: error: the network file has no host `RADAR`"),
        "{error}"
    );
}

/// The part of a remedy that stands in the braces or brackets which begin at `from`.
fn snippet<'r>(remedy: &'r str, from: &str, close: &str) -> &'r str {
    let begin = remedy.find(from).expect(from);
    let end = remedy[begin..].find(close).expect(close);
    &remedy[begin..begin + end + close.len()]
}

#[test]
fn what_a_remedy_says_to_write_is_read_by_the_mission() {
    let unkept = |real_time: bool| InvalidReason::ScheduleNotKept {
        messages: 51,
        host: HostEntry {
            free_processor: real_time.then_some(1),
            ..HostEntry::named("SONAR")
        },
        real_time,
    };
    let taken = InvalidReason::TimeWithheld {
        stolen: Duration::ZERO,
        throttled: Duration::ZERO,
        taken: Some(TakenTime {
            part: "consumer".to_owned(),
            host: HostEntry::named("SONAR"),
            thread: "consumer".to_owned(),
            destination: None,
            delays_messages: true,
            time: Duration::from_millis(600),
            most: Duration::from_millis(150),
            by: None,
        }),
        messages: 12,
    };
    for (reason, is_fifo) in [(unkept(false), true), (unkept(true), false), (taken, true)] {
        let remedy = reason.remedy();
        let host = snippet(&remedy, "{ name", if is_fifo { " } }" } else { " }" });
        let loads = snippet(&remedy, "loads = [", " }]");
        let text = format!(
            "name = \"remedy\"\n{loads}\nhosts = [{{ name = \"RTS\" }}, {host}]\n[[flows]]\nname = \"NAV\"\nfrom = \"RTS\"\n\
             to = [\"SONAR\"]\nrate_hz = 20\noctets = 384\ndeadline = \"50ms\"\nlate = \"1 in 20\"\ncount = 100\ncarrier = \"udp\"\n"
        );
        let path = root().join("scenarios/of-a-remedy.toml");
        let mission =
            Mission::parse(&path, &text, None).unwrap_or_else(|error| panic!("{remedy}\n{error}"));
        assert_eq!(mission.loads.len(), 1, "{remedy}");
        let class = &mission.flows[0].consumer_scheduling[0].class;
        let is_real_time = matches!(class, SchedulingClass::Fifo { .. });
        assert_eq!(is_real_time, is_fifo, "{remedy}");
    }
}

#[test]
fn an_entry_that_a_remedy_replaces_keeps_its_other_keys() {
    let hosts = |sonar: &str, rest: &str| {
        let text = format!(
            "name = \"remedy\"\nhosts = [{{ name = \"RTS\", address = \"10.0.0.1\" }}, {sonar}]\n{rest}[[flows]]\nname = \"NAV\"\n\
             from = \"RTS\"\nto = [\"SONAR\"]\nrate_hz = 20\noctets = 384\ndeadline = \"50ms\"\nlate = \"1 in 20\"\n\
             count = 100\ncarrier = \"udp\"\n"
        );
        let path = root().join("scenarios/of-a-remedy.toml");
        Mission::parse(&path, &text, None).unwrap_or_else(|error| panic!("{sonar}\n{error}"))
    };
    let written = "{ name = \"SONAR\", reach = [\"ssh\", \"-p\", \"22\", \"sonar\"], address = \"10.0.0.2\", \
                   program = \"/opt/dw\", lock_memory = true, processors = [1], \
                   scheduling = { class = \"round-robin\", native_priority = 80 } }";
    let mission = hosts(written, "");
    let taken = TakenTime {
        host: HostEntry {
            priority: Some(80),
            ..mission.hosts[1].entry.clone()
        },
        by: Some(Taker {
            name: "audhog".to_owned(),
            id: 4711,
            class: "SCHED_FIFO 90".to_owned(),
        }),
        ..TakenTime::default()
    };
    let remedy = taken.remedy();
    let entry = snippet(&remedy, "{ name", " } }");
    let raised = hosts(entry, "");
    let expected = written.replace("native_priority = 80", "native_priority = 91");
    assert_eq!(raised, hosts(&expected, ""), "{remedy}");
    assert!(!mission.hosts[1].entry.has_loads);
    let loads = "loads = [{ hosts = [\"RTS\"], share = 0.2 }]\n";
    assert!(
        hosts("{ name = \"SONAR\", address = \"10.0.0.2\" }", loads).hosts[1]
            .entry
            .has_loads
    );
}

#[test]
fn a_flow_needs_no_carrier_where_the_command_line_gives_one() {
    let name = format!("deckwatch-carrier-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text = "name = \"m\"\nhosts = [{ name = \"A\" }, { name = \"B\" }]\n[[flows]]\nname = \"F\"\nfrom = \"A\"\n\
                to = [\"B\"]\nrate_hz = 20\noctets = 384\ndeadline = \"50ms\"\nlate = \"1 in 20\"\ncount = 100\n";
    std::fs::write(&path, text).expect("room");
    let error = Mission::load(&path, None).expect_err("no carrier");
    assert!(
        error.to_string().contains("a flow needs `carrier`"),
        "{error}"
    );
    let udp: CarrierRef = "udp".parse().expect("built in");
    let given = Mission::load_over(&path, None, Some(udp)).expect("the command line gives one");
    assert_eq!(given.flows[0].carriers, [udp]);
    let own = format!("{text}carrier = \"tcp\"\n");
    std::fs::write(&path, &own).expect("room");
    let kept = Mission::load_over(&path, None, Some(udp)).expect("sound");
    assert_eq!(kept.flows[0].carriers[0].name(), "tcp");
    std::fs::write(&path, own.replace("octets", "octet")).expect("room");
    let malformed = Mission::load_over(&path, None, Some(udp));
    std::fs::remove_file(&path).expect("it was written");
    assert!(malformed.is_err(), "the rest of the shape still counts");
}
