//! `deckwatch events delay`: measures the age of events.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_probe::events::age::{AgeWindow, Ages, StampPlace, Stamps, Unit};
use deckwatch_probe::events::subscription::Losses;

use super::at::ConsumerArgs;
use super::types::TypeArgs;
use super::watching::{Figures, UntilArgs, Windows, window};
use crate::output::{errln, outln};
use crate::words;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events delay NAV --stamp measured_ns
  deckwatch events delay NAV --stamp header.sec,header.nsec --type Nav::NavData
  deckwatch events delay TRACKS                        a real-time channel: creation_time of the header

The age is the time from the stamp to the receipt in this process, one way. Between two hosts it contains the difference of \
their clocks. A stamp after 1999 is taken as UTC, a smaller one as CLOCK_MONOTONIC of this host.")]
pub(super) struct DelayArgs {
    #[command(flatten)]
    consumer: ConsumerArgs,
    #[command(flatten)]
    types: TypeArgs,
    #[command(flatten)]
    until: UntilArgs,
    /// The member that has the stamp, or two with a comma: seconds, and the rest; the header's stamp without it
    #[arg(long, value_name = "MEMBER[,MEMBER]")]
    stamp: Option<String>,
    /// Unit of the stamp, or of the rest: s, ms, us, ns or 100ns; without it ns, and s for floating point
    #[arg(long, value_name = "UNIT", requires = "stamp")]
    unit: Option<Unit>,
    /// Length of one window, at least 1ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = window)]
    window: Duration,
    /// Print one JSON object a line; the last is the total
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &DelayArgs) -> anyhow::Result<ExitCode> {
    let model = match args.types.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let mut stamps = Stamps::at(args.place()?).with_types(args.types.known(&model)?);
    let mut subscription = args.consumer.subscribe(&args.types, &model)?;
    let (mut total, mut window) = (AgeWindow::default(), AgeWindow::default());
    let mut windows = Windows::new(args.window);
    let (mut unstamped, mut why) = (0_u64, String::new());
    let status = args.until.watch(&mut subscription, |received| {
        let now_ns = received.map_or_else(monotonic_ns, |received| received.at.monotonic_ns);
        if windows.end_by(now_ns) {
            print(args, "window", &window.take(), None)?;
        }
        match received.map(|received| stamps.age_ns(received)) {
            Some(Ok(age_ns)) => {
                window.add(age_ns);
                total.add(age_ns);
            }
            Some(Err(reason)) => (unstamped, why) = (unstamped + 1, reason),
            None => {}
        }
        Ok(())
    })?;
    let ages = total.ages();
    print(args, "total", &ages, Some(subscription.losses()))?;
    if ages.future > 0 {
        errln!(
            "{} events have a stamp in the future: the clocks of both hosts differ.",
            words::count(ages.future)
        );
    }
    if unstamped > 0 {
        errln!(
            "{} events have no stamp, the last because {why}.",
            words::count(unstamped)
        );
    }
    if unstamped > 0 && ages.events == 0 {
        bail!("no event had a stamp");
    }
    Ok(status)
}

impl DelayArgs {
    fn place(&self) -> anyhow::Result<StampPlace> {
        let Some(stamp) = &self.stamp else {
            return Ok(StampPlace::Header);
        };
        let members: Vec<String> = stamp
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect();
        Ok(match members.as_slice() {
            [member] => StampPlace::Member(member.clone(), self.unit),
            [seconds, rest] => StampPlace::Members(seconds.clone(), rest.clone(), self.unit),
            _ => bail!("`--stamp` takes one member, or two: the seconds and the rest"),
        })
    }
}

fn print(args: &DelayArgs, what: &str, ages: &Ages, losses: Option<Losses>) -> anyhow::Result<()> {
    if args.json {
        let figures = Figures {
            figures: ages,
            losses,
        };
        outln!("{{\"{what}\": {}}}", serde_json::to_string(&figures)?)
    } else {
        outln!("{what:<6}  {}", text(ages))
    }
}

fn text(ages: &Ages) -> String {
    let events = usize::try_from(ages.events).unwrap_or(usize::MAX);
    let mut text = format!(
        "{} {}",
        words::count(ages.events),
        words::plural("event", events)
    );
    let signed = |ns: i64| {
        let sign = if ns < 0 { "-" } else { "" };
        format!("{sign}{}", words::latency(ns.unsigned_abs()))
    };
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!("{name} {value}");
        }
    };
    add("; age min", ages.min_ns.map(signed));
    add(", p50", ages.p50_ns.map(words::latency));
    add(", p99", ages.p99_ns.map(words::latency));
    add(", max", ages.max_ns.map(signed));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_one_line_with_units() {
        let mut window = AgeWindow::default();
        assert_eq!(text(&window.ages()), "0 events");
        window.add(-1_500);
        assert_eq!(
            text(&window.take()),
            "1 event; age min -1.5 us, max -1.5 us"
        );
        for age_us in 1..=1_000 {
            window.add(age_us * 1_000);
        }
        let line = "1,000 events; age min 1.0 us, p50 500.2 us, p99 990.2 us, max 1.00 ms";
        assert_eq!(text(&window.ages()), line);
    }
}
