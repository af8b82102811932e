//! A server of our ORB: objects of the bench, or the subjects of the experiments.

use std::sync::Arc;

use deckwatch_orb::transport::SPIN_FOREVER;
use deckwatch_orb::{
    Direct, Orb, OrbBuilder, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy,
    Scheduling, Servant, ThreadpoolLane,
};
use deckwatch_os::schedule::{Class, limit_real_time, set_class};

use super::factoring::Factoring;
use super::servant::{LaboratoryServant, Shared};
use super::subjects::ActiveSubjects;
use super::{EndPlan, answer_questions, greet, place, refused};
use crate::laboratory::certificates;
use crate::laboratory::error::LaboratoryError;
use crate::laboratory::idl::deckwatch_bench::BenchSkeleton;
use crate::laboratory::idl::experiment::SubjectsSkeleton;
use crate::laboratory::variant::Variant;
use crate::limits::REAL_TIME_UNBLOCKED_MAX;

/// Serves until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let orb = start(plan)?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let poa = match plan.lanes {
        Some(lanes) => poa_with_lanes(&orb, &root, plan, lanes)?,
        None => root.clone(),
    };
    let reference = if plan.subjects {
        activate_subjects(plan, &root, poa)?
    } else {
        activate_objects(plan, &poa)?
    };
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    let factoring = plan.factors.then(Factoring::begin).transpose()?;
    // This thread shows the class that the lane's threads got: they are placed in the same way.
    place(plan.fifo);
    greet(&reference)?;
    // It would take the processor from the lane's threads; time sharing is always permitted.
    let _ = set_class(Class::Other);
    answer_questions(factoring.as_ref())?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

fn start(plan: &EndPlan) -> Result<Orb, LaboratoryError> {
    // The threads of lanes have the priority of their lane.
    let fifo = plan.fifo.filter(|_| plan.lanes.is_none());
    if plan.lanes.is_some() {
        let _ = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
    }
    let usual = match plan.certificates {
        Some(_) => "tls:127.0.0.1:0",
        None => "127.0.0.1:0",
    };
    let mut builder = builder_with_tls(plan)?
        .listen(plan.listen.as_deref().unwrap_or(usual))
        .map_err(refused("The endpoint"))?
        .on_thread_start(move || place(fifo));
    if plan.variant == Variant::SharedPoller {
        // The only thread of a lane never leaves the poller for one connection.
        builder = builder.threads(1).dynamic_threads(0);
    }
    if plan.variant.spins() {
        builder = builder.spinning_lanes(SPIN_FOREVER);
    }
    if plan.variant.shares_memory() {
        let name = format!("deckwatch-bench-{}.socket", std::process::id());
        let path = std::env::temp_dir().join(name);
        let endpoint = format!("shm:{}", path.display());
        builder = (builder.listen(&endpoint)).map_err(refused("The endpoint"))?;
    }
    builder.build().map_err(refused("The ORB"))
}

/// The settings that servers and clients share.
pub(super) fn builder(plan: &EndPlan) -> OrbBuilder {
    let builder = Orb::builder();
    match (plan.lanes, plan.fifo) {
        (None, _) => builder,
        (Some(_), None) => builder.scheduling(Scheduling::Other),
        (Some(_), Some(_)) => builder.priority_mapping(Direct(Scheduling::Fifo)),
    }
}

/// As [`builder`], with the plan's certificates.
pub(super) fn builder_with_tls(plan: &EndPlan) -> Result<OrbBuilder, LaboratoryError> {
    let builder = builder(plan);
    let Some(folder) = &plan.certificates else {
        return Ok(builder);
    };
    Ok(builder.tls(&certificates::load(folder)?))
}

/// Activates as many objects as the plan says and writes their references to its file. Returns the first reference.
fn activate_objects(plan: &EndPlan, poa: &Poa) -> Result<String, LaboratoryError> {
    let shared = Arc::new(Shared::new(plan.inserted));
    let activate = || {
        let servant = LaboratoryServant(Arc::clone(&shared));
        let servant: Arc<dyn Servant> = Arc::new(BenchSkeleton::new(servant));
        let id = poa
            .activate_object(servant)
            .map_err(refused("The servant"))?;
        let reference = poa.id_to_reference(&id).map_err(refused("The reference"))?;
        Ok(reference.to_string())
    };
    let all: Result<Vec<String>, LaboratoryError> =
        (0..plan.objects.max(1)).map(|_| activate()).collect();
    let mut all = all?;
    if let Some(path) = &plan.references {
        std::fs::write(path, all.join("\n")).map_err(|source| LaboratoryError::File {
            path: path.clone(),
            source,
        })?;
    }
    Ok(all.swap_remove(0))
}

/// Activates the object that activates subjects in `poa`. Returns its reference.
fn activate_subjects(plan: &EndPlan, root: &Poa, poa: Poa) -> Result<String, LaboratoryError> {
    let shared = Arc::new(Shared::new(plan.inserted));
    let subjects = ActiveSubjects::new(poa, shared, plan.lanes);
    let servant: Arc<dyn Servant> = Arc::new(SubjectsSkeleton::new(subjects));
    let reference = root.servant_to_reference(&servant);
    reference
        .map(|reference| reference.to_string())
        .map_err(refused("The servant"))
}

/// An adapter with a lane for each of two priorities. Objects of the bench serve at the priority of the caller; a
/// subject declares its own.
fn poa_with_lanes(
    orb: &Orb,
    root: &Poa,
    plan: &EndPlan,
    (high, low): (u8, u8),
) -> Result<Poa, LaboratoryError> {
    let (model, server_priority, threads) = if plan.subjects {
        (PriorityModel::ServerDeclared, low, 1)
    } else {
        // One thread waits in the poller while another serves.
        let priority = plan.fifo.unwrap_or(low);
        (PriorityModel::ClientPropagated, priority, 2)
    };
    let lane = |number: u8| ThreadpoolLane {
        lane_priority: corba_priority(number),
        static_threads: threads,
        dynamic_threads: 0,
    };
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &[lane(low), lane(high)], false, None);
    let policies = Policies {
        threadpool: Some(pool.map_err(refused("The lanes"))?),
        priority_model: Some(PriorityModelPolicy {
            priority_model: model,
            server_priority: corba_priority(server_priority),
        }),
        ..Policies::default()
    };
    let manager = root.the_poa_manager();
    let made = root.create_poa("lanes", Some(manager), &policies);
    made.map_err(refused("The adapter"))
}

pub(super) fn corba_priority(number: u8) -> Priority {
    Priority::new(i16::from(number)).unwrap_or_default()
}
