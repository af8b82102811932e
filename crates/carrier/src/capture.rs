//! Captures of a run's packets: pcapng files that any network analyser can open, and a note for the join beside each.
//!
//! Stamps in a capture are CLOCK_REALTIME, as analysers expect. The note (the same name with the extension `.json`)
//! holds the eras of that clock.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deckwatch_os::regular;
use deckwatch_os::tap::{Direction, Packet};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::{CAPTURE_NOTE_SIZE_MAX, PACKET_SIZE_MAX};
use crate::stamp_clock::ClockEra;

/// Writes a capture, up to a maximum size.
pub struct CaptureWriter {
    writer: PcapNgWriter<BufWriter<File>>,
    size_bytes: u64,
    size_bytes_max: u64,
    dropped: u64,
    written: u64,
}

impl CaptureWriter {
    /// Creates the file at `path` for packets of these interfaces. The file must not exist. Only its user can open it: it
    /// holds what others said.
    ///
    /// # Errors
    /// [`CaptureError`] if the file cannot be created or written.
    pub fn create(
        path: &Path,
        interfaces: &[&str],
        size_bytes_max: u64,
    ) -> Result<Self, CaptureError> {
        let unmade = |error| CaptureError::of(path, pcap_file::PcapError::IoError(error));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(unmade)?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file))
            .map_err(|error| CaptureError::of(path, error))?;
        for &name in interfaces {
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: u32::try_from(PACKET_SIZE_MAX).unwrap_or(0),
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(name.to_owned())),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer
                .write_pcapng_block(block)
                .map_err(|error| CaptureError::of(path, error))?;
        }
        Ok(Self {
            writer,
            size_bytes: 0,
            size_bytes_max,
            dropped: 0,
            written: 0,
        })
    }

    /// Writes a packet of the interface with this index in the list. Counts the packet as dropped if the file has its
    /// maximum size or the write fails.
    pub fn write(&mut self, interface: u32, packet: &Packet, realtime_ns: i64, octets: &[u8]) {
        if self.size_bytes >= self.size_bytes_max {
            self.dropped += 1;
            return;
        }
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(u64::try_from(realtime_ns).unwrap_or(0)),
            original_len: u32::try_from(packet.len_on_wire).unwrap_or(u32::MAX),
            data: Cow::Borrowed(octets),
            options: vec![EnhancedPacketOption::Flags(match packet.direction {
                Direction::Arriving => INBOUND,
                Direction::Leaving => OUTBOUND,
            })],
        };
        match self.writer.write_pcapng_block(block) {
            Ok(size) => {
                self.size_bytes += size as u64;
                self.written += 1;
            }
            Err(_) => self.dropped += 1,
        }
    }

    /// Writes what is buffered to the file.
    pub fn flush(&mut self) {
        // If this fails, the next write of a packet fails too, and is counted.
        let _ = self.writer.get_mut().flush();
    }

    /// Returns the number of packets that `write` dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of packets written.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }
}

/// A tap's note beside its capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureNote {
    /// The host.
    pub host: String,
    /// The eras of CLOCK_REALTIME, by which stamps are converted to CLOCK_MONOTONIC.
    pub clock: Vec<ClockEra>,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the kernel dropped because the tap was not quick enough.
    pub dropped_by_kernel: u64,
    /// Packets not written because the file was full.
    pub dropped_by_size: u64,
}

impl CaptureNote {
    /// Returns the path of a capture's note.
    #[must_use]
    pub fn path(capture: &Path) -> PathBuf {
        capture.with_extension("json")
    }

    /// Writes the note of a capture. The old note stays until the new one is complete.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, capture: &Path) -> std::io::Result<()> {
        let path = Self::path(capture);
        let unfinished = path.with_extension("json.new");
        std::fs::write(&unfinished, serde_json::to_vec(self)?)?;
        std::fs::rename(unfinished, path)
    }

    /// Reads the note of a capture.
    ///
    /// # Errors
    /// The system's error; `InvalidData` if the file is not a note.
    pub fn read(capture: &Path) -> std::io::Result<Self> {
        let note = regular::read(&Self::path(capture), CAPTURE_NOTE_SIZE_MAX)?;
        Ok(serde_json::from_slice(&note)?)
    }
}

/// One captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// The stamp, nanoseconds of CLOCK_REALTIME.
    pub realtime_ns: i64,
    /// The packet's direction; `None` if the capture does not record it.
    pub direction: Option<Direction>,
    /// The captured octets, from the Ethernet header on.
    pub octets: Cow<'a, [u8]>,
}

