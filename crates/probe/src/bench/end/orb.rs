//! Our ORB at either end.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use deckwatch_orb::transport::SPIN_FOREVER;
use deckwatch_orb::{
    Direct, Orb, OrbBuilder, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy,
    Scheduling, Servant, SystemException, ThreadpoolLane,
};
use deckwatch_os::schedule::{Class, limit_real_time, set_class};

use super::commands::{Command, Samples};
use super::raw::together;
use super::{EndPlan, Role, greet, place, refused, system};
use crate::bench::case::{Operation, element, plain};
use crate::bench::condition::{FIFO_PRIORITY, HIGH_PRIORITY};
use crate::bench::error::BenchError;
use crate::bench::idl::deckwatch_bench::{BenchRef, BenchSkeleton};
use crate::bench::mirror::Mirror;
use crate::bench::variant::Variant;
use crate::limits::REAL_TIME_UNBLOCKED_MAX;

/// Serves an object, or as many as the plan says, whose references go to a file.
pub(super) fn serve(plan: &EndPlan) -> Result<(), BenchError> {
    let fifo = plan.fifo;
    let orb = server(plan)?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let poa = if plan.lanes {
        laned(&orb, &root, plan)?
    } else {
        root.clone()
    };
    let activate = || {
        let servant: Arc<dyn Servant> = Arc::new(BenchSkeleton::new(Mirror::new(plan.inserted)));
        let reference = match plan.lanes {
            true => (poa.activate_object(servant).map_err(refused("The servant")))
                .and_then(|id| poa.id_to_reference(&id).map_err(refused("The reference"))),
            false => (poa.servant_to_reference(&servant)).map_err(refused("The servant")),
        };
        reference.map(|reference| reference.to_string())
    };
    let mut references = Vec::new();
    for _ in 0..plan.objects.max(1) {
        references.push(activate()?);
    }
    if let Some(path) = &plan.references {
        std::fs::write(path, references.join("\n")).map_err(|source| BenchError::File {
            path: path.clone(),
            source,
        })?;
    }
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    // The class of this thread stands for that of the lane's, which are placed alike.
    place(fifo);
    greet(&references[0])?;
    drop(references);
    let _time_sharing_again = set_class(Class::Other);
    answer_questions()?;
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

fn server(plan: &EndPlan) -> Result<Orb, BenchError> {
    let (fifo, lanes) = (plan.fifo, plan.lanes);
    let mut builder = builder(plan)
        .listen("127.0.0.1:0")
        .map_err(refused("The endpoint"))?
        .on_thread_start(move || {
            // The threads of lanes have the priority of their lane.
            if lanes {
                let _kept_as_it_is = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
            } else {
                place(fifo);
            }
        });
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

/// What both ends have in common.
fn builder(plan: &EndPlan) -> OrbBuilder {
    let builder = Orb::builder();
    match (plan.lanes, plan.fifo) {
        (false, _) => builder,
        (true, None) => builder.scheduling(Scheduling::Other),
        (true, Some(_)) => builder.priority_mapping(Direct(Scheduling::Fifo)),
    }
}

/// An adapter with a lane of its own for each of the two priorities that the bench calls with.
fn laned(orb: &Orb, root: &Poa, plan: &EndPlan) -> Result<Poa, BenchError> {
    let lane = |number: u8| ThreadpoolLane {
        lane_priority: corba_priority(number),
        static_threads: LANE_THREADS,
        dynamic_threads: 0,
    };
    let lanes = [lane(FIFO_PRIORITY), lane(HIGH_PRIORITY)];
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &lanes, false, None);
    let policies = Policies {
        threadpool: Some(pool.map_err(refused("The lanes"))?),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ClientPropagated,
            server_priority: corba_priority(plan.fifo.unwrap_or(FIFO_PRIORITY)),
        }),
        ..Policies::default()
    };
    let manager = root.the_poa_manager();
    let made = root.create_poa("lanes", Some(manager), &policies);
    made.map_err(refused("The adapter"))
}

/// One waits in the poller while another serves.
const LANE_THREADS: u32 = 2;

fn corba_priority(number: u8) -> Priority {
    Priority::new(i16::from(number)).unwrap_or_default()
}

/// Tells how many locks have been taken, as often as it is asked; until nobody asks any more.
fn answer_questions() -> Result<(), BenchError> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Questions cannot be read"))?;
        deckwatch_sync::count_locks(line != "locks no more");
        let mut out = std::io::stdout();
        writeln!(out, "locks {}", deckwatch_sync::locks_taken())
            .and_then(|()| out.flush())
            .map_err(system("Nobody listens"))?;
    }
    Ok(())
}

/// An ORB that calls, sealed.
fn client(reference: &str, plan: &EndPlan) -> Result<(Orb, BenchRef), BenchError> {
    let mut builder = builder(plan);
    if plan.variant.spins() {
        builder = builder.spinning_calls(SPIN_FOREVER);
    }
    let orb = builder.build().map_err(refused("The ORB"))?;
    let object = referred(&orb, reference)?;
    orb.seal();
    Ok((orb, object))
}

