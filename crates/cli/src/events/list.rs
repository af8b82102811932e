//! `deckwatch events list`: lists the channels of a naming service and their state.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use deckwatch_naming::user::text;
use deckwatch_orb::cos_naming::{BindingType, NameComponent, NamingContextRef};
use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_probe::events::EventsError;
use deckwatch_probe::events::channel::open;
use deckwatch_probe::events::status::{ChannelReport, Rates, report};
use deckwatch_text::escaped;
use serde_json::json;

use super::watching::STEP;
use crate::mission_args::duration;
use crate::names::at::At;
use crate::names::bounds::Bounds;
use crate::names::list::address;
use crate::output::{errln, outln};
use crate::reference::target;
use crate::serve::client_orb;
use crate::words;

#[derive(clap::Args)]
#[command(after_help = "\
Each object is listed that a name leads to and that is an event channel, in all contexts. A channel of Deckwatch reports its \
consumers, suppliers, queues, drops and rates; the rates are those between two reports. Another channel reports nothing. With `--ior`, one channel is listed that needs no name.")]
pub(super) struct ListArgs {
    #[command(flatten)]
    at: At,
    /// List this channel alone: its reference, or a file that holds it
    #[arg(long, value_name = "REFERENCE")]
    ior: Option<String>,
    /// Time between the two reports of which the rates are computed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// List the consumers with the longest queues too
    #[arg(short, long)]
    long: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// A channel that was found.
struct Found {
    name: String,
    kind: &'static str,
    address: String,
    object: ObjectRef,
    report: Result<Option<ChannelReport>, SystemException>,
    rates: Option<Rates>,
}

/// Contexts deeper than this are not listed: a context may contain itself.
const CONTEXTS_DEEP_MAX: usize = 16;

/// The longest time for one call to an object under a name: it may be gone.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    // Each keeps its ORB alive: a reference does not own it.
    let (_orb, mut channels) = match &args.ior {
        Some(reference) => {
            let orb = client_orb(args.at.trace, &args.at.tls)?;
            let channel = Found::at(reference, &target(&orb, reference)?)?;
            (orb, vec![channel])
        }
        None => {
            let (place, _) = args.at.place_or_root(None)?;
            let found = search(&place.context()?)?;
            (place.orb, found)
        }
    };
    if channels
        .iter()
        .any(|channel| matches!(channel.report, Ok(Some(_))))
    {
        wait(args.interval);
        channels.iter_mut().for_each(Found::measure);
    }
    if args.json {
        let rows: Vec<_> = channels.iter().map(Found::json).collect();
        outln!("{}", serde_json::to_string_pretty(&rows)?)?;
    } else {
        print(&channels, args.long)?;
    }
    Ok(match deckwatch_os::signal::ending() {
        Some(signal) => {
            errln!("Ended early by {signal}: the list is incomplete.");
            crate::exit::ended_by(signal).into()
        }
        None => ExitCode::SUCCESS,
    })
}

/// Finds the channels under the names of a context and of those in it.
fn search(context: &NamingContextRef) -> anyhow::Result<Vec<Found>> {
    let mut walk = Walk {
        seen: HashSet::new(),
        found: Vec::new(),
        bounds: Bounds::of_search(),
    };
    let listed = walk.context(context, &mut Vec::new());
    listed.context("cannot list the names")?;
    if let Some(cut) = walk.bounds.cut() {
        errln!("Not all names are searched: {cut}.");
    }
    Ok(walk.found)
}

fn wait(interval: Duration) {
    let started = Instant::now();
    while started.elapsed() < interval && deckwatch_os::signal::ending().is_none() {
        std::thread::sleep(STEP.min(interval));
    }
}

struct Walk {
    /// Contexts already listed.
    seen: HashSet<String>,
    found: Vec<Found>,
    bounds: Bounds,
}

impl Walk {
    fn context(
        &mut self,
        context: &NamingContextRef,
        path: &mut Vec<NameComponent>,
    ) -> Result<(), SystemException> {
        if path.len() >= CONTEXTS_DEEP_MAX || !self.seen.insert(context.object().to_string()) {
            return Ok(());
        }
        for binding in self.bounds.bindings(context)? {
            let asked = self.bounds.limited(context.object());
            let asked = NamingContextRef::unchecked_narrow(asked);
            let object = asked.resolve(&binding.binding_name).ok().flatten();
            let Some(object) = object.filter(|_| deckwatch_os::signal::ending().is_none()) else {
                continue;
            };
            let depth = path.len();
            path.extend(binding.binding_name.iter().cloned());
            if binding.binding_type == BindingType::Ncontext {
                // The service of another host may be gone; its names are then not listed.
                let inner = object.with_round_trip_timeout(Some(CALL_TIMEOUT));
                let _ = self.context(&NamingContextRef::unchecked_narrow(inner), path);
            } else {
                self.found.extend(Found::of(text(path), &object));
            }
            path.truncate(depth);
        }
        Ok(())
    }
}

impl Found {
    /// Returns the channel that an object is; `None` if it is none. An object of another type is not asked.
    fn of(name: String, object: &ObjectRef) -> Option<Self> {
        let id = object.type_id();
        if !id.is_empty() && !id.contains("EventChannel") {
            return None;
        }
        let object = object.with_round_trip_timeout(Some(CALL_TIMEOUT));
        let kind = match open(&object) {
            Ok(channel) => channel.kind(),
            Err(EventsError::NotAChannel(_)) => return None,
            // The name may lead to anything.
            Err(_) if id.is_empty() => return None,
            Err(_) => "event channel",
        };
        Some(Self {
            name,
            kind,
            address: address(&object).unwrap_or_default(),
            report: report(&object),
            object,
            rates: None,
        })
    }

