//! Prints what is found of clocks.

use std::net::SocketAddr;

use deckwatch_carrier::clock::Counts;
use deckwatch_meter::clock::{SyncState, Window};
use serde::Serialize;

use super::Total;
use crate::output::outln;
use crate::words;

/// A host's clock at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Shown {
    pub(super) host: String,
    /// How far the other CLOCK_MONOTONIC is ahead.
    pub(super) ahead_ns: Option<i64>,
    /// How far the other CLOCK_REALTIME is ahead.
    pub(super) realtime_ahead_ns: Option<i64>,
    pub(super) window: Option<Window>,
    pub(super) counts: Counts,
    pub(super) far_sync: Option<SyncState>,
}

pub(super) fn as_json(what: &str, value: &impl Serialize) -> anyhow::Result<()> {
    outln!("{{\"{what}\":{}}}", serde_json::to_string(value)?)
}

pub(super) fn heading(width: usize) -> String {
    format!(
        "{:width$}  {:>12}  {:>10}  {:>9}  {:>9}  {:>10}  {:>11}  far clock",
        "host", "ahead", "skew ppm", "within", "alike", "round trip", "lost"
    )
}

/// Prints one second.
pub(super) fn line(shown: &Shown, width: usize) -> anyhow::Result<()> {
    outln!("{}", text(shown, width))
}

fn text(shown: &Shown, width: usize) -> String {
    let lost = format!("{} of {}", shown.counts.lost, shown.counts.asked);
    let sync = shown.far_sync.as_ref().map(SyncState::in_words);
    let sync = sync.unwrap_or_default();
    let host = &shown.host;
    let Some(window) = shown.window else {
        return format!("{host:width$}  no answer; lost {lost}");
    };
    let relation = window.relation;
    let assumed = relation.assumed_ns.map_or("-".to_owned(), words::latency);
    format!(
        "{host:width$}  {:>12}  {:>10.3}  {:>9}  {assumed:>9}  {:>10}  {lost:>11}  {sync}",
        shown.realtime_ahead_ns.map_or("-".to_owned(), signed),
        window.skew_ppm.1,
        words::latency(relation.rigorous_ns),
        words::latency(window.round_trip_ns),
    )
}

/// Formats a difference of times with its sign.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", words::latency(ns.unsigned_abs()))
}

/// Prints all that was found of a host.
pub(super) fn total(total: &Total, is_json: bool) -> anyhow::Result<()> {
    let Total {
        host,
        windows,
        best,
        last,
        impossible,
        breaks,
        near_sync,
    } = total;
    let counts = last.counts;
    if is_json {
        return as_json(
            "total",
            &serde_json::json!({
                "host": host, "windows": windows, "best": best, "counts": counts, "impossible": impossible,
                "breaks": breaks, "far_sync": last.far_sync, "near_sync": near_sync,
            }),
        );
    }
    outln!(
        "\n{host}: {} exchanges in {} {} of up to 128; {} of {} questions lost, {} refused, {} foreign datagrams",
        words::count(counts.exchanges),
        words::count(*windows),
        words::plural("window", usize::try_from(*windows).unwrap_or(usize::MAX)),
        words::count(counts.lost),
        words::count(counts.asked),
        words::count(counts.refused),
        words::count(counts.ignored),
    )?;
    if let Some((best, window)) = best.as_ref().and_then(|best| Some((best, best.window?))) {
        let relation = window.relation;
        let assumed = relation.assumed_ns.map_or(String::new(), |ns| {
            format!(
                " (within {} if both directions are alike)",
                words::latency(ns)
            )
        });
        outln!(
            "  at best: {} ahead within {}{assumed}; skew {:.3} ppm, between {:.3} and {:.3}",
            best.realtime_ahead_ns.map_or("-".to_owned(), signed),
            words::latency(relation.rigorous_ns),
            window.skew_ppm.1,
            window.skew_ppm.0,
            window.skew_ppm.2,
        )?;
    }
    if *breaks > 0 {
        outln!(
            "  {breaks} times no constant rate explained the exchanges: a clock was set, or its rate was changed"
        )?;
    }
    if *impossible > 0 {
        outln!("  {impossible} exchanges had stamps that no two clocks can show")?;
    }
    let far = last.far_sync.as_ref().map(SyncState::in_words);
    outln!(
        "  far clock: {}; this clock: {}",
        far.as_deref().unwrap_or("not known"),
        near_sync.in_words()
    )
}

/// Says where questions are answered.
pub(super) fn serving(address: SocketAddr, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        as_json("serving", &address)
    } else {
        outln!("Answers at {address} until Ctrl-C. On the other machine: deckwatch clock {address}")
    }
}

/// Says how many questions were answered.
pub(super) fn served(answered: u64, ignored: u64, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        let counts = serde_json::json!({ "answered": answered, "ignored": ignored });
        return as_json("total", &counts);
    }
    outln!(
        "{} questions answered, {} foreign datagrams ignored",
        words::count(answered),
        words::count(ignored)
    )
}

#[cfg(test)]
mod tests {
    use deckwatch_meter::clock::Relation;

    use super::*;

    #[test]
    fn a_second_is_one_line_under_its_heading() {
        let relation = Relation {
            far_ns: 5_000_000_000,
            near_ns: 0,
            rigorous_ns: 5_120,
            assumed_ns: Some(410),
        };
        let mut shown = Shown {
            host: "10.0.0.2".to_owned(),
            ahead_ns: Some(5_000_000_000),
            realtime_ahead_ns: Some(-12_340),
            window: Some(Window {
                relation,
                ends: [relation; 2],
                skew_ppm: (-0.5, 12.5, 13.0),
                round_trip_ns: 10_200,
                exchanges: 64,
                follows: true,
            }),
            counts: Counts {
                asked: 200,
                lost: 1,
                ..Counts::default()
            },
            far_sync: Some(SyncState::default()),
        };
        assert_eq!(
            heading(8),
            "host             ahead    skew ppm     within      alike  round trip         lost  far clock"
        );
        assert_eq!(
            text(&shown, 8),
            "10.0.0.2      -12.3 us      12.500     5.1 us     410 ns     10.2 us     1 of 200  not synchronised"
        );
        shown.window = None;
        assert_eq!(text(&shown, 8), "10.0.0.2  no answer; lost 1 of 200");
    }
}
