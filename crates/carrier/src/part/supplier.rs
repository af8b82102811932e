//! The part of a supplier.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use deckwatch_meter::pacing::Schedule;
use deckwatch_meter::result::Warning;

use super::stage::{Stage, Told};
use super::{PartError, messages_of};
use crate::arrival::Shared;
use crate::body::Body;
use crate::carriers::corba::CorbaSender;
use crate::carriers::event::EventSender;
use crate::carriers::tcp::TcpSender;
use crate::carriers::udp::UdpSender;
use crate::limits::{DATAGRAM_SIZE_MAX, PROGRESS_INTERVAL};
use crate::plan::{CarrierKind, DestinationPlan, NetworkPriority, SupplierPlan};
use crate::record::{HeaderPage, RecordFile, Records, SupplierRecord};
use crate::scheduling;
use crate::send_loop::SendLoop;
use crate::sender::Sender;
use crate::stamp_clock::StampClock;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

/// Sends a stream by its schedule.
pub(super) fn play(plan: &SupplierPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    let body = Body::new(&plan.stream.body)?;
    let size_bytes = body.octets().len();
    if plan.stream.carrier == CarrierKind::Udp && size_bytes > DATAGRAM_SIZE_MAX as usize {
        return Err(PartError::Plan(format!(
            "A datagram takes at most {DATAGRAM_SIZE_MAX} octets, and the message has {size_bytes}."
        )));
    }
    let messages = messages_of(&plan.stream.schedule)?;
    if messages - 1 > body.sequence_max() {
        return Err(PartError::Plan(format!(
            "The stream has {messages} messages, and the member that numbers them holds no more than {}.",
            body.sequence_max()
        )));
    }
    let slots = slots(plan)?;
    let file = RecordFile::supplier(
        &plan.records,
        plan.stream.flow,
        slots.len() as u64,
        messages,
        size_bytes as u64,
    )?;
    let (mut page, records) = file.into_parts();
    let clock = Arc::new(StampClock::new());
    let shared = Arc::new(Shared::default());
    let mut ready = Ready {
        size_bytes: Some(size_bytes as u64),
        ..Ready::default()
    };
    ready.warnings = scheduling::prepare_process(&plan.scheduling, std::time::Duration::ZERO);
    ready.warnings.extend(unapplied_priority(plan));
    let loops = loops(plan, &slots, &body, messages, records, &shared, &clock)?;
    std::thread::scope(|scope| {
        let mut starts = Vec::new();
        for mut send_loop in loops {
            let (start, started) = mpsc::channel::<Schedule>();
            starts.push(start);
            let tell = stage.teller();
            scope.spawn(move || {
                // The one who hears it lives until this thread has ended.
                let _told = tell.send(Told::Prepared(scheduling::prepare_thread(&plan.scheduling)));
                if let Ok(schedule) = started.recv() {
                    send_loop.run(&schedule);
                }
                let _told = tell.send(Told::Finished);
            });
        }
        attend(plan, stage, ready, starts, &shared, &clock, &mut page);
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

/// The ORB marks no packets of its own: said, not passed over.
fn unapplied_priority(plan: &SupplierPlan) -> Option<Warning> {
    let carrier = plan.stream.carrier;
    (carrier.has_middleware() && plan.network_priority != NetworkPriority::default()).then(|| Warning {
        kind: "network-priority-unapplied".to_owned(),
        text: format!("The packets of {} over {carrier} carry no priority: the ORB does not mark its packets.", plan.stream.name),
    })
}

/// Speaks for the sending threads until all have finished, or `stop`.
fn attend(
    plan: &SupplierPlan,
    stage: &mut Stage<impl Write>,
    mut ready: Ready,
    mut starts: Vec<mpsc::Sender<Schedule>>,
    shared: &Shared,
    clock: &StampClock,
    page: &mut HeaderPage,
) {
    let (mut unprepared, mut unfinished) = (starts.len(), starts.len());
    while unfinished > 0 {
        match stage.hear(PROGRESS_INTERVAL) {
            Told::Prepared(refused) => {
                unprepared -= 1;
                // Each thread is refused the same.
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
                    // A thread that has ended has said so.
                    let _started = start.send(schedule.clone());
                }
            }
            Told::Command(PartCommand::Stop) => return,
            Told::Finished => unfinished -= 1,
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

/// The destinations that have records of their own: all, or for `event` the channel alone.
fn slots(plan: &SupplierPlan) -> Result<Vec<&DestinationPlan>, PartError> {
    let numbered = plan
        .destinations
        .iter()
        .enumerate()
        .all(|(place, destination)| usize::from(destination.index) == place);
    if plan.destinations.is_empty() || !numbered {
        return Err(PartError::Plan(
            "A supplier needs destinations, numbered from 0 in order.".to_owned(),
        ));
    }
    let count = if plan.stream.carrier == CarrierKind::Event {
        1
    } else {
        plan.destinations.len()
    };
    Ok(plan.destinations.iter().take(count).collect())
}

/// Raw carriers have one thread for all destinations, which never waits for any; a middleware may wait in a call, so it has one for each.
fn loops(
    plan: &SupplierPlan,
    slots: &[&DestinationPlan],
    body: &Body,
    messages: u64,
    mut records: Records<SupplierRecord>,
    shared: &Arc<Shared>,
    clock: &Arc<StampClock>,
) -> Result<Vec<SendLoop>, PartError> {
    let mut loops: Vec<SendLoop> = Vec::new();
    for destination in slots {
        let (own, rest) = records
            .split_at(usize::try_from(messages).map_err(|_| crate::record::RecordError::TooMany)?);
        records = rest;
        if loops.is_empty() || plan.stream.carrier.has_middleware() {
            loops.push(SendLoop::new(
                Body::new(&plan.stream.body)?,
                Arc::clone(shared),
            ));
        }
        if let Some(send_loop) = loops.last_mut() {
            send_loop.push(connect(plan, destination, body, clock)?, own);
        }
    }
    Ok(loops)
}

fn connect(
    plan: &SupplierPlan,
    destination: &DestinationPlan,
    body: &Body,
    clock: &Arc<StampClock>,
) -> Result<Box<dyn Sender>, PartError> {
    let (priority, clock) = (plan.network_priority, Arc::clone(clock));
    Ok(match plan.stream.carrier {
        CarrierKind::Udp => Box::new(UdpSender::connect(
            plan.address,
            endpoint(destination)?,
            priority,
            clock,
        )?),
        CarrierKind::Tcp => Box::new(TcpSender::connect(
            plan.address,
            endpoint(destination)?,
            body.octets().len(),
            priority,
            clock,
        )?),
        CarrierKind::Corba | CarrierKind::CorbaOneway => {
            Box::new(CorbaSender::connect(&plan.stream, &destination.endpoint)?)
        }
        CarrierKind::Event => Box::new(EventSender::connect(&plan.stream, plan.channel.as_ref())?),
    })
}

fn endpoint(destination: &DestinationPlan) -> Result<SocketAddr, PartError> {
    destination.endpoint.parse().map_err(|_| {
        PartError::Plan(format!(
            "The endpoint of {} is `{}`, which is no address:port.",
            destination.host, destination.endpoint
        ))
    })
}
