//! The room that a run needs in memory: its record files, whose size is exact, and its captures, whose size is estimated.

use std::path::Path;

use deckwatch_carrier::body::Body;
use deckwatch_carrier::carrier::Framing;
use deckwatch_carrier::record::{consumer_size_bytes, supplier_size_bytes};
use deckwatch_os::mapped::room_bytes;
use serde::Serialize;

use crate::limits::CAPTURE_SIZE_MAX;
use crate::mission::Mission;
use crate::stream::Stream;

/// The memory file system that holds the record files and captures of a run.
pub const MEMORY: &str = "/dev/shm";

/// The room that a run needs in [`MEMORY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// Octets of the record files.
    pub records_bytes: u64,
    /// Octets of the captures, estimated.
    pub captures_bytes: u64,
    /// Octets that are free there now; `None` if there is no such file system.
    pub free_bytes: Option<u64>,
}

impl Room {
    /// Returns the room that a mission's streams need, and what is free.
    #[must_use]
    pub fn of(mission: &Mission, streams: &[Stream]) -> Self {
        let records = streams.iter().map(|stream| records_bytes(mission, stream));
        let captures = streams.iter().map(|stream| captures_bytes(mission, stream));
        let captures_max = CAPTURE_SIZE_MAX.saturating_mul(mission.hosts.len() as u64);
        Self {
            records_bytes: records.fold(0, u64::saturating_add),
            captures_bytes: captures.fold(0, u64::saturating_add).min(captures_max),
            free_bytes: room_bytes(Path::new(MEMORY)).ok(),
        }
    }

    /// Returns the octets needed in all.
    #[must_use]
    pub const fn needed_bytes(&self) -> u64 {
        self.records_bytes.saturating_add(self.captures_bytes)
    }

    /// Whether that much is free.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.free_bytes
            .is_some_and(|free| self.needed_bytes() <= free)
    }

    /// Returns what is missing and what to do about it, in whole sentences; `None` if the room is there.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if self.is_there() {
            return None;
        }
        let needed = in_words(self.needed_bytes());
        let free = match self.free_bytes {
            Some(free) => format!("{} are free", in_words(free)),
            None => "there is no such file system".to_owned(),
        };
        let size_gib = self.needed_bytes().div_ceil(1 << 30) + 1;
        Some(format!(
            "The records and captures of this run need about {needed} in {MEMORY}, and {free}. \
             Shorten the run (--duration, --count), use fewer carriers in one run, or enlarge it: \
             mount -o remount,size={size_gib}G {MEMORY}; in a container: docker run --shm-size={size_gib}g."
        ))
    }
}

/// Formats a number of octets in the unit that suits it.
#[must_use]
pub fn in_words(octets: u64) -> String {
    match octets {
        0..0x10_0000 => format!("{} KiB", octets.div_ceil(1 << 10)),
        0x10_0000..0x4000_0000 => format!("{} MiB", octets.div_ceil(1 << 20)),
        _ => format!("{:.1} GiB", octets as f64 / (1_u64 << 30) as f64),
    }
}

fn records_bytes(mission: &Mission, stream: &Stream) -> u64 {
    let destinations = mission.flows[stream.flow].to.len() as u64;
    let messages = messages(stream);
    let slots = if stream.plan.carrier.needs().one_slot {
        1
    } else {
        destinations
    };
    let consumers = consumer_size_bytes(messages).saturating_mul(destinations);
    supplier_size_bytes(slots, messages).saturating_add(consumers)
}

/// Each packet is captured twice: where it leaves, and where it arrives.
fn captures_bytes(mission: &Mission, stream: &Stream) -> u64 {
    let road = stream.plan.carrier.road();
    let framing = if road.middleware { GIOP_OCTETS } else { 0 };
    // A body that cannot be made ends the run before it starts.
    let body = Body::new(&stream.plan.body).map_or(0, |body| {
        let of_any = road.channel.then(|| body.any_size_bytes().ok()).flatten();
        of_any.unwrap_or(body.octets().len()) as u64
    });
    let octets = body + framing;
    let packets = octets.div_ceil(PACKET_OCTETS).max(1);
    let answers = if matches!(stream.plan.carrier.framing(), Framing::Datagram) {
        0
    } else {
        ANSWER_PACKETS
    };
    let passage = octets + (packets + answers) * PACKET_OVERHEAD;
    let destinations = mission.flows[stream.flow].to.len() as u64;
    // The push to a channel is a passage of its own.
    let passages = destinations + u64::from(road.channel);
    messages(stream)
        .saturating_mul(passages)
        .saturating_mul(2 * passage)
}

/// Messages of the schedule, warm-up included; for a Poisson process six standard deviations more than the mean.
fn messages(stream: &Stream) -> u64 {
    let mean = stream.plan.schedule.expected_messages();
    let is_poisson = stream.plan.schedule.arrivals.name() == "poisson";
    let spread = if is_poisson { 6.0 * mean.sqrt() } else { 0.0 };
    (mean + spread).ceil() as u64
}

