//! The checks of a soak, and its result document.

use std::collections::BTreeMap;
use std::time::SystemTime;

use deckwatch_meter::experiment::{
    AxisNote, Curve, EXPERIMENT_SCHEMA_VERSION, ExperimentDocument, Figure, FigureKind, Point,
    Quantity, Soak, SoakCheck, SoakFault, SoakSeries,
};
use deckwatch_meter::provenance::{self, Readings};
use deckwatch_meter::result::{ClockNote, VerdictKind, Warning};
use deckwatch_meter::words;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::signal;

use super::channels::Accounts;
use super::faults::{FaultKind, Faults};
use super::server::{Kind, Server};
use super::{Scene, SoakSetup, seconds, warm_up};
use crate::laboratory::ENDED_EARLY;

/// The judged result.
pub(super) fn document(
    setup: &SoakSetup,
    scene: &Scene,
    faults: &Faults,
    (started_at, before): (SystemTime, &Readings),
) -> ExperimentDocument {
    let disturbance = before.until(&Readings::take());
    let clock = ClockNote {
        shared: true,
        note: "times of calls by CLOCK_MONOTONIC of the client".to_owned(),
        conversion_error_ns: 0,
        latency_error_ns: None,
        latency_assumed_ns: None,
        sync: Default::default(),
    };
    let run = provenance::Run {
        version: setup.version.clone(),
        mission_path: String::new(),
        mission_text: String::new(),
        clock,
    };
    let soak = Soak {
        verdict: VerdictKind::Unproven,
        reasons: Vec::new(),
        seed: setup.seed,
        time_s: seconds(monotonic_ns() - scene.begin_ns),
        warm_up_s: warm_up(setup.time).as_secs_f64(),
        series: series(scene),
        checks: checks(scene, faults),
        faults: faults.done.clone(),
    };
    let soak = soak.judged();
    let mut warnings = disturbance.warnings();
    if let Some(signal) = signal::ending() {
        warnings.push(Warning {
            kind: ENDED_EARLY.to_owned(),
            text: format!("Ended early by {signal}; what was found until then is judged."),
        });
    }
    let kinds: Vec<&str> = setup.faults.iter().map(|kind| kind.word()).collect();
    let parameters = [
        ("time", words::duration(setup.time)),
        ("seed", setup.seed.to_string()),
        ("faults", kinds.join(", ")),
    ];
    ExperimentDocument {
        schema_version: EXPERIMENT_SCHEMA_VERSION,
        experiment: "soak".to_owned(),
        title: "Servers under load over time".to_owned(),
        source: SOURCE.to_owned(),
        provenance: provenance::provenance(run, started_at, &disturbance),
        condition: "servers and clients on this machine, time sharing".to_owned(),
        parameters: BTreeMap::from(parameters.map(|(key, words)| (key.to_owned(), words))),
        standings: Vec::new(),
        machine_states: Vec::new(),
        measurements: Vec::new(),
        figures: figures(&soak),
        skipped: Vec::new(),
        notes: Vec::new(),
        warnings,
        fidelity: None,
        soak: Some(soak),
    }
}

fn series(scene: &Scene) -> Vec<SoakSeries> {
    let of_servers = scene.servers.iter().flat_map(|server| {
        Quantity::ALL.map(|quantity| {
            SoakSeries::new(server.kind.name(), quantity, server.segments(quantity))
        })
    });
    let control = scene.machine.segments(Quantity::P99);
    let control = SoakSeries::new(scene.machine.kind.name(), Quantity::P99, control);
    of_servers.chain([control]).collect()
}

fn verdict(holds: bool) -> VerdictKind {
    if holds {
        VerdictKind::Pass
    } else {
        VerdictKind::Fail
    }
}

fn checks(scene: &Scene, faults: &Faults) -> Vec<SoakCheck> {
    let mut all: Vec<SoakCheck> = scene.servers.iter().map(calls).collect();
    all.push(bindings(scene, faults));
    for accounts in &scene.accounts {
        all.push(events(accounts));
    }
    for accounts in &scene.accounts[..2] {
        all.push(consumers(accounts, faults));
    }
    all
}

/// Every call outside of declared faults succeeded, and the server died only where it was killed.
fn calls(server: &Server) -> SoakCheck {
    let failures = server.first_failures();
    let first = if failures.is_empty() {
        String::new()
    } else {
        format!("; the first: {}", failures.join("; "))
    };
    let found = format!(
        "{} good, {} excused by faults, {} failed{first}",
        words::count(server.calls()),
        words::count(server.excused_failures()),
        words::count(server.failed())
    );
    let verdict = match (server.failed(), server.calls()) {
        (0, 0) => VerdictKind::Unproven,
        (failed, _) => verdict(failed == 0),
    };
    SoakCheck {
        name: format!("calls of {} succeed outside of faults", server.kind.name()),
        verdict,
        found,
    }
}