fn referred(orb: &Orb, reference: &str) -> Result<BenchRef, BenchError> {
    let object = orb.string_to_object(reference);
    let object = object.map_err(refused("The reference"))?;
    let object = object.ok_or_else(|| refused("The reference")("it is nil"))?;
    Ok(BenchRef::unchecked_narrow(object))
}

/// What a client calls: one object, or each of many by turns.
pub(super) struct Targets {
    orb: Orb,
    first: BenchRef,
    others: Vec<BenchRef>,
}

impl Targets {
    /// Reads the plan's reference, or the file of references behind its `@`, and brings them into an order without order.
    pub(super) fn of(plan: &EndPlan) -> Result<Self, BenchError> {
        let reference = plan.reference.as_deref().unwrap_or_default();
        let Some(path) = reference.strip_prefix('@') else {
            let (orb, first) = client(reference, plan)?;
            let others = Vec::new();
            return Ok(Self { orb, first, others });
        };
        let text = std::fs::read_to_string(path).map_err(|source| BenchError::File {
            path: path.into(),
            source,
        })?;
        let (orb, first) = client(text.lines().next().unwrap_or_default(), plan)?;
        let others: Result<Vec<BenchRef>, _> =
            text.lines().map(|line| referred(&orb, line)).collect();
        let mut others = others?;
        // By a step that shares no divisor with the count, each is met once before any is met again.
        let step = STEPS.iter().find(|step| others.len() % **step != 0);
        let (count, step) = (others.len(), step.copied().unwrap_or(1));
        others = (0..count)
            .map(|index| others[index * step % count].clone())
            .collect();
        Ok(Self { orb, first, others })
    }
}

impl Targets {
    /// Gives the calling thread the priority that its calls shall have.
    pub(super) fn take_priority(&self, plan: &EndPlan) -> Result<(), BenchError> {
        take_priority(&self.orb, plan).map_err(refused("The priority"))
    }
}

fn take_priority(orb: &Orb, plan: &EndPlan) -> Result<(), SystemException> {
    if !plan.lanes {
        return Ok(());
    }
    let number = plan.fifo.unwrap_or(match plan.role {
        Role::OrbLoad => FIFO_PRIORITY,
        _ => HIGH_PRIORITY,
    });
    orb.rt_current().set_the_priority(corba_priority(number))
}

/// Primes far from each other and from powers of two.
const STEPS: [usize; 3] = [7_919, 104_729, 1_299_709];

fn said(error: SystemException) -> String {
    error.to_string()
}

/// Obeys one command.
pub(super) fn run(
    targets: &Targets,
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let object = &targets.first;
    let octets = || -> Vec<u8> { (0..command.there).map(|index| index as u8).collect() };
    match Operation::of_word(&command.kind) {
        Some(Operation::Octets) => {
            let data = octets();
            let mut next = targets.others.iter().cycle();
            call(&data, samples, || {
                next.next().unwrap_or(object).echo_octets(&data)
            })
        }
        Some(Operation::Structs) => {
            let data = vec![element(); command.there];
            call(&data, samples, || object.echo_complex_sequence(&data))
        }
        Some(Operation::SinkOctets) => {
            let data = octets();
            samples.take(|| object.sink_octets(&data).map_err(said))
        }
        Some(Operation::SinkStructs) => {
            let data = vec![element(); command.there];
            samples.take(|| object.sink_complex_sequence(&data).map_err(said))
        }
        Some(Operation::SinkPlain) => {
            let data = vec![plain(); command.there];
            samples.take(|| object.sink_plain_sequence(&data).map_err(said))
        }
        Some(Operation::StreamOctets) => {
            let data = octets();
            let before = object.calls().map_err(said)?;
            let send = || object.send_octets(&data).map_err(said);
            samples.stream(send, |count| {
                while object.calls().map_err(said)? < before + count {}
                Ok(())
            })
        }
        None => Err(format!(
            "'{}' is nothing that this end can send",
            command.kind
        )),
    }
}

/// Calls until enough; the first result must be what was sent, the others as long.
fn call<T: PartialEq>(
    sent: &[T],
    samples: &mut Samples,
    mut one: impl FnMut() -> Result<Vec<T>, SystemException>,
) -> Result<(), String> {
    if one().map_err(said)? != sent {
        return Err("what came back is not what was sent".to_owned());
    }
    samples.take(|| {
        let got = one().map_err(said)?;
        if got.len() == sent.len() {
            Ok(())
        } else {
            Err("what came back has another length".to_owned())
        }
    })
}

/// Clients that never pause, each an ORB of its own.
pub(super) fn load_clients(plan: &EndPlan) -> Result<Vec<(Orb, BenchRef)>, BenchError> {
    let reference = plan.reference.as_deref().unwrap_or_default();
    (0..plan.clients).map(|_| client(reference, plan)).collect()
}

/// Obeys one command with all of them at once.
pub(super) fn load(
    plan: &EndPlan,
    clients: &[(Orb, BenchRef)],
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    together(
        plan,
        (command.budget_ns, samples),
        clients,
        |(_, object)| {
            let data = vec![3; command.there];
            move || object.echo_octets(&data).map(drop).map_err(said)
        },
    )
}
