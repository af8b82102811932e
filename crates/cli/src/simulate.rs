//! `deckwatch check --simulate`: prints what the network alone does with a mission's messages.

use std::time::{Duration, Instant};

use comfy_table::Table;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use deckwatch_scenario::mission::Mission;
use deckwatch_scenario::simulate::{Simulation, simulate};

use crate::output::{errln, outln};
use crate::words;

/// Simulates the networks of these missions. Long ones show how far they are.
pub(crate) fn all(missions: &[Mission]) -> anyhow::Result<Vec<Simulation>> {
    let mut told = Instant::now();
    let mut tell = |share: f64| {
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            errln!("simulated {:.0}%", share.min(1.0) * 1e2);
        }
    };
    let each = missions.iter().map(|mission| simulate(mission, &mut tell));
    Ok(each.collect::<Result<_, _>>()?)
}

pub(crate) fn print(found: &Simulation) -> anyhow::Result<()> {
    outln!(
        "Mission {} on {} in virtual time, seed {}: {} frames; {} dropped by full queues, {} lost by links.",
        found.mission,
        found.network,
        found.seed,
        words::count(found.frames),
        words::count(found.queue_full),
        words::count(found.lost_by_chance)
    )?;
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header([
        "flow", "carrier", "to", "messages", "lost", "median", "p99", "max", "deadline", "late",
    ]);
    let time = |ns: Option<i64>| {
        let ns = ns.and_then(|ns| u64::try_from(ns).ok());
        ns.map_or("-".to_owned(), |ns| {
            words::duration(Duration::from_nanos(ns))
        })
    };
    for one in &found.flows {
        table.add_row([
            one.flow.clone(),
            one.carrier.to_string(),
            one.to.clone(),
            words::count(one.messages),
            words::count(one.lost),
            time(one.median_ns),
            time(one.p99_ns),
            time(one.max_ns),
            words::duration(Duration::from_nanos(one.deadline_ns)),
            format!("{:.3}%", one.late_share * 1e2),
        ]);
    }
    outln!("{table}")?;
    outln!("{NOTE}")?;
    Ok(())
}

const NOTE: &str = "\
Hosts cost nothing here: no processor, no middleware, no loads. A message is one datagram, on the network when it is due.
late: lost, or later than the deadline by the network alone. A percentile needs ten messages beyond it.";

const TELL_EVERY: Duration = Duration::from_secs(1);
