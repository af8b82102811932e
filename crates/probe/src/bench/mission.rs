//! Events from one supplier to one consumer in a mission: the carriers `event` and `rt-event` beside `corba`. The three
//! take turns within one run of `deckwatch run`, an offset apart, so that what else the machine does falls on all
//! alike.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deckwatch_meter::result::ResultDocument;
use deckwatch_os::schedule::{affinity, set_affinity};
use deckwatch_os::signal;

use super::kind::EVENT_SIZE;
use super::part::{About, Part};
use super::plan::MISSION_TIME;
use crate::laboratory::condition::Places;
use crate::laboratory::program::Place;
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Session, TurnCase};
use crate::laboratory::{LaboratoryError, OURS};

/// The ratios to twice the time of `corba`, by the names of the carriers and of the values.
pub(super) const RATIOS: [(&str, &str); 2] = [
    ("event", "event_over_two_calls"),
    ("rt-event", "rt_event_over_two_calls"),
];

/// The carrier whose messages pass one hop where an event passes two.
const CALL: &str = "corba";

/// Runs the mission once in each round, and adds the ratios to `part`. Returns false if the user wants to end.
pub(super) fn measure(
    session: &mut Session<'_>,
    places: &Places,
    part: &mut Part,
) -> Result<bool, LaboratoryError> {
    let folder = Folder::new()?;
    let text = mission(places, session.setup.run_budget * RUNS);
    let path = folder.0.join("mission.toml");
    std::fs::write(&path, text).map_err(file(&path))?;
    let mut samples = Samples::default();
    let cases = TurnCase::alike(1, &[OURS]);
    let rounds = 1..=session.setup.rounds;
    let is_whole = session.take_turns(rounds, &cases, &mut |session, turn| {
        session.show(
            turn.round,
            "events: a mission over corba, event and rt-event".to_owned(),
        );
        let result = folder.0.join(format!("round-{}", turn.round));
        let ran = run(&session.setup.program, places, (&path, &result));
        session.spend(MISSION_TIME);
        if signal::ending().is_some() {
            return Ok(false);
        }
        for (name, value) in ratios(&ran?)? {
            samples.add_value(&name, value);
        }
        Ok(true)
    });
    if let Some(found) = samples.measurement(OURS, "a mission", &[]) {
        part.add(About::Mission, found);
    }
    Ok(is_whole)
}

/// The medians of all carriers in nanoseconds, and the ratios.
fn ratios(document: &ResultDocument) -> Result<Vec<(String, f64)>, LaboratoryError> {
    let p50 = |carrier: &str| {
        let mut flows = document.flows.iter();
        let flow = flows.find(|flow| flow.carrier == carrier);
        let found = flow.and_then(|flow| flow.destinations.first()?.latency_ns.get("p50"));
        let found = found.map(|ns| *ns as f64).filter(|ns| *ns > 0.0);
        found.ok_or_else(|| failed(&format!("it has no median over {carrier}")))
    };
    let call = p50(CALL)?;
    let mut values = vec![(format!("{CALL}_p50_ns"), call)];
    for (carrier, name) in RATIOS {
        let event = p50(carrier)?;
        values.push((format!("{}_p50_ns", carrier.replace('-', "_")), event));
        values.push((name.to_owned(), event / (2.0 * call)));
    }
    Ok(values)
}

fn run(
    program: &Path,
    places: &Places,
    (mission, result): (&Path, &Path),
) -> Result<ResultDocument, LaboratoryError> {
    let carriers: Vec<&str> = std::iter::once(CALL)
        .chain(RATIOS.map(|(carrier, _)| carrier))
        .collect();
    let mut command = Command::new(program);
    command
        .arg("run")
        .arg(mission)
        .args(["--carriers", &carriers.join(","), "--output"])
        .arg(result)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // The mission's processes inherit the processors of this one, which has moved away from those of the ends.
    let own = affinity().unwrap_or_default();
    let ends = [places.server, places.client].map(|place| place.processor);
    let all: Vec<u32> = own
        .iter()
        .copied()
        .chain(ends.into_iter().flatten())
        .collect();
    let _ = set_affinity(&all);
    let started = command.spawn();
    let _ = set_affinity(&own);
    let ran = started.and_then(Child::wait_with_output);
    let ran = ran.map_err(|source| LaboratoryError::CannotStart {
        what: "The mission".to_owned(),
        source,
    })?;
    // Its verdict does not matter here.
    ResultDocument::load(&result.join("result.json")).map_err(|error| {
        let said = String::from_utf8_lossy(&ran.stderr);
        let last = said.lines().rfind(|line| line.starts_with("error"));
        failed(last.unwrap_or(&error.to_string()))
    })
}

fn mission(places: &Places, duration: Duration) -> String {
    let host = |name: &str, place: Place| {
        let processor = place.processor.map(|it| format!(", processors = [{it}]"));
        let fifo = place
            .fifo
            .map(|it| format!(", scheduling = {{ class = \"fifo\", native_priority = {it} }}"));
        let more = [processor, fifo].map(Option::unwrap_or_default).concat();
        format!("{{ name = \"{name}\"{more} }}")
    };
    format!(
        "name = \"bench\"
network = {{ preset = \"loopback\" }}
hosts = [{}, {}]

[[flows]]
name = \"EVENT\"
octets = {EVENT_SIZE}
from = \"SUPPLIER\"
to = [\"CONSUMER\"]
carrier = \"{CALL}\"
rate_hz = {RATE_HZ}
deadline = \"100ms\"
late = \"1 in 10\"
duration = \"{}ms\"
warm_up = \"200ms\"
",
        host("SUPPLIER", places.server),
        host("CONSUMER", places.client),
        duration.as_millis(),
    )
}

fn failed(reason: &str) -> LaboratoryError {
    LaboratoryError::EndFailed {
        what: "The mission".to_owned(),
        reason: reason.to_owned(),
    }
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> LaboratoryError {
    let path = path.to_owned();
    move |source| LaboratoryError::File { path, source }
}

/// A folder that is removed with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, LaboratoryError> {
        let name = format!("deckwatch-bench-mission-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(file(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left over, it takes only space.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The rate of each carrier: below the time that a message may take on a loaded machine.
const RATE_HZ: u32 = 100;

/// The duration of the mission in runs of the bench.
const RUNS: u32 = 8;
