//! The packet tap part.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::caution::{Caution, TapLoss};
use deckwatch_meter::result::Warning;
use deckwatch_os::clock::{self, ClockPair};
use deckwatch_os::filter::PortFilter;
use deckwatch_os::stamp;
use deckwatch_os::tap::{self, Interface, Tap};

use super::stage::{Stage, Told};
use crate::arrival::Shared;
use crate::capture::{CaptureNote, CaptureWriter, UNSTAMPED};
use crate::error::PartError;
use crate::limits::{
    PACKET_SIZE_MAX, PROGRESS_INTERVAL, STAMPS_BEGIN_MAX, TAP_BUFFER_BYTES, TAP_INTERFACES_MAX,
    TAP_PERIOD,
};
use crate::plan::TapPlan;
use crate::scheduling;
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
    taps: Vec<Tap>,
    writer: CaptureWriter,
    note: CaptureNote,
    packet: Vec<u8>,
}

impl<'p> Capturing<'p> {
    fn start(plan: &'p TapPlan, interfaces: &[Interface]) -> Result<Self, PartError> {
        let filter = PortFilter::new(&plan.ports);
        let open = |interface| {
            Tap::open(interface, &filter, TAP_BUFFER_BYTES).map_err(|error| PartError::Tap {
                interface: interface.to_string(),
                host: plan.host.clone(),
                error,
            })
        };
        let taps = interfaces.iter().map(open).collect::<Result<_, _>>()?;
        let names: Vec<&str> = interfaces
            .iter()
            .map(|interface| interface.name.as_str())
            .collect();
        let writer = CaptureWriter::create(&plan.capture, &names, plan.size_bytes_max)?;
        let note = CaptureNote {
            host: plan.host.clone(),
            clock: vec![ClockPair::read().into()],
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
            packet: vec![0; PACKET_SIZE_MAX],
        })
    }

    /// Polls the taps until `stop`. It does not block for packets: the kernel would wake the thread inside the receive
    /// path that it stamps, which would lengthen the measured latency.
    fn run(&mut self, shared: &Shared) {
        while !shared.stopped() {
            self.take_all(shared);
            self.writer.flush();
            let look_ns = clock::monotonic_ns() + i64::try_from(TAP_PERIOD.as_nanos()).unwrap_or(0);
            clock::sleep_until(look_ns);
        }
        self.take_all(shared);
        self.writer.flush();
        self.finish_note();
    }

    /// Writes the queued packets of all taps, and adds up their drop counts.
    fn take_all(&mut self, shared: &Shared) {
        for (tap, interface) in self.taps.iter_mut().zip(0..) {
            // For an interface that goes down, `take` returns one error, then no more packets.
            while let Ok(Some(packet)) = tap.take(&mut self.packet) {
                let stamp_ns = packet.realtime_ns.unwrap_or(UNSTAMPED);
                self.writer
                    .write(interface, &packet, stamp_ns, &self.packet[..packet.len]);
                shared.received.fetch_add(1, Ordering::Relaxed);
            }
            self.note.dropped_by_kernel += u64::from(tap.take_dropped().unwrap_or(0));
        }
        shared.overflows.store(
            self.note.dropped_by_kernel + self.writer.dropped(),
            Ordering::Relaxed,
        );
    }

    fn finish_note(&mut self) {
        self.note.clock.push(ClockPair::read().into());
        self.note.packets = self.writer.written();
        self.note.dropped_by_size = self.writer.dropped();
        // If the write fails, the capture is still complete, and the last event also holds the counters.
        let _ = self.note.write(&self.plan.capture);
    }
}
