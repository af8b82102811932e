//! The packet tap part.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::caution::{Caution, TapLoss};
use deckwatch_meter::result::Warning;
use deckwatch_os::clock;
use deckwatch_os::filter::PortFilter;
use deckwatch_os::stamp;
use deckwatch_os::tap::{self, Interface, Leaving, Packet, Tap};

use super::stage::{Stage, Told};
use crate::arrival::Shared;
use crate::capture::{CaptureNote, CaptureWriter, UNSTAMPED};
use crate::error::PartError;
use crate::limits::{
    NOTE_INTERVAL, PACKET_SIZE_MAX, PROGRESS_INTERVAL, STAMPS_BEGIN_MAX, TAP_BUFFER_BYTES,
    TAP_INTERFACES_MAX, TAP_PERIOD,
};
use crate::plan::TapPlan;
use crate::scheduling;
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

/// Captures packets until `stop`.
pub(super) fn play(plan: &TapPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    let interfaces = interfaces(plan)?;
    let refused = scheduling::prepare_process(&plan.scheduling, Duration::ZERO);
    let mut capturing = Capturing::start(plan, &interfaces)?;
    let shared = Shared::default();
    let ready = Ready {
        warnings: refused,
        ..Ready::default()
    };
    let captured = std::thread::scope(|scope| {
        let (tell, shared) = (stage.teller(), &shared);
        let thread = scope.spawn(move || {
            // Cannot fail: the receiver of the queue outlives this thread.
            let _ = tell.send(Told::Prepared(scheduling::prepare_thread(&plan.scheduling)));
            capturing.run(shared);
            capturing.note
        });
        attend(plan, stage, ready, shared);
        shared.stop.store(true, Ordering::Relaxed);
        thread.join()
    });
    let note = captured.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    stage.say(&PartEvent::Done(Done {
        progress: shared.progress(),
        warnings: dropped(&note),
    }));
    Ok(())
}

/// Reports for the capturing thread until `stop`.
fn attend(plan: &TapPlan, stage: &mut Stage<impl Write>, mut ready: Ready, shared: &Shared) {
    loop {
        match stage.hear(PROGRESS_INTERVAL) {
            Told::Prepared(refused) => {
                ready.warnings.extend(refused);
                ready.scheduling = scheduling::in_words(&plan.scheduling, &ready.warnings);
                stage.say(&PartEvent::Ready(std::mem::take(&mut ready)));
            }
            Told::Command(PartCommand::Go { start_ns }) => {
                shared.start_ns.store(start_ns, Ordering::Relaxed)
            }
            Told::Command(PartCommand::Stop) | Told::Finished => return,
            Told::Command(PartCommand::Count) | Told::Program(_) => {}
            Told::Nothing => {
                if shared.start_ns.load(Ordering::Relaxed) != 0 {
                    stage.say(&PartEvent::Progress(shared.progress()));
                }
            }
        }
    }
}

/// Returns the interfaces to capture on.
fn interfaces(plan: &TapPlan) -> Result<Vec<Interface>, PartError> {
    let all = tap::interfaces().map_err(PartError::Interfaces)?;
    let chosen: Vec<Interface> = if plan.interfaces.is_empty() {
        all.into_iter().filter(|interface| interface.up).collect()
    } else {
        let find = |name: &String| {
            let found = all
                .iter()
                .find(|interface| interface.name == *name)
                .cloned();
            found.ok_or_else(|| PartError::NoInterface {
                name: name.clone(),
                host: plan.host.clone(),
            })
        };
        plan.interfaces.iter().map(find).collect::<Result<_, _>>()?
    };
    if chosen.is_empty() || chosen.len() > TAP_INTERFACES_MAX {
        return Err(PartError::InterfaceCount {
            host: plan.host.clone(),
            count: chosen.len(),
        });
    }
    Ok(chosen)
}

fn dropped(note: &CaptureNote) -> Vec<Warning> {
    [
        (note.dropped_by_kernel, TapLoss::TooSlow),
        (note.dropped_by_size, TapLoss::FileFull),
    ]
    .into_iter()
    .filter(|&(packets, _)| packets > 0)
    .map(|(packets, cause)| {
        let caution = Caution::TapDropped {
            host: note.host.clone(),
            packets,
            cause: Some(cause),
        };
        caution.into()
    })
    .collect()
}

/// The state of the capturing thread.
struct Capturing<'p> {
    plan: &'p TapPlan,
    taps: Vec<Queue>,
    writer: CaptureWriter,
    note: CaptureNote,
    clock: StampClock,
}

/// The packets of one interface, in the order of their stamps.
struct Queue {
    tap: Tap,
    /// The packet that is not yet written, with its octets in `octets`.
    first: Option<Packet>,
    octets: Vec<u8>,
}

