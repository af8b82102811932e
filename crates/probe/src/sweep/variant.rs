//! The systems of a sweep: each carrier with each setting of its sockets.

use std::collections::BTreeMap;
use std::fmt;

use deckwatch_carrier::carrier::{Framing, SocketSettings};
use deckwatch_carrier::carriers::CarrierRef;

/// The settings of sockets that a sweep varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Octets of the socket buffers; `None` is the default of this program.
    pub buffers: Vec<Option<u32>>,
    /// Whether TCP holds back small segments (TCP_NODELAY is off).
    pub delays: Vec<bool>,
}

impl Default for Axes {
    fn default() -> Self {
        Self {
            buffers: vec![None],
            delays: vec![false],
        }
    }
}

/// A carrier with the settings of its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) carrier: CarrierRef,
    pub(super) socket: SocketSettings,
}

impl Variant {
    /// Every carrier at every setting that it honours.
    pub(super) fn all(carriers: &[CarrierRef], axes: &Axes) -> Vec<Self> {
        let mut all = Vec::new();
        for &carrier in carriers {
            let is_stream = carrier.framing() == Framing::Length;
            let is_raw = is_stream || carrier.framing() == Framing::Datagram;
            for &send_buffer_bytes in &axes.buffers {
                for &delays in &axes.delays {
                    let socket = SocketSettings {
                        send_buffer_bytes: send_buffer_bytes.filter(|_| is_raw),
                        delays: delays && is_stream,
                    };
                    let variant = Self { carrier, socket };
                    if !all.contains(&variant) {
                        all.push(variant);
                    }
                }
            }
        }
        all
    }

    /// Its parameters beside the size.
    pub(super) fn factors(&self) -> BTreeMap<String, f64> {
        let buffer = self.socket.send_buffer_bytes;
        let buffer = buffer.map(|octets| ("buffer_octets".to_owned(), f64::from(octets)));
        let delays = self.socket.delays;
        let delays = delays.then(|| ("no_delay".to_owned(), 0.0));
        buffer.into_iter().chain(delays).collect()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.carrier)?;
        if let Some(octets) = self.socket.send_buffer_bytes {
            write!(f, ", buffers of {octets}")?;
        }
        if self.socket.delays {
            write!(f, ", NODELAY off")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_is_varied_only_in_what_it_honours() {
        let axes = Axes {
            buffers: vec![None, Some(8_192)],
            delays: vec![false, true],
        };
        let carriers = ["udp", "tcp", "corba"].map(|name| name.parse().expect("a carrier"));
        let names: Vec<String> = Variant::all(&carriers, &axes)
            .iter()
            .map(ToString::to_string)
            .collect();
        let expected = [
            "udp",
            "udp, buffers of 8192",
            "tcp",
            "tcp, NODELAY off",
            "tcp, buffers of 8192",
            "tcp, buffers of 8192, NODELAY off",
            "corba",
        ];
        assert_eq!(names, expected);
        let usual = Variant::all(&carriers, &Axes::default());
        assert_eq!(usual.len(), 3);
        assert!(usual.iter().all(|variant| variant.factors().is_empty()));
    }
}
