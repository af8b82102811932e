//! Our ORB at either end.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;

use deckwatch_orb::{Orb, Servant, SystemException};
use deckwatch_os::schedule::{Class, set_class};

use super::commands::{Command, Samples};
use super::raw::together;
use super::{EndPlan, greet, place, refused, system};
use crate::bench::case::{Operation, element, plain};
use crate::bench::error::BenchError;
use crate::bench::idl::deckwatch_bench::{BenchRef, BenchSkeleton};
use crate::bench::mirror::Mirror;

/// Serves an object, or as many as the plan says, whose references go to a file.
pub(super) fn serve(plan: &EndPlan) -> Result<(), BenchError> {
    let fifo = plan.fifo;
    let mut builder = Orb::builder()
        .listen("127.0.0.1:0")
        .map_err(refused("The endpoint"))?
        .on_thread_start(move || place(fifo));
    if plan.shared_poller {
        // The only thread of a lane never leaves the poller for one connection.
        builder = builder.threads(1).dynamic_threads(0);
    }
    let orb = builder.build().map_err(refused("The ORB"))?;
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let activate = || {
        let servant: Arc<dyn Servant> = Arc::new(BenchSkeleton::new(Mirror::new(plan.inserted)));
        let reference = root.servant_to_reference(&servant);
        reference
            .map(|reference| reference.to_string())
            .map_err(refused("The servant"))
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
fn client(reference: &str) -> Result<(Orb, BenchRef), BenchError> {
    let orb = Orb::builder().build().map_err(refused("The ORB"))?;
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
    _orb: Orb,
    first: BenchRef,
    others: Vec<BenchRef>,
}

impl Targets {
    /// Reads the plan's reference, or the file of references behind its `@`, and brings them into an order without order.
    pub(super) fn of(plan: &EndPlan) -> Result<Self, BenchError> {
        let reference = plan.reference.as_deref().unwrap_or_default();
        let Some(path) = reference.strip_prefix('@') else {
            let (orb, first) = client(reference)?;
            let others = Vec::new();
            return Ok(Self {
                _orb: orb,
                first,
                others,
            });
        };
        let text = std::fs::read_to_string(path).map_err(|source| BenchError::File {
            path: path.into(),
            source,
        })?;
        let (orb, first) = client(text.lines().next().unwrap_or_default())?;
        let others: Result<Vec<BenchRef>, _> =
            text.lines().map(|line| referred(&orb, line)).collect();
        let mut others = others?;
        // By a step that shares no divisor with the count, each is met once before any is met again.
        let step = STEPS.iter().find(|step| others.len() % **step != 0);
        let (count, step) = (others.len(), step.copied().unwrap_or(1));
        others = (0..count)
            .map(|index| others[index * step % count].clone())
            .collect();
        Ok(Self {
            _orb: orb,
            first,
            others,
        })
    }
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
    (0..plan.clients).map(|_| client(reference)).collect()
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