fn bindings(scene: &Scene, faults: &Faults) -> SoakCheck {
    let known = scene.bindings.known();
    let is_kill = |fault: &&SoakFault| {
        fault.kind == FaultKind::Kill.word() && fault.server == Kind::Names.name()
    };
    let kills = faults.done.iter().filter(is_kill).count();
    let lost = known
        .first_lost
        .map_or(String::new(), |first| format!("; the first: {first}"));
    let found = format!(
        "{} bound, all read after {} of {kills} kills, {} lost{lost}",
        words::count(known.bound),
        known
            .verified
            .saturating_sub(1)
            .min(u32::try_from(kills).unwrap_or(u32::MAX)),
        words::count(known.lost)
    );
    let is_tested = kills > 0 && known.verified as usize > kills;
    SoakCheck {
        name: "acknowledged bindings are there after kills".to_owned(),
        verdict: match (known.lost, is_tested) {
            (0, true) => VerdictKind::Pass,
            (0, false) => VerdictKind::Unproven,
            _ => VerdictKind::Fail,
        },
        found,
    }
}

/// Losses that a channel counts are those of all its consumers together, and the silent ones lose most. They explain an
/// event that the good consumer misses, and prove nothing.
fn events(accounts: &Accounts) -> SoakCheck {
    let account = accounts.account();
    let found = format!(
        "{} pushed, {} of them before the consumer was there; {} received, {} missing, {} more excused by faults, {} repeated \
         or out of order; the channel counted {} losses of all consumers",
        words::count(account.pushed),
        words::count(account.before),
        words::count(account.received),
        words::count(account.missing),
        words::count(account.excused),
        words::count(account.repeated),
        words::count(account.dropped())
    );
    SoakCheck {
        name: format!(
            "events of {} are received or counted as lost",
            accounts.consumer()
        ),
        verdict: match (account.missing, account.received) {
            _ if account.repeated > 0 => VerdictKind::Fail,
            (0, 1..) => VerdictKind::Pass,
            (missing, _) if missing > account.dropped() => VerdictKind::Fail,
            _ => VerdictKind::Unproven,
        },
        found,
    }
}

fn consumers(accounts: &Accounts, faults: &Faults) -> SoakCheck {
    let is_consumer = |kind: &str| {
        [FaultKind::Silence, FaultKind::Death]
            .iter()
            .any(|one| one.word() == kind)
    };
    let of_it = faults
        .done
        .iter()
        .filter(|one| one.server == accounts.name());
    let died = of_it.filter(|one| is_consumer(&one.kind)).count();
    let left = accounts.account().consumers;
    let own = accounts.own_consumers();
    SoakCheck {
        name: format!("no consumer that died is left at {}", accounts.name()),
        verdict: match (left, died) {
            (None, _) | (_, 0) => VerdictKind::Unproven,
            (Some(left), _) => verdict(left == own),
        },
        found: format!(
            "{died} died, {} left beside {own} that live",
            left.map_or("an unknown number".to_owned(), |left| left
                .saturating_sub(own)
                .to_string())
        ),
    }
}

/// A figure for each quantity, with a curve for each server.
fn figures(soak: &Soak) -> Vec<Figure> {
    let figure = |quantity: Quantity| {
        let (title, label, unit) = match quantity {
            Quantity::Memory => ("Memory", "anonymous and shared resident memory", "octets"),
            Quantity::Descriptors => ("Descriptors", "open descriptors", ""),
            Quantity::Threads => ("Threads", "threads", ""),
            Quantity::P99 => (
                "Time of calls",
                "99th percentile of the time of calls",
                "ns",
            ),
        };
        let of_it = soak.series.iter().filter(|one| one.quantity == quantity);
        Figure {
            title: title.to_owned(),
            source: String::new(),
            kind: FigureKind::Lines,
            x: AxisNote::new("seconds after the start", "", false),
            y: AxisNote::new(label, unit, false),
            curves: of_it.clone().map(curve).collect(),
            notes: of_it
                .map(|one| format!("{}: {}", one.verdict.word(), one.words()))
                .collect(),
        }
    };
    let mut all: Vec<Figure> = Quantity::ALL.map(figure).into();
    let kills = soak.faults.iter();
    let kills = kills.filter(|fault| fault.kind == FaultKind::Kill.word());
    let kills: Vec<String> = kills
        .map(|fault| format!("{} at {:.0} s", fault.server, fault.at_s))
        .collect();
    if let (Some(first), false) = (all.first_mut(), kills.is_empty()) {
        first
            .notes
            .push(format!("Killed and started again: {}.", kills.join(", ")));
    }
    all
}

/// A curve has some hundred points: of a long soak every so many.
fn curve(series: &SoakSeries) -> Curve {
    let points: Vec<(f64, f64)> = series.segments.concat();
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let points = points.iter().step_by(every);
    Curve {
        label: series.server.clone(),
        points: points.map(|&(x, y)| Point::new(x, y)).collect(),
    }
}

/// Points of a drawn curve: a figure has so many pixels.
const POINTS_MAX: usize = 600;

const SOURCE: &str = "Slopes by least squares through medians of blocks, with a correction for autocorrelation; FAIL where the \
    lower 95% end of the growth, with Holm's correction for all series, exceeds the allowance.";
