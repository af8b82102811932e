//! The consumer part.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_os::schedule;

use super::messages_of;
use super::stage::{Stage, Told};
use crate::arrival::{Recorder, Shared};
use crate::body::Body;
use crate::carrier::ListenAt;
use crate::error::PartError;
use crate::limits::{HANDLE_FOR_MAX, PROGRESS_INTERVAL, SPARE_RECORDS_MIN};
use crate::plan::ConsumerPlan;
use crate::record::{HeaderPage, RecordFile};
use crate::scheduling;
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

/// Receives a stream until `stop`.
pub(super) fn play(plan: &ConsumerPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    if plan.handle_for > HANDLE_FOR_MAX {
        return Err(PartError::HandleFor {
            asked: plan.handle_for,
            most: HANDLE_FOR_MAX,
        });
    }
    let body = Body::new(&plan.stream.body)?;
    let messages = messages_of(&plan.stream.schedule)?;
    let capacity = messages + (messages / 4).max(SPARE_RECORDS_MIN);
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
        plan.handle_for,
        Arc::clone(&shared),
    );
    let mut ready = Ready {
        size_bytes: Some(size_bytes),
        ..Ready::default()
    };
    ready.warnings = scheduling::prepare_process(&plan.scheduling, plan.handle_for);
    let mut receiver = plan.stream.carrier.listen(&ListenAt {
        address: plan.address,
        channel: plan.channel.as_ref(),
        receive_buffer_bytes: plan.receive_buffer_bytes,
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
        attend(plan, stage, ready, shared, &mut clock, &mut page);
        shared.stop.store(true, Ordering::Relaxed);
    });
    clock.renew();
    shared.note_in(&mut page, &clock, true);
    stage.say(&PartEvent::Done(Done {
        progress: shared.progress(),
        warnings: Vec::new(),
    }));
    Ok(())
}

/// Reports for the receiving thread until `stop`, or until that thread has finished.
fn attend(
    plan: &ConsumerPlan,
    stage: &mut Stage<impl Write>,
    mut ready: Ready,
    shared: &Shared,
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