    /// Returns the channel of a reference, which the user has given.
    fn at(reference: &str, object: &ObjectRef) -> Result<Self, EventsError> {
        let object = object.with_round_trip_timeout(Some(CALL_TIMEOUT));
        // The text of an IOR is no name.
        let is_ior = reference
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("ior:");
        let name = if is_ior { "IOR" } else { reference };
        Ok(Self {
            name: name.to_owned(),
            kind: open(&object)?.kind(),
            address: address(&object).unwrap_or_default(),
            report: report(&object),
            object,
            rates: None,
        })
    }

    /// Reads the second report.
    fn measure(&mut self) {
        if let Ok(Some(before)) = &self.report {
            let after = report(&self.object);
            if let Ok(Some(after)) = &after {
                self.rates = Rates::between(before, after);
            }
            self.report = after;
        }
    }

    fn json(&self) -> serde_json::Value {
        let mut row = json!({"name": self.name, "kind": self.kind, "address": self.address});
        match &self.report {
            Ok(Some(report)) => {
                row["consumers"] = report.consumers.into();
                row["pulling_consumers"] = report.pulling_consumers.into();
                row["suppliers"] = report.suppliers.into();
                row["pulled_suppliers"] = report.pulled_suppliers.into();
                row["queued"] = report.queued.into();
                row["received"] = report.received.into();
                row["delivered"] = report.delivered.into();
                row["dropped"] = report.dropped.into();
                row["failed"] = report.failed.into();
                row["consumers_lost"] = report.consumers_lost.into();
                row["suppliers_lost"] = report.suppliers_lost.into();
                row["refused"] = report.refused.into();
                row["denied"] = report.denied.into();
                row["rates"] = json!(self.rates);
                let consumers = report.longest_queues.iter().map(|one| {
                    json!({"address": one.address, "queued": one.queued, "delivered": one.delivered,
                        "dropped": one.dropped, "failed": one.failed})
                });
                row["longest_queues"] = consumers.collect();
            }
            Ok(None) => row["unreported"] = "the channel is not one of Deckwatch".into(),
            Err(exception) => row["unreported"] = exception.to_string().into(),
        }
        row
    }
}

fn print(channels: &[Found], long: bool) -> anyhow::Result<()> {
    if channels.is_empty() {
        return outln!("no event channels");
    }
    let shown = |text: &str| escaped(text).to_string();
    let places = channels
        .iter()
        .map(|one| (shown(&one.name), shown(&one.address)));
    let places: Vec<(String, String)> = places.collect();
    let width = |text: &String| text.chars().count();
    let names = places.iter().map(|(name, _)| width(name)).max();
    let addresses = places.iter().map(|(_, address)| width(address)).max();
    let (names, addresses) = (names.unwrap_or(0), addresses.unwrap_or(0));
    for (one, (name, address)) in channels.iter().zip(&places) {
        let state = match &one.report {
            Ok(Some(report)) => state(report, one.rates),
            Ok(None) => "reports nothing: not a channel of Deckwatch".to_owned(),
            Err(exception) => format!("does not answer: {exception}"),
        };
        outln!("{name:names$}  {address:addresses$}  {}  {state}", one.kind)?;
        let consumers = one
            .report
            .iter()
            .flatten()
            .flat_map(|report| &report.longest_queues);
        for consumer in consumers.filter(|_| long) {
            outln!(
                "{:names$}    consumer at {}: {} queued, {} delivered, {} dropped, {} failed",
                "",
                escaped(&consumer.address),
                words::count(consumer.queued),
                words::count(consumer.delivered),
                words::count(consumer.dropped),
                words::count(consumer.failed)
            )?;
        }
    }
    Ok(())
}

fn state(report: &ChannelReport, rates: Option<Rates>) -> String {
    let noun =
        |number: u32, noun: &str| format!("{number} {}", words::plural(noun, number as usize));
    let rate = |hz: f64| words::rate((hz * 10.0).round() / 10.0);
    let rates = rates.map_or_else(String::new, |rates| {
        format!(
            " ({} in, {} out a second)",
            rate(rates.received_hz),
            rate(rates.delivered_hz)
        )
    });
    let refused = [
        (report.refused, "connects refused"),
        (report.denied, "requests denied"),
    ];
    let refused = refused.into_iter().filter(|(count, _)| *count > 0);
    let refused = refused.map(|(count, what)| format!(", {} {what}", words::count(count)));
    let refused: String = refused.collect();
    format!(
        "{}, {}; {} queued; {} received, {} delivered{rates}, {} dropped, {} failed{refused}",
        noun(
            report.consumers.saturating_add(report.pulling_consumers),
            "consumer"
        ),
        noun(
            report.suppliers.saturating_add(report.pulled_suppliers),
            "supplier"
        ),
        words::count(report.queued),
        words::count(report.received),
        words::count(report.delivered),
        words::count(report.dropped),
        words::count(report.failed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_channel_is_one_line() {
        let report = ChannelReport {
            consumers: 1,
            suppliers: 2,
            queued: 3,
            received: 1_000,
            delivered: 998,
            dropped: 2,
            refused: 9,
            denied: 4_000,
            ..ChannelReport::default()
        };
        let rates = Rates {
            received_hz: 20.04,
            delivered_hz: 0.0,
            dropped_hz: 0.0,
        };
        assert_eq!(
            state(&report, Some(rates)),
            "1 consumer, 2 suppliers; 3 queued; 1,000 received, 998 delivered (20 in, 0 out a \
             second), 2 dropped, 0 failed, 9 connects refused, 4,000 requests denied"
        );
    }
}
