//! The service parts: the naming service of a run, and the event channel of a stream.

use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::{ChannelCounts, ChannelOptions, EventChannel};
use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;
use deckwatch_naming::store::Store;
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_naming::{NAME_SERVICE, NamingService};
use deckwatch_orb::{ObjectRef, Orb, SystemException};

use super::stage::{Stage, Told};
use crate::carrier::{ChannelKind, NetworkPriority};
use crate::carriers::orb::{call_time_max, naming_service, serving_orb};
use crate::error::PartError;
use crate::limits::{CHANNEL_THREADS, NAMES_CALL_TIME_MAX, NAMES_THREADS, PROGRESS_INTERVAL};
use crate::plan::{ChannelPlan, NamesPlan};
use crate::scheduling::{self, Scheduling};
use crate::talk::{Done, PartCommand, PartEvent, Progress, Ready};

/// Runs the naming service until `stop`.
pub(super) fn play_names(plan: &NamesPlan, stage: &mut Stage<impl Write>) -> Result<(), PartError> {
    let refused = scheduling::prepare_process(&plan.scheduling, Duration::ZERO);
    let unserved = |error: &dyn Display| PartError::NamesNotStarted(error.to_string());
    let address = SocketAddr::new(plan.address, plan.port);
    let (orb, listening) = serving_orb(
        NAMES_CALL_TIME_MAX,
        address,
        NAMES_THREADS,
        &plan.scheduling,
        NetworkPriority::default(),
    )?;
    let store = Store::open(&plan.store).map_err(|error| unserved(&error))?;
    let _service = NamingService::start(&orb, store).map_err(|error| unserved(&error))?;
    let root = orb.root_poa().map_err(|error| unserved(&error))?;
    root.the_poa_manager()
        .activate()
        .map_err(|error| unserved(&error))?;
    let ready = Ready {
        endpoint: format!("corbaloc::{listening}/{NAME_SERVICE}"),
        listening: Some(listening),
        warnings: refused,
        ..Ready::default()
    };
    attend(stage, &plan.scheduling, ready, Progress::default);
    orb.shutdown(true).map_err(PartError::Shutdown)?;
    stage.say(&PartEvent::Done(Done::default()));
    Ok(())
}

/// Runs the event channel of one stream until `stop`.
pub(super) fn play_channel(
    plan: &ChannelPlan,
    stage: &mut Stage<impl Write>,
) -> Result<(), PartError> {
    let refused = scheduling::prepare_process(&plan.scheduling, Duration::ZERO);
    let unserved = |error: &dyn Display| PartError::ChannelNotStarted(error.to_string());
    let call_time_max = call_time_max(plan.stream.deadline);
    let address = SocketAddr::new(plan.address, 0);
    let (orb, listening) = serving_orb(
        call_time_max,
        address,
        CHANNEL_THREADS,
        &plan.scheduling,
        plan.network_priority,
    )?;
    let queue_len = plan
        .queue_len
        .map(|queue_len| usize::try_from(queue_len).unwrap_or(usize::MAX));
    // The channel's thread inherits the scheduling of the thread that starts the channel.
    let start = || {
        // The result is dropped: the kernel refuses the same for the part's own thread, and that thread reports it.
        let _ = scheduling::prepare_thread(&plan.scheduling);
        Channel::start(plan, &orb, queue_len, call_time_max)
    };
    let started = std::thread::scope(|scope| scope.spawn(start).join());
    let channel = started
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .map_err(|error| unserved(&error))?;
    let root = orb.root_poa().map_err(|error| unserved(&error))?;
    root.the_poa_manager()
        .activate()
        .map_err(|error| unserved(&error))?;
    // An earlier run may have left the name bound.
    bind_with_contexts(
        &naming_service(&orb, &plan.channel.names)?.into(),
        &plan.channel.name,
        channel.reference(),
        Existing::Replace,
    )
    .map_err(|error| PartError::NameNotBound {
        name: plan.channel.name.clone(),
        reason: error.to_string(),
    })?;
    let ready = Ready {
        endpoint: orb.object_to_string(channel.reference()),
        listening: Some(listening),
        warnings: refused,
        ..Ready::default()
    };
    attend(stage, &plan.scheduling, ready, || {
        progress(channel.counts())
    });
    let counts = channel.counts();
    orb.shutdown(true).map_err(PartError::Shutdown)?;
    stage.say(&PartEvent::Done(Done {
        progress: progress(counts),
        warnings: lost(plan, counts),
    }));
    Ok(())
}

