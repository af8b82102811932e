//! One end of an experiment: a process that serves subjects, or one that calls them. What ends say and are told stands in
//! [`crate::bench`]'s ends; a server here answers questions besides: `factored`, `factor`, `rest` and `locks`.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{
    Direct, NativePriority, Orb, Poa, Policies, Priority, PriorityMapping, PriorityModel,
    PriorityModelPolicy, Scheduling, Servant, ThreadpoolLane,
};
use deckwatch_os::schedule::{Class, limit_real_time, set_affinity, set_class};

use super::calls::Caller;
use super::factor::Factoring;
use super::raw;
use super::subject::{Hall, Shared};
use crate::bench::BenchError;
use crate::bench::end::commands::commands;
use crate::bench::end::{greet, place, refused, system};
use crate::bench::idl::experiment::SubjectsSkeleton;
use crate::limits::REAL_TIME_UNBLOCKED_MAX;

/// What an end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRole {
    /// Serves subjects by our ORB.
    Server,
    /// Calls subjects by our ORB.
    Client,
    /// Serves without an ORB, each connection by a thread of the priority that it asks for.
    RawServer,
    /// Calls without an ORB.
    RawClient,
}

impl EndRole {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Server, Self::Client, Self::RawServer, Self::RawClient];

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::RawServer => "raw-server",
            Self::RawClient => "raw-client",
        }
    }
}

/// What an end is told when it starts.
#[derive(Clone, Debug)]
pub struct ExperimentEnd {
    /// What it does.
    pub role: EndRole,
    /// The processor it is bound to.
    pub processor: Option<u32>,
    /// Its SCHED_FIFO priority; none: time sharing.
    pub fifo: Option<u8>,
    /// How long a subject keeps busy in each call, beside its work.
    pub servant_delay: Duration,
    /// How often a subject takes a lock in each call, beside its work.
    pub servant_locks: u32,
    /// A thread factors beside the server.
    pub factors: bool,
    /// What a client calls.
    pub reference: Option<String>,
    /// Octets of a raw request and reply.
    pub sizes: (usize, usize),
    /// The SCHED_FIFO priority that a raw client's serving thread shall have.
    pub serving_fifo: Option<u8>,
    /// A lane for the first subject and one for all others, of these SCHED_FIFO priorities.
    pub lanes: Option<(u8, u8)>,
}

/// Plays an end until its standard input ends.
///
/// # Errors
/// [`BenchError`] where it cannot begin; later failures are answers.
pub fn run_experiment_end(plan: &ExperimentEnd) -> Result<(), BenchError> {
    if let Some(processor) = plan.processor {
        set_affinity(&[processor]).map_err(system("The processor cannot be had"))?;
    }
    let reference = plan.reference.as_deref().unwrap_or_default();
    match plan.role {
        EndRole::Server => serve(plan),
        EndRole::RawServer => {
            let factoring = plan.factors.then(Factoring::begin).transpose()?;
            raw::serve(plan.fifo, || answer_questions(factoring.as_ref()))
        }
        EndRole::Client => {
            let orb = Orb::builder().build().map_err(refused("The ORB"))?;
            let mut caller = Caller::new(orb, reference)?;
            place(plan.fifo);
            commands(|command, samples| caller.run(command, samples))
        }
        EndRole::RawClient => {
            let mut connection = raw::Connection::new(reference, plan.serving_fifo, plan.sizes)?;
            place(plan.fifo);
            commands(|command, samples| connection.run(command, samples))
        }
    }
}

fn serve(plan: &ExperimentEnd) -> Result<(), BenchError> {
    let fifo = plan.fifo;
    let has_lanes = plan.lanes.is_some();
    let mut builder = Orb::builder()
        .listen("127.0.0.1:0")
        .map_err(refused("The endpoint"))?
        // The threads of lanes have their priorities from there.
        .on_thread_start(move || place(fifo.filter(|_| !has_lanes)));
    if has_lanes {
        let class = fifo.map_or(Scheduling::Other, |_| Scheduling::Fifo);
        builder = builder.scheduling(class);
        builder = match fifo {
            Some(_) => builder.priority_mapping(Direct(class)),
            None => builder.priority_mapping(OneForAll),
        };
        limit_real_time(REAL_TIME_UNBLOCKED_MAX).map_err(system("The limit cannot be set"))?;
    }
    let orb = builder.build().map_err(refused("The ORB"))?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let shared = Arc::new(Shared::new(plan.servant_delay, plan.servant_locks));
    let hall = match plan.lanes {
        None => Hall::new(root.clone(), shared, None),
        Some(lanes) => Hall::new(with_lanes(&orb, &root, lanes)?, shared, Some(lanes)),
    };
    let hall: Arc<dyn Servant> = Arc::new(SubjectsSkeleton::new(hall));
    let reference = root.servant_to_reference(&hall);
    let reference = reference.map_err(refused("The servant"))?;
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    let factoring = plan.factors.then(Factoring::begin).transpose()?;
    // The class of this thread stands for that of the lane's, which are placed alike.
    place(fifo);
    greet(&reference.to_string())?;
    let _time_sharing_again = set_class(Class::Other);
    answer_questions(factoring.as_ref())?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

/// An adapter whose objects have a thread for each priority.
fn with_lanes(orb: &Orb, root: &Poa, (high, low): (u8, u8)) -> Result<Poa, BenchError> {
    let priority = |number: u8| Priority::new(number.into()).unwrap_or_default();
    let lane = |number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    };
    let pool = orb.rt_orb();
    let pool = pool.create_threadpool_with_lanes(0, &[lane(low), lane(high)], false, None);
    let policies = Policies {
        threadpool: Some(pool.map_err(refused("The threadpool"))?),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ServerDeclared,
            server_priority: priority(low),
        }),
        ..Policies::default()
    };
    let manager = Some(root.the_poa_manager());
    root.create_poa("lanes", manager, &policies)
        .map_err(refused("The adapter"))
}

/// Where the host has one priority only, that is everybody's; lanes keep their own connections and threads all the same.
struct OneForAll;

impl PriorityMapping for OneForAll {
    fn to_native(&self, _: Priority) -> Option<NativePriority> {
        Some(Scheduling::Other.native_min())
    }

    fn to_corba(&self, _: NativePriority) -> Option<Priority> {
        Some(Priority::MIN)
    }
}

/// Answers what is asked on the standard input, until it ends.
fn answer_questions(factoring: Option<&Factoring>) -> Result<(), BenchError> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Questions cannot be read"))?;
        let answer = match (line.as_str(), factoring) {
            ("factored", Some(factoring)) => factoring.said(),
            ("factor" | "rest", Some(factoring)) => {
                factoring.want(line == "factor");
                factoring.said()
            }
            ("locks", _) => {
                deckwatch_sync::count_locks(true);
                format!("locks {}", deckwatch_sync::locks_taken())
            }
            _ => format!("error '{line}' is no question"),
        };
        let mut out = std::io::stdout();
        writeln!(out, "{answer}")
            .and_then(|()| out.flush())
            .map_err(system("Nobody listens"))?;
    }
    Ok(())
}