impl Queue {
    /// Returns the stamp of the first packet, or `None` if there is no packet.
    fn stamp_ns(&mut self) -> Option<i64> {
        if self.first.is_none() {
            // For an interface that goes down, `take` returns one error, then no more packets.
            self.first = self.tap.take(&mut self.octets).ok().flatten();
        }
        Some(self.first?.realtime_ns.unwrap_or(UNSTAMPED))
    }
}

impl<'p> Capturing<'p> {
    fn start(plan: &'p TapPlan, interfaces: &[Interface]) -> Result<Self, PartError> {
        let filter = PortFilter::new(&plan.ports);
        let has_front = |of: &Interface| interfaces.iter().any(|front| front.is_front_of(of));
        let open = |interface: &Interface| {
            let leaving = if has_front(interface) {
                Leaving::Unseen
            } else {
                Leaving::Seen
            };
            let tap = Tap::open(interface, leaving, &filter, TAP_BUFFER_BYTES);
            let tap = tap.map_err(|error| PartError::Tap {
                interface: interface.to_string(),
                host: plan.host.clone(),
                error,
            })?;
            Ok(Queue {
                tap,
                first: None,
                octets: vec![0; PACKET_SIZE_MAX],
            })
        };
        let taps = interfaces
            .iter()
            .map(open)
            .collect::<Result<_, PartError>>()?;
        let names: Vec<&str> = interfaces
            .iter()
            .map(|interface| interface.name.as_str())
            .collect();
        let writer = CaptureWriter::create(&plan.capture, &names, plan.size_bytes_max)?;
        let clock = StampClock::new();
        let note = CaptureNote {
            host: plan.host.clone(),
            clock: clock.eras().to_vec(),
            ..CaptureNote::default()
        };
        note.write(&plan.capture)
            .map_err(|error| PartError::CaptureNote {
                path: plan.capture.display().to_string(),
                error,
            })?;
        // Without stamps, packets are still captured, and the join counts the missing stamps.
        let _ = stamp::await_stamps(STAMPS_BEGIN_MAX);
        Ok(Self {
            plan,
            taps,
            writer,
            note,
            clock,
        })
    }

    /// Polls the taps until `stop`. It does not block for packets: the kernel would wake the thread inside the receive
    /// path that it stamps, which would lengthen the measured latency.
    fn run(&mut self, shared: &Shared) {
        let mut noted_ns = 0;
        while !shared.stopped() {
            let stepped = self.clock.renew();
            let now = self.clock.latest();
            // A packet stamped after a step back may have an earlier stamp than one that is still queued.
            let until_ns = if stepped { i64::MAX } else { now.realtime_ns };
            self.take_until(until_ns, shared);
            self.writer.flush();
            if stepped || now.monotonic_ns - noted_ns >= nanoseconds(NOTE_INTERVAL) {
                self.write_note();
                noted_ns = now.monotonic_ns;
            }
            clock::sleep_until(clock::monotonic_ns() + nanoseconds(TAP_PERIOD));
        }
        self.clock.renew();
        self.take_until(i64::MAX, shared);
        self.writer.flush();
        self.write_note();
    }

    /// Writes the packets of all taps up to a stamp, in the order of their stamps, and adds up the drop counts.
    fn take_until(&mut self, until_ns: i64, shared: &Shared) {
        while let Some((interface, queue)) = (0..)
            .zip(&mut self.taps)
            .filter_map(|(interface, queue)| Some((queue.stamp_ns()?, interface, queue)))
            .filter(|(stamp_ns, ..)| *stamp_ns <= until_ns)
            .min_by_key(|(stamp_ns, interface, _)| (*stamp_ns, *interface))
            .map(|(_, interface, queue)| (interface, queue))
        {
            if let Some(packet) = queue.first.take() {
                let stamp_ns = packet.realtime_ns.unwrap_or(UNSTAMPED);
                self.writer
                    .write(interface, &packet, stamp_ns, &queue.octets[..packet.len]);
                shared.received.fetch_add(1, Ordering::Relaxed);
            }
        }
        for Queue { tap, .. } in &mut self.taps {
            self.note.dropped_by_kernel += u64::from(tap.take_dropped().unwrap_or(0));
        }
        shared.overflows.store(
            self.note.dropped_by_kernel + self.writer.dropped(),
            Ordering::Relaxed,
        );
    }

    fn write_note(&mut self) {
        self.note.clock = self.clock.eras().to_vec();
        self.note.packets = self.writer.written();
        self.note.dropped_by_size = self.writer.dropped();
        // If the write fails, the capture is still complete, and the last event also holds the counters.
        let _ = self.note.write(&self.plan.capture);
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
