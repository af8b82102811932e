//! What the book and the scenarios say is true of the program.

use std::path::Path;

use deckwatch_scenario::mission::Mission;

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
    let loaded = Mission::load(&root().join("scenarios/nav.toml"), Some("loaded")).expect("sound");
    for load in &loaded.loads {
        assert_eq!(
            (load.processes, load.count, load.sleep.as_nanos()),
            (20, 500_000, 1000)
        );
    }
    assert_eq!(loaded.loads.len(), 2);
}