/// Octets of a GIOP request and its reply besides the body: headers, object key, service contexts.
const GIOP_OCTETS: u64 = 400;
/// Octets of a body in one packet: an Ethernet frame less the headers of IP and TCP.
const PACKET_OCTETS: u64 = 1448;
/// Packets that answer a message over TCP: an acknowledgement, or a reply and its acknowledgement.
const ANSWER_PACKETS: u64 = 2;
/// Octets of a packet in a capture besides its body: the headers of Ethernet, IP and TCP, and of the block.
const PACKET_OVERHEAD: u64 = 66 + 52;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::streams;

    fn room(count: u64) -> Room {
        let rest = format!("rate_hz = 20\ncount = {count}");
        room_of("udp", 64, "\"B\"", &rest)
    }

    /// The room of a flow without warm-up beyond 20 messages.
    fn room_of(carrier: &str, octets: u32, to: &str, rest: &str) -> Room {
        let text = format!(
            "name = \"m\"\nhosts = [{{ name = \"A\" }}, {{ name = \"B\" }}, {{ name = \"C\" }}]\n[[flows]]\nname = \"f\"\noctets = {octets}\nfrom = \"A\"\nto = [{to}]\ncarrier = \"{carrier}\"\ndeadline = \"50ms\"\nlate = \"1 in 10\"\n{rest}\n"
        );
        let mission = Mission::parse(Path::new("m.toml"), &text, None).expect("sound");
        Room::of(&mission, &streams(&mission).expect("streams"))
    }

    #[test]
    fn room_is_that_of_record_files_and_of_packets_captured_twice() {
        let needed = room(9980);
        // 9,980 messages and 20 of the warm-up; a quarter more for duplicates at the consumer.
        assert_eq!(
            needed.records_bytes,
            4096 + 10_000 * 32 + 4096 + 12_500 * 48
        );
        assert_eq!(needed.captures_bytes, 10_000 * 2 * (64 + 118));
    }

    #[test]
    fn captures_grow_with_packets_answers_headers_and_destinations() {
        let count = "rate_hz = 20\ncount = 9980";
        let of = |carrier, octets, to| room_of(carrier, octets, to, count).captures_bytes;
        let (one, two) = ("\"B\"", "\"B\", \"C\"");
        // Two octets for each captured one: the packets of a message, and over TCP two that answer them.
        let captured = |octets: u64, packets: u64| 10_000 * 2 * (octets + packets * 118);
        assert_eq!(of("udp", 1_448, one), captured(1_448, 1));
        assert_eq!(of("udp", 1_449, one), captured(1_449, 2));
        assert_eq!(of("tcp", 64, one), captured(64, 1 + 2));
        assert_eq!(of("corba", 64, one), captured(64 + 400, 1 + 2));
        assert_eq!(of("tcp", 64, two), 2 * captured(64, 1 + 2));
        // Over a channel the message is pushed once more, and stands in an any.
        let event = of("event", 64, one);
        assert!((2 * captured(464, 3)..2 * captured(600, 3)).contains(&event));
        assert_eq!(of("event", 64, two) * 2, event * 3);
    }

    #[test]
    fn records_grow_with_destinations_and_a_random_schedule_gets_a_margin() {
        let count = "rate_hz = 20\ncount = 9980";
        let of = |carrier, to| room_of(carrier, 64, to, count).records_bytes;
        let (one, two) = (of("udp", "\"B\""), of("udp", "\"B\", \"C\""));
        let consumer = 4096 + 12_500 * 48;
        assert_eq!(two - one, 10_000 * 32 + consumer);
        // One push serves all consumers of a channel.
        assert_eq!(of("event", "\"B\", \"C\"") - of("event", "\"B\""), consumer);
        let poisson = "arrivals = \"poisson\"\nrate_hz = 20\nduration = \"500s\"\nwarm_up = \"0s\"";
        let random = room_of("udp", 64, "\"B\"", poisson);
        let messages = random.captures_bytes / (2 * (64 + 118));
        // Six standard deviations of 10,000, and the first message of the schedule.
        assert!((10_600..10_605).contains(&messages), "{messages}");
    }

    #[test]
    fn room_that_is_not_there_is_refused_with_what_to_do() {
        let needed = room(9980);
        let with = |free_bytes| Room {
            free_bytes,
            ..needed
        };
        assert!(with(Some(needed.needed_bytes())).refusal().is_none());
        let refusal = with(Some(needed.needed_bytes() - 1)).refusal();
        let refusal = refusal.expect("one octet is missing");
        assert!(
            refusal.contains("need about 5 MiB in /dev/shm, and 5 MiB are free"),
            "{refusal}"
        );
        assert!(refusal.contains("--shm-size=2g"), "{refusal}");
        assert!(
            with(None)
                .refusal()
                .is_some_and(|text| text.contains("no such file system"))
        );
    }

    #[test]
    fn octets_have_a_unit_that_suits_them() {
        let words = [1, 5 << 20, 3 << 30].map(in_words);
        assert_eq!(words, ["1 KiB", "5 MiB", "3.0 GiB"]);
    }
}
