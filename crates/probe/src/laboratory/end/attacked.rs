//! A server that is attacked: an object at each of two lanes, and the services that a stranger reaches at the default
//! lane: an event channel, a naming service, and a listener for shared memory.
//!
//! Its reference is a list with commas: the object of the high lane, that of the low lane, the channel, the root
//! context, and the endpoint of shared memory.

use std::sync::Arc;

use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_naming::{NamingService, store::Store};
use deckwatch_orb::{
    Direct, ObjectRef, Orb, OrbBuilder, Poa, Policies, PriorityModel, PriorityModelPolicy,
    Scheduling, Servant, ThreadpoolLane,
};
use deckwatch_os::process::raise_open_files;
use deckwatch_os::schedule::limit_real_time;

use super::servant;
use super::server::corba_priority;
use super::{EndPlan, answer_questions, greet, place, refused};
use crate::laboratory::error::LaboratoryError;
use crate::limits::{ATTACKED_CONNECTIONS, REAL_TIME_UNBLOCKED_MAX};

/// Serves until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let _ = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
    // Each connection needs a descriptor; a lower limit is one more bound that an attack can reach.
    let _ = raise_open_files();
    let orb = start(plan)?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let poa = poa_with_lanes(&orb, &root, plan.lanes.unwrap_or_default())?;
    let (high, low) = plan.lanes.unwrap_or_default();
    let [high, low] = [high, low].map(|priority| activate(&poa, priority));
    let channel = EventChannel::start(&orb, ChannelOptions::default());
    let channel = channel.map_err(refused("The channel"))?;
    let store = Store::in_memory().map_err(refused("The store"))?;
    let naming = NamingService::start(&orb, store).map_err(refused("The naming service"))?;
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    let endpoints = orb.endpoints();
    let mut shared = endpoints.iter().map(ToString::to_string);
    let shared = shared.find(|it| it.starts_with("shm:"));
    let text = |object: &ObjectRef| orb.object_to_string(object);
    let all = [
        text(&high?),
        text(&low?),
        text(channel.reference().object()),
        text(naming.root().object()),
        shared.unwrap_or_default(),
    ];
    greet_as(plan, &all.join(","))?;
    answer_questions(None)?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

/// Prints the class that the lanes' threads got: a thread that ends at once is placed in the same way.
fn greet_as(plan: &EndPlan, reference: &str) -> Result<(), LaboratoryError> {
    std::thread::scope(|scope| {
        let greeted = scope.spawn(|| {
            place(plan.fifo);
            greet(reference)
        });
        let panicked = |_| refused("The greeting")("its thread has panicked");
        greeted.join().map_err(panicked)?
    })
}

fn start(plan: &EndPlan) -> Result<Orb, LaboratoryError> {
    let name = format!("deckwatch-bench-{}.socket", std::process::id());
    let path = std::env::temp_dir().join(name);
    let builder = Orb::builder();
    let builder = match plan.fifo {
        None => builder.scheduling(Scheduling::Other),
        Some(_) => builder.priority_mapping(Direct(Scheduling::Fifo)),
    };
    builder
        .listen("127.0.0.1:0")
        .and_then(|builder| builder.listen(&format!("shm:{}", path.display())))
        .map(|builder| builder.connections_max(ATTACKED_CONNECTIONS))
        .and_then(OrbBuilder::build)
        .map_err(refused("The ORB"))
}

/// An adapter with two lanes, whose objects declare their priority.
fn poa_with_lanes(orb: &Orb, root: &Poa, (high, low): (u8, u8)) -> Result<Poa, LaboratoryError> {
    let lane = |number| ThreadpoolLane {
        lane_priority: corba_priority(number),
        static_threads: 2,
        dynamic_threads: 2,
    };
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &[lane(low), lane(high)], false, None);
    let policies = Policies {
        threadpool: Some(pool.map_err(refused("The lanes"))?),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ServerDeclared,
            server_priority: corba_priority(low),
        }),
        ..Policies::default()
    };
    let manager = root.the_poa_manager();
    let made = root.create_poa("lanes", Some(manager), &policies);
    made.map_err(refused("The adapter"))
}

fn activate(poa: &Poa, priority: u8) -> Result<ObjectRef, LaboratoryError> {
    let servant: Arc<dyn Servant> = servant::of_bench();
    let id = poa.activate_object_with_priority(servant, corba_priority(priority));
    let id = id.map_err(refused("The servant"))?;
    poa.id_to_reference(&id).map_err(refused("The reference"))
}