/// Calls `see` with each packet of a capture, in order. Reading ends at a malformed block: the last block is often
/// truncated if the tap was killed. Returns false if it ended at such a block.
///
/// # Errors
/// [`CaptureError`] if the file cannot be read or is not a pcapng file.
pub fn read(path: &Path, mut see: impl FnMut(Captured<'_>)) -> Result<bool, CaptureError> {
    let of = |error| CaptureError::of(path, error);
    let file = regular::open(path).map_err(|error| of(pcap_file::PcapError::IoError(error)))?;
    let mut reader = PcapNgReader::new(BufReader::new(file)).map_err(of)?;
    while let Some(block) = reader.next_block() {
        match block {
            Ok(Block::EnhancedPacket(packet)) => {
                let flags = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Flags(flags) => Some(flags & 3),
                    _ => None,
                });
                see(Captured {
                    realtime_ns: i64::try_from(packet.timestamp.as_nanos()).unwrap_or(i64::MAX),
                    direction: match flags {
                        Some(INBOUND) => Some(Direction::Arriving),
                        Some(OUTBOUND) => Some(Direction::Leaving),
                        _ => None,
                    },
                    octets: packet.data,
                });
            }
            Ok(_) => {}
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// Why a capture cannot be written or read.
#[derive(Debug, Error)]
#[error("{path}: {error}")]
pub struct CaptureError {
    path: String,
    error: pcap_file::PcapError,
}

impl CaptureError {
    fn of(path: &Path, error: pcap_file::PcapError) -> Self {
        Self {
            path: path.display().to_string(),
            error,
        }
    }
}

/// The time of a packet without a kernel stamp: 1970.
pub const UNSTAMPED: i64 = 0;

/// The value of the if_tsresol option: the unit is 10^-9 seconds.
const NANOSECONDS: u8 = 9;

// The direction bits of the epb_flags option.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const PACKET: Packet = Packet {
        len: 3,
        len_on_wire: 3,
        realtime_ns: None,
        direction: Direction::Leaving,
    };

    fn read_all(path: &Path) -> (Vec<Captured<'static>>, bool) {
        let mut packets = Vec::new();
        let whole = read(path, |packet| {
            packets.push(Captured {
                octets: Cow::Owned(packet.octets.into_owned()),
                ..packet
            });
        });
        (packets, whole.expect("a capture"))
    }

    #[test]
    fn packets_come_back_to_the_nanosecond_and_with_their_direction() {
        let scratch = Scratch::new();
        let path = scratch.path("c.pcapng");
        let mut writer = CaptureWriter::create(&path, &["lo", "eth0"], 1 << 20).expect("made");
        let stamp = 1_795_000_000_123_456_789;
        writer.write(0, &PACKET, stamp, b"abc");
        writer.write(
            1,
            &Packet {
                direction: Direction::Arriving,
                ..PACKET
            },
            stamp + 1,
            b"de",
        );
        writer.flush();
        let mode = std::fs::metadata(&path).expect("there").permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o600
        );
        let (packets, whole) = read_all(&path);
        assert!(whole);
        let seen: Vec<_> = packets
            .iter()
            .map(|packet| {
                (
                    packet.realtime_ns - stamp,
                    packet.direction,
                    &packet.octets[..],
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (0, Some(Direction::Leaving), &b"abc"[..]),
                (1, Some(Direction::Arriving), &b"de"[..])
            ]
        );
    }

    #[test]
    fn a_capture_stops_growing_at_its_size_and_counts() {
        let scratch = Scratch::new();
        let path = scratch.path("c.pcapng");
        let mut writer = CaptureWriter::create(&path, &["lo"], 100).expect("made");
        for _ in 0..10 {
            writer.write(0, &PACKET, 1, b"abc");
        }
        writer.flush();
        assert_eq!(writer.written() + writer.dropped(), 10);
        assert_eq!(read_all(&path).0.len() as u64, writer.written());
        assert!(writer.written() < 4);
    }

    #[test]
    fn a_capture_with_half_a_block_at_its_end_is_read_up_to_there() {
        let scratch = Scratch::new();
        let path = scratch.path("c.pcapng");
        let mut writer = CaptureWriter::create(&path, &["lo"], 1 << 20).expect("made");
        for _ in 0..3 {
            writer.write(0, &PACKET, 1, b"abc");
        }
        writer.flush();
        let octets = std::fs::read(&path).expect("read");
        std::fs::write(&path, &octets[..octets.len() - 5]).expect("written");
        let (packets, whole) = read_all(&path);
        assert_eq!((packets.len(), whole), (2, false));
        std::fs::write(&path, b"no capture at all").expect("written");
        assert!(read(&path, |_| {}).is_err());
    }
}