/// The channel of a stream, of the kind that its carrier needs.
enum Channel {
    Cos(EventChannel),
    RealTime(RtEventChannel),
}

impl Channel {
    fn start(
        plan: &ChannelPlan,
        orb: &Orb,
        queue_len: Option<usize>,
        push_timeout: Duration,
    ) -> Result<Self, SystemException> {
        if plan.stream.carrier.needs().channel == Some(ChannelKind::RealTime) {
            let mut options = RtChannelOptions::default();
            options.queue_len = queue_len.unwrap_or(options.queue_len);
            return RtEventChannel::start(orb, options).map(Self::RealTime);
        }
        let mut options = ChannelOptions {
            push_timeout,
            ..ChannelOptions::default()
        };
        options.queue_len = queue_len.unwrap_or(options.queue_len);
        EventChannel::start(orb, options).map(Self::Cos)
    }

    fn reference(&self) -> &ObjectRef {
        match self {
            Self::Cos(channel) => channel.reference().object(),
            Self::RealTime(channel) => channel.reference().object(),
        }
    }

    /// The counts that both kinds have.
    fn counts(&self) -> ChannelCounts {
        match self {
            Self::Cos(channel) => channel.counts(),
            Self::RealTime(channel) => {
                let counts = channel.counts();
                ChannelCounts {
                    received: counts.received,
                    delivered: counts.delivered,
                    displaced: counts.dropped + counts.lost.iter().sum::<u64>(),
                    failed: counts.failed,
                    consumers_lost: counts.consumers_lost,
                    ..ChannelCounts::default()
                }
            }
        }
    }
}

fn progress(counts: ChannelCounts) -> Progress {
    Progress {
        sent: counts.delivered,
        send_errors: counts.failed,
        received: counts.received,
        overflows: counts.displaced,
        ..Progress::default()
    }
}

fn lost(plan: &ChannelPlan, counts: ChannelCounts) -> Vec<Warning> {
    let flow = &plan.stream.name;
    let overflow = Caution::ChannelOverflow {
        flow: flow.clone(),
        events: counts.displaced,
    };
    let consumers_lost = Caution::ChannelConsumerLost {
        flow: flow.clone(),
        consumers: counts.consumers_lost,
    };
    [
        (counts.displaced, overflow),
        (counts.consumers_lost, consumers_lost),
    ]
    .into_iter()
    .filter_map(|(count, caution)| (count > 0).then(|| caution.into()))
    .collect()
}

/// Reports for a service until `stop`. A thread made here gets the same scheduling as the service's threads, to find
/// what the kernel refuses.
fn attend(
    stage: &mut Stage<impl Write>,
    scheduling: &Scheduling,
    mut ready: Ready,
    progress: impl Fn() -> Progress,
) {
    let scheduled = scheduling.clone();
    let refused = std::thread::spawn(move || scheduling::prepare_thread(&scheduled)).join();
    ready.warnings.extend(refused.unwrap_or_default());
    ready.scheduling = scheduling::in_words(scheduling, &ready.warnings);
    stage.say(&PartEvent::Ready(ready));
    let mut started = false;
    loop {
        match stage.hear(PROGRESS_INTERVAL) {
            Told::Command(PartCommand::Go { .. }) => started = true,
            Told::Command(PartCommand::Count) => {
                stage.say(&PartEvent::Progress(progress()));
            }
            Told::Command(PartCommand::Stop) => return,
            Told::Prepared(_) | Told::Finished | Told::Program(_) => {}
            Told::Nothing => {
                if started {
                    stage.say(&PartEvent::Progress(progress()));
                }
            }
        }
    }
}
