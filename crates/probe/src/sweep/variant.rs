//! The systems of a sweep: each carrier with each setting of the axes.

use std::collections::BTreeMap;
use std::fmt;

use deckwatch_carrier::carrier::{BufferSize, Framing, SocketSettings};
use deckwatch_carrier::carriers::CarrierRef;

/// The settings that a sweep varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The sizes of the socket buffers.
    pub buffers: Vec<BufferSize>,
    /// Whether TCP holds back small segments (TCP_NODELAY is off).
    pub delays: Vec<bool>,
    /// Numbers of simultaneous streams, each between two ends of its own.
    pub streams: Vec<u32>,
    /// Numbers of objects of one server that take turns.
    pub servants: Vec<u32>,
    /// Numbers of hops from process to process until the message is at the server.
    pub hops: Vec<u32>,
}

impl Default for Axes {
    fn default() -> Self {
        Self {
            buffers: vec![BufferSize::Kernel],
            delays: vec![false],
            streams: vec![1],
            servants: vec![1],
            hops: vec![1],
        }
    }
}

/// A carrier with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) carrier: CarrierRef,
    pub(super) socket: SocketSettings,
    pub(super) streams: u32,
    pub(super) servants: u32,
    pub(super) hops: u32,
}

impl Variant {
    /// Every carrier at every setting that it honours.
    pub(super) fn all(carriers: &[CarrierRef], axes: &Axes) -> Vec<Self> {
        let mut all = Vec::new();
        for &carrier in carriers {
            let is_stream = carrier.framing() == Framing::Length;
            let is_raw = is_stream || carrier.framing() == Framing::Datagram;
            let has_servants = carrier.needs().has_servants;
            let usual = Axes::default();
            // Its program has one stream over one hop, by its own settings.
            let axes = if carrier.external().is_some() {
                &usual
            } else {
                axes
            };
            let sockets = axes.buffers.iter().flat_map(|&buffer| {
                axes.delays.iter().map(move |delays| SocketSettings {
                    send_buffer: if is_raw { buffer } else { BufferSize::Kernel },
                    delays: *delays && is_stream,
                    unstamped: true,
                })
            });
            let counts = axes.streams.iter().flat_map(|&streams| {
                let servants = axes.servants.iter();
                let hops = axes.hops.iter();
                servants.flat_map(move |&servants| {
                    hops.clone().map(move |&hops| (streams, servants, hops))
                })
            });
            let counts: Vec<(u32, u32, u32)> = counts.collect();
            for socket in sockets {
                for &(streams, servants, hops) in &counts {
                    let variant = Self {
                        carrier,
                        socket,
                        streams,
                        servants: if has_servants { servants } else { 1 },
                        hops,
                    };
                    if !all.contains(&variant) {
                        all.push(variant);
                    }
                }
            }
        }
        all
    }

    /// Whether it has the settings of a carrier whose axes are not varied.
    pub(super) fn is_plain(&self) -> bool {
        self.factors().is_empty()
    }

    /// Processes that play its ends.
    pub(super) const fn ends(&self) -> u32 {
        self.streams * (self.hops + 1)
    }

    /// Its parameters beside the size, where they differ from the usual ones.
    pub(super) fn factors(&self) -> BTreeMap<String, f64> {
        let more_than_one =
            |name: &'static str, count: u32| (count > 1).then(|| (name, f64::from(count)));
        let buffer = match self.socket.send_buffer {
            BufferSize::Kernel => None,
            BufferSize::Own => Some(("own_buffers", 1.0)),
            BufferSize::Octets(octets) => Some(("buffer_octets", f64::from(octets))),
        };
        let delays = self.socket.delays.then_some(("no_delay", 0.0));
        [
            buffer,
            delays,
            more_than_one("streams", self.streams),
            more_than_one("servants", self.servants),
            more_than_one("hops", self.hops),
        ]
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.carrier)?;
        match self.socket.send_buffer {
            BufferSize::Kernel => {}
            BufferSize::Own => f.write_str(", own buffers")?,
            BufferSize::Octets(octets) => write!(f, ", buffers of {octets}")?,
        }
        if self.socket.delays {
            f.write_str(", NODELAY off")?;
        }
        let counts = [
            (self.streams, "streams"),
            (self.servants, "servants"),
            (self.hops, "hops"),
        ];
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 1) {
            write!(f, ", {count} {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(carriers: &[&str], axes: &Axes) -> Vec<String> {
        let carriers: Vec<CarrierRef> = carriers
            .iter()
            .map(|name| name.parse().expect("a carrier"))
            .collect();
        let all = Variant::all(&carriers, axes);
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_carrier_is_varied_only_in_what_it_honours() {
        let axes = Axes {
            buffers: vec![
                BufferSize::Kernel,
                BufferSize::Own,
                BufferSize::Octets(8_192),
            ],
            delays: vec![false, true],
            ..Axes::default()
        };
        let expected = [
            "udp",
            "udp, own buffers",
            "udp, buffers of 8192",
            "tcp",
            "tcp, NODELAY off",
            "tcp, own buffers",
            "tcp, own buffers, NODELAY off",
            "tcp, buffers of 8192",
            "tcp, buffers of 8192, NODELAY off",
            "corba",
        ];
        assert_eq!(names(&["udp", "tcp", "corba"], &axes), expected);
        let carriers = ["udp", "tcp", "corba"].map(|name| name.parse().expect("a carrier"));
        let usual = Variant::all(&carriers, &Axes::default());
        assert_eq!(usual.len(), 3);
        assert!(usual.iter().all(|variant| variant.factors().is_empty()));
    }

    #[test]
    fn counts_are_combined_and_servants_are_varied_where_there_are_objects() {
        let axes = Axes {
            streams: vec![1, 2],
            servants: vec![1, 100],
            hops: vec![1, 3],
            ..Axes::default()
        };
        let udp = [
            "udp",
            "udp, 3 hops",
            "udp, 2 streams",
            "udp, 2 streams, 3 hops",
        ];
        assert_eq!(names(&["udp"], &axes), udp);
        let corba = names(&["corba"], &axes);
        assert_eq!(corba.len(), 8);
        assert_eq!(corba[7], "corba, 2 streams, 100 servants, 3 hops");
        let last = Variant::all(&["corba".parse().expect("a carrier")], &axes)[7];
        assert_eq!(last.ends(), 8);
        let factors = last.factors();
        assert_eq!(
            (factors["streams"], factors["servants"], factors["hops"]),
            (2.0, 100.0, 3.0)
        );
    }
}
