//! The supplier part.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use deckwatch_meter::caution::Caution;
use deckwatch_meter::pacing::Schedule;
use deckwatch_os::schedule;

use super::messages_of;
use super::stage::{Stage, Told};
use crate::arrival::Shared;
use crate::body::Body;
use crate::carrier::{ConnectTo, SocketSettings};
use crate::error::PartError;
use crate::limits::PROGRESS_INTERVAL;
use crate::plan::{DestinationPlan, SupplierPlan};
use crate::record::{HeaderPage, RecordFile, Records, SupplierRecord, seal};
use crate::scheduling;
use crate::send_loop::SendLoop;
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

/// Sends a stream according to its schedule.
pub(super) fn play(plan: &SupplierPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    let (body, messages) = message_of(plan)?;
    let size_bytes = body.octets().len();
    let slots = slots(plan)?;
    let file = RecordFile::supplier(
        &plan.records,
        plan.stream.flow,
        slots.len() as u64,
        messages,
        size_bytes as u64,
    )?;
    let (mut page, records) = file.into_parts();
    let mut clock = StampClock::new();
    let shared = Arc::new(Shared::default());
    let mut ready = Ready {
        size_bytes: Some(size_bytes as u64),
        ..Ready::default()
    };
    ready.warnings = scheduling::prepare_process(&plan.scheduling, std::time::Duration::ZERO);
    let loops = loops(plan, &slots, &body, messages, records, &shared)?;
    std::thread::scope(|scope| {
        let mut starts = Vec::new();
        for mut send_loop in loops {
            let (start, started) = mpsc::channel::<Schedule>();
            starts.push(start);
            let tell = stage.teller();
            scope.spawn(move || {
                schedule::name_thread(c"send");
                // Cannot fail: the receiver of the queue outlives this thread.
                let _ = tell.send(Told::Prepared(scheduling::prepare_thread(&plan.scheduling)));
                if let Ok(schedule) = started.recv() {
                    send_loop.run(&schedule);
                }
                let _ = tell.send(Told::Finished);
            });
        }
        attend(plan, stage, ready, starts, &shared, &mut clock, &mut page);
        shared.stop.store(true, Ordering::Relaxed);
    });
    clock.renew();
    shared.note_in(&mut page, &clock, true);
    drop(page);
    seal(&plan.records);
    let sends = shared.waits.load(Ordering::Relaxed);
    let waited = (sends > 0).then(|| Caution::SendWaits { sends }.into());
    stage.say(&PartEvent::Done(Done {
        progress: shared.progress(),
        warnings: waited.into_iter().collect(),
    }));
    Ok(())
}

/// Returns the message of a stream and the number of messages, which the carrier can carry.
pub(super) fn message_of(plan: &SupplierPlan) -> Result<(Body, u64), PartError> {
    let body = Body::new(&plan.stream.body)?;
    let size_bytes = body.octets().len();
    let carrier = plan.stream.carrier;
    let size_bytes_max = carrier.needs().size_bytes_max;
    if size_bytes > size_bytes_max as usize {
        return Err(PartError::MessageTooLarge {
            carrier: carrier.name(),
            size_bytes,
            size_bytes_max,
        });
    }
    let messages = messages_of(&plan.stream.schedule)?;
    if messages - 1 > body.sequence_max() {
        return Err(PartError::SequenceTooSmall {
            messages,
            sequence_max: body.sequence_max(),
        });
    }
    Ok((body, messages))
}

/// Reports for the sending threads until all have finished, or until `stop`.
fn attend(
    plan: &SupplierPlan,
    stage: &mut Stage<impl Write>,
    mut ready: Ready,
    mut starts: Vec<mpsc::Sender<Schedule>>,
    shared: &Shared,
    clock: &mut StampClock,
    page: &mut HeaderPage,
) {
    let (mut unprepared, mut unfinished) = (starts.len(), starts.len());
    while unfinished > 0 {
        match stage.hear(PROGRESS_INTERVAL) {
            Told::Prepared(refused) => {
                unprepared -= 1;
                // The kernel refuses the same for each thread; one report is enough.
                ready.warnings.extend(refused);
                ready.warnings.dedup();
                if unprepared == 0 {
                    ready.scheduling = scheduling::in_words(&plan.scheduling, &ready.warnings);
                    stage.say(&PartEvent::Ready(std::mem::take(&mut ready)));
                }
            }
            Told::Command(PartCommand::Go { start_ns }) => {
                shared.start_ns.store(start_ns, Ordering::Relaxed);
                let schedule = Schedule {
                    start_ns,
                    ..plan.stream.schedule.clone()
                };
                for start in starts.drain(..) {
                    // Fails for a thread that has already ended. That thread has reported its end.
                    let _ = start.send(schedule.clone());
                }
            }
            Told::Command(PartCommand::Stop) => return,
            Told::Finished => unfinished -= 1,
            Told::Command(PartCommand::Count) | Told::Program(_) => {}
            Told::Nothing => {
                clock.renew();
                if shared.start_ns.load(Ordering::Relaxed) != 0 {
                    stage.say(&PartEvent::Progress(shared.progress()));
                }
            }
        }
        shared.note_in(page, clock, false);
    }
}

/// Returns the destinations that have records of their own: all of them, or only the first if one send serves all
/// destinations.
pub(super) fn slots(plan: &SupplierPlan) -> Result<Vec<&DestinationPlan>, PartError> {
    let numbered = plan
        .destinations
        .iter()
        .enumerate()
        .all(|(place, destination)| usize::from(destination.index) == place);
    if plan.destinations.is_empty() || !numbered {
        return Err(PartError::Destinations);
    }
    let count = if plan.stream.carrier.needs().one_slot {
        1
    } else {
        plan.destinations.len()
    };
    Ok(plan.destinations.iter().take(count).collect())
}

/// Makes the sending loops. A raw carrier's sends do not block, so one loop serves all destinations. A call through a
/// middleware may block, so each destination has a loop of its own.
fn loops(
    plan: &SupplierPlan,
    slots: &[&DestinationPlan],
    body: &Body,
    messages: u64,
    mut records: Records<SupplierRecord>,
    shared: &Arc<Shared>,
) -> Result<Vec<SendLoop>, PartError> {
    let thread_for_each = plan.stream.carrier.road().has_thread_for_each();
    let mut loops: Vec<SendLoop> = Vec::new();
    for destination in slots {
        let (own, rest) = records
            .split_at(usize::try_from(messages).map_err(|_| crate::record::RecordError::TooMany)?);
        records = rest;
        if loops.is_empty() || thread_for_each {
            loops.push(SendLoop::new(
                Body::new(&plan.stream.body)?,
                Arc::clone(shared),
            ));
        }
        if let Some(send_loop) = loops.last_mut() {
            let sender = plan.stream.carrier.connect(&ConnectTo {
                address: plan.address,
                host: &destination.host,
                endpoint: &destination.endpoint,
                channel: plan.channel.as_ref(),
                network_priority: plan.network_priority,
                socket: SocketSettings::default(),
                deadline: plan.stream.deadline,
                body,
            })?;
            send_loop.push(sender, own);
        }
    }
    Ok(loops)
}
