//! The consumer part.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_meter::caution::Caution;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::schedule;

use super::messages_of;
use super::stage::{Stage, Told};
use crate::arrival::{HandlerPlan, Recorder, Shared};
use crate::body::Body;
use crate::carrier::{ListenAt, ReceiverSettings};
use crate::error::PartError;
use crate::limits::{HANDLE_FOR_MAX, PROGRESS_INTERVAL};
use crate::plan::ConsumerPlan;
use crate::record::{HeaderPage, RecordFile, consumer_capacity, seal};
use crate::scheduling;
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

/// Receives a stream until `stop`.
pub(super) fn play(plan: &ConsumerPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    check_handle_for(plan)?;
    let body = Body::new(&plan.stream.body)?;
    let messages = messages_of(&plan.stream.schedule)?;
    let capacity = consumer_capacity(messages);
    let size_bytes = body.octets().len() as u64;
    let file = RecordFile::consumer(
        &plan.records,
        plan.stream.flow,
        plan.destination,
        capacity,
        size_bytes,
    )?;
    let (mut page, records) = file.into_parts();
    let mut clock = StampClock::new();
    let shared = Arc::new(Shared::default());
    let recorder = Recorder::new(
        records,
        &plan.stream.schedule,
        plan.stream.deadline,
        handler_of(plan),
        Arc::clone(&shared),
    );
    let mut ready = Ready {
        size_bytes: Some(size_bytes),
        ..Ready::default()
    };
    ready.warnings = scheduling::prepare_process(&plan.scheduling, plan.handle_for);
    let drops = Drops::begin(plan);
    let mut receiver = plan.stream.carrier.listen(&ListenAt {
        address: plan.address,
        channel: plan.channel.as_ref(),
        settings: ReceiverSettings::buffering(plan.receive_buffer_bytes),
        scheduling: &plan.scheduling,
        priority: plan.priority,
        network_priority: plan.network_priority,
        deadline: plan.stream.deadline,
        body: &body,
        shared: &shared,
    })?;
    receiver.announce(&mut ready);
    std::thread::scope(|scope| {
        let (tell, shared) = (stage.teller(), &shared);
        scope.spawn(move || {
            schedule::name_thread(c"receive");
            // Cannot fail: the receiver of the queue outlives this thread.
            let _ = tell.send(Told::Prepared(scheduling::prepare_thread(&plan.scheduling)));
            receiver.receive_all(Box::new(recorder), shared);
            let _ = tell.send(Told::Finished);
        });
        attend(plan, stage, ready, (shared, &drops), &mut clock, &mut page);
        shared.stop.store(true, Ordering::Relaxed);
    });
    clock.renew();
    let messages = drops.attribute(&shared);
    shared.note_in(&mut page, &clock, true);
    drop(page);
    seal(&plan.records);
    let dropped = (messages > 0).then(|| Caution::DroppedAtSocket { messages }.into());
    stage.say(&PartEvent::Done(Done {
        progress: shared.progress(),
        warnings: dropped.into_iter().collect(),
    }));
    Ok(())
}

pub(super) fn check_handle_for(plan: &ConsumerPlan) -> Result<(), PartError> {
    if plan.handle_for > HANDLE_FOR_MAX {
        return Err(PartError::HandleFor {
            asked: plan.handle_for,
            most: HANDLE_FOR_MAX,
        });
    }
    Ok(())
}

fn handler_of(plan: &ConsumerPlan) -> HandlerPlan {
    HandlerPlan {
        handle_for: plan.handle_for,
        is_measured: plan.is_measured,
    }
}

/// Tells drops by a full receive buffer from the socket's other drops. The socket counts both; the host's counters of UDP
/// separate them.
struct Drops {
    before: Readings,
    /// The host's counters are those of IPv4.
    counted: bool,
}

impl Drops {
    fn begin(plan: &ConsumerPlan) -> Self {
        Self {
            before: Readings::take(),
            counted: plan.address.is_ipv4(),
        }
    }

    /// Counts the overflows. Returns the number of other drops.
    fn attribute(&self, shared: &Shared) -> u64 {
        // A carrier without drops of its own needs no reading.
        if shared.dropped.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let since = self.before.until(&Readings::take());
        let overflows = since.udp_receive_overflows.filter(|_| self.counted);
        shared.attribute_drops(overflows)
    }
}

/// Reports for the receiving thread until `stop`, or until that thread has finished.
fn attend(
    plan: &ConsumerPlan,
    stage: &mut Stage<impl Write>,
    mut ready: Ready,
    (shared, drops): (&Shared, &Drops),
    clock: &mut StampClock,
    page: &mut HeaderPage,
) {
    loop {
        match stage.hear(PROGRESS_INTERVAL) {
            Told::Prepared(refused) => {
                ready.warnings.extend(refused);
                ready.scheduling = scheduling::in_words(&plan.scheduling, &ready.warnings);
                stage.say(&PartEvent::Ready(std::mem::take(&mut ready)));
            }
            Told::Command(PartCommand::Go { start_ns }) => {
                shared.start_ns.store(start_ns, Ordering::Relaxed);
            }
            Told::Command(PartCommand::Stop) | Told::Finished => return,
            Told::Command(PartCommand::Count) | Told::Program(_) => {}
            Told::Nothing => {
                clock.renew();
                drops.attribute(shared);
                if shared.start_ns.load(Ordering::Relaxed) != 0 {
                    stage.say(&PartEvent::Progress(shared.progress()));
                }
            }
        }
        shared.note_in(page, clock, false);
    }
}
