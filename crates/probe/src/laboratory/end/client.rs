//! A client of our ORB that calls the objects of the bench.

use deckwatch_orb::cos_naming::NamingContextRef;
use deckwatch_orb::transport::SPIN_FOREVER;
use deckwatch_orb::{Orb, SystemException};

use super::commands::{Command, Samples};
use super::load::call_together;
use super::server::{builder_with_tls, corba_priority};
use super::{EndPlan, Role, refused, words};
use crate::bench::{Operation, resolved_name};
use crate::laboratory::error::LaboratoryError;
use crate::laboratory::idl::deckwatch_bench::BenchRef;
use crate::laboratory::payload::{element, plain};

/// A sealed ORB and the object that it calls.
fn client(reference: &str, plan: &EndPlan) -> Result<(Orb, BenchRef), LaboratoryError> {
    let mut builder = builder_with_tls(plan)?;
    if plan.variant.spins() {
        builder = builder.spinning_calls(SPIN_FOREVER);
    }
    let orb = builder.build().map_err(refused("The ORB"))?;
    // A server that is attacked prints further references.
    let object = reference.split(',').next().unwrap_or_default();
    let object = referred(&orb, object)?;
    orb.seal();
    Ok((orb, object))
}

fn referred(orb: &Orb, reference: &str) -> Result<BenchRef, LaboratoryError> {
    let object = orb.string_to_object(reference);
    let object = object.map_err(refused("The reference"))?;
    let object = object.ok_or_else(|| refused("The reference")("it is nil"))?;
    Ok(BenchRef::unchecked_narrow(object))
}

/// The objects that a client calls: one, or many in turn.
pub(super) struct Targets {
    orb: Orb,
    first: BenchRef,
    others: Vec<BenchRef>,
}

impl Targets {
    /// Reads the plan's reference, or its file of references; those are shuffled.
    pub(super) fn of(plan: &EndPlan) -> Result<Self, LaboratoryError> {
        let reference = plan.reference.as_deref().unwrap_or_default();
        let Some(path) = reference.strip_prefix('@') else {
            let (orb, first) = client(reference, plan)?;
            let others = Vec::new();
            return Ok(Self { orb, first, others });
        };
        let text = std::fs::read_to_string(path).map_err(|source| LaboratoryError::File {
            path: path.into(),
            source,
        })?;
        let (orb, first) = client(text.lines().next().unwrap_or_default(), plan)?;
        let others: Result<Vec<BenchRef>, _> =
            text.lines().map(|line| referred(&orb, line)).collect();
        let mut others = others?;
        // A step without a common divisor with the count visits each object once before it repeats one.
        let step = STEPS.iter().find(|step| others.len() % **step != 0);
        let (count, step) = (others.len(), step.copied().unwrap_or(1));
        others = (0..count)
            .map(|index| others[index * step % count].clone())
            .collect();
        Ok(Self { orb, first, others })
    }

    /// Sets the priority that the calling thread asks for in its calls.
    pub(super) fn take_priority(&self, plan: &EndPlan) -> Result<(), LaboratoryError> {
        take_priority(&self.orb, plan).map_err(refused("The priority"))
    }

    /// Runs one command.
    pub(super) fn run(&self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let object = &self.first;
        let octets = || -> Vec<u8> { (0..command.there).map(|index| index as u8).collect() };
        match Operation::of_word(&command.kind) {
            Some(Operation::Octets) => {
                let data = octets();
                let mut next = self.others.iter().cycle();
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
                samples.take(|| object.sink_octets(&data).map_err(words))
            }
            Some(Operation::SinkStructs) => {
                let data = vec![element(); command.there];
                samples.take(|| object.sink_complex_sequence(&data).map_err(words))
            }
            Some(Operation::SinkPlain) => {
                let data = vec![plain(); command.there];
                samples.take(|| object.sink_plain_sequence(&data).map_err(words))
            }
            Some(Operation::StreamOctets) => {
                let data = octets();
                let before = object.calls().map_err(words)?;
                let send = || object.send_octets(&data).map_err(words);
                samples.stream(send, |count| {
                    while object.calls().map_err(words)? < before + count {}
                    Ok(())
                })
            }
            Some(Operation::Resolve) => {
                let root = NamingContextRef::unchecked_narrow(object.object().clone());
                let name = [resolved_name(command.there)];
                root.rebind(&name, Some(root.object())).map_err(words)?;
                samples.take(|| match root.resolve(&name) {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) => Err("the name leads to a nil reference".to_owned()),
                    Err(error) => Err(words(error)),
                })
            }
            // Commands of events have no such words.
            _ => Err(command.unknown()),
        }
    }
}

fn take_priority(orb: &Orb, plan: &EndPlan) -> Result<(), SystemException> {
    let Some((high, low)) = plan.lanes else {
        return Ok(());
    };
    let number = plan.fifo.unwrap_or(match plan.role {
        Role::OrbLoad => low,
        _ => high,
    });
    orb.rt_current().set_the_priority(corba_priority(number))
}

/// Primes that are far from each other and from powers of two.
const STEPS: [usize; 3] = [7_919, 104_729, 1_299_709];

/// Makes round trips. The first result must equal the argument, the others must have its length.
fn call<T: PartialEq>(
    sent: &[T],
    samples: &mut Samples,
    mut one: impl FnMut() -> Result<Vec<T>, SystemException>,
) -> Result<(), String> {
    if one().map_err(words)? != sent {
        return Err("the result is not the argument".to_owned());
    }
    samples.take(|| {
        let got = one().map_err(words)?;
        if got.len() == sent.len() {
            Ok(())
        } else {
            Err("the result has another length than the argument".to_owned())
        }
    })
}

/// Clients without pause, each with an ORB of its own.
pub(super) fn load_clients(plan: &EndPlan) -> Result<Vec<(Orb, BenchRef)>, LaboratoryError> {
    let reference = plan.reference.as_deref().unwrap_or_default();
    (0..plan.clients).map(|_| client(reference, plan)).collect()
}

/// Runs one command with all clients at once.
pub(super) fn load(
    plan: &EndPlan,
    clients: &[(Orb, BenchRef)],
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    call_together(
        plan,
        (command.budget_ns, samples),
        clients,
        |(_, object)| {
            let data = vec![3; command.there];
            move || object.echo_octets(&data).map(drop).map_err(words)
        },
    )
}
