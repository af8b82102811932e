//! `deckwatch events hz`: measures the rate of events.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_os::clock::monotonic_ns;
use deckwatch_probe::events::rate::{Rate, RateWindow};
use deckwatch_probe::events::subscription::Losses;

use super::at::ConsumerArgs;
use super::types::TypeArgs;
use super::watching::{Figures, UntilArgs, Windows, window};
use crate::mission_args::duration;
use crate::output::outln;
use crate::words;

#[derive(clap::Args)]
#[command(after_help = "\
Times are those at which this process has received an event: they contain the way through the network and the channel.
Jitter is the standard deviation of the inter-arrival times. A gap is an inter-arrival time above one and a half periods; \
without `--period`, the median of the inter-arrival times is the period.")]
pub(super) struct HzArgs {
    #[command(flatten)]
    consumer: ConsumerArgs,
    #[command(flatten)]
    types: TypeArgs,
    #[command(flatten)]
    until: UntilArgs,
    /// Length of one window, at least 1ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = window)]
    window: Duration,
    /// The period that the supplier should keep, for example 50ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    period: Option<Duration>,
    /// Print one JSON object a line; the last is the total
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &HzArgs) -> anyhow::Result<ExitCode> {
    let model = match args.types.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let mut subscription = args.consumer.subscribe(&args.types, &model)?;
    let mut total = RateWindow::new(args.period);
    let mut window = RateWindow::new(args.period);
    let mut windows = Windows::new(args.window);
    let status = args.until.watch(&mut subscription, |received| {
        let now_ns = received.map_or_else(monotonic_ns, |received| received.at.monotonic_ns);
        if windows.end_by(now_ns) {
            print(args, "window", &window.take(), None)?;
        }
        if let Some(received) = received {
            window.add(received.at.monotonic_ns);
            total.add(received.at.monotonic_ns);
        }
        Ok(())
    })?;
    print(args, "total", &total.rate(), Some(subscription.losses()))?;
    Ok(status)
}

fn print(args: &HzArgs, what: &str, rate: &Rate, losses: Option<Losses>) -> anyhow::Result<()> {
    if args.json {
        let figures = Figures {
            figures: rate,
            losses,
        };
        outln!("{{\"{what}\": {}}}", serde_json::to_string(&figures)?)
    } else {
        outln!("{what:<6}  {}", text(rate))
    }
}

fn text(rate: &Rate) -> String {
    let noun = words::plural("event", usize::try_from(rate.events).unwrap_or(usize::MAX));
    let mut text = format!("{} {noun}", words::count(rate.events));
    if let Some(rate_hz) = rate.rate_hz {
        text += &format!(", {} Hz", words::rate(rate_hz));
    }
    if let Some(inter) = &rate.inter_arrival {
        let ns = |ns: i64| words::latency(u64::try_from(ns).unwrap_or(0));
        text += &format!(
            "; inter-arrival min {}, p50 {}, max {}; jitter {}; {} {}",
            ns(inter.min_ns),
            words::latency(inter.p50_ns),
            ns(inter.max_ns),
            words::latency(inter.jitter_ns.round() as u64),
            words::count(inter.gaps),
            words::plural("gap", usize::try_from(inter.gaps).unwrap_or(usize::MAX)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_one_line_with_units() {
        let mut window = RateWindow::new(None);
        assert_eq!(text(&window.rate()), "0 events");
        window.add(0);
        assert_eq!(text(&window.rate()), "1 event");
        for at_ms in [50, 100, 200] {
            window.add(at_ms * 1_000_000);
        }
        assert_eq!(
            text(&window.rate()),
            "4 events, 15 Hz; inter-arrival min 50.00 ms, p50 50.00 ms, max 100.00 ms; jitter 23.57 ms; 1 gap"
        );
    }
}
