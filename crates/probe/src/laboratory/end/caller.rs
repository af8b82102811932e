//! A client of our ORB that calls the subjects of the experiments.
//!
//! Kinds of commands:
//! * `process/KIND` and `stream/KIND` send A elements there and back, or one way.
//! * `compute/high/NS` and `compute/low/NS` let the first or the second subject keep busy for NS nanoseconds.
//! * `locks` returns the number of our own locks taken so far, and counts from then on.
//! * `call/WAY/INVOCATION/WHAT/SERVANT/SPREAD` calls the last of B subjects, or each in turn, with A elements.

use deckwatch_cdr::Any;
use deckwatch_dynamic::{CreateRequest, NamedValue};
use deckwatch_orb::Orb;

use super::commands::{Command, Samples};
use super::{refused, words};
use crate::laboratory::element::ElementKind;
use crate::laboratory::error::LaboratoryError;
use crate::laboratory::idl::experiment::{SubjectRef, SubjectsRef};
use crate::laboratory::payload::element;

/// The client of one server's subjects.
pub(super) struct Caller {
    subjects: SubjectsRef,
    /// The active subjects, and whether they have dynamic skeletons.
    active: (bool, Vec<SubjectRef>),
    /// Keeps the connections open.
    _orb: Orb,
}

/// The manner of a `call`.
#[derive(Clone, Copy)]
struct Manner {
    is_oneway: bool,
    by_stub: bool,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Nothing,
    Octets,
    Structs,
}

impl Caller {
    /// Connects to the subjects behind `reference`.
    pub(super) fn new(reference: &str) -> Result<Self, LaboratoryError> {
        let orb = Orb::builder().build().map_err(refused("The ORB"))?;
        let object = orb.string_to_object(reference);
        let object = object.map_err(refused("The reference"))?;
        let object = object.ok_or_else(|| refused("The reference")("it is nil"))?;
        Ok(Self {
            subjects: SubjectsRef::unchecked_narrow(object),
            active: (false, Vec::new()),
            _orb: orb,
        })
    }

    /// Runs one command.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let unknown = || command.unknown();
        let parts: Vec<&str> = command.kind.split('/').collect();
        match parts[..] {
            ["process", kind] => {
                let kind = ElementKind::of_word(kind).ok_or_else(unknown)?;
                let subject = &self.subjects(1, false)?[0];
                samples.take(kind.process(subject, command.there)?)
            }
            ["stream", kind] => {
                let kind = ElementKind::of_word(kind).ok_or_else(unknown)?;
                let subject = &self.subjects(1, false)?[0];
                let before = subject.told().map_err(words)?;
                let send = kind.stream(subject, command.there);
                samples.stream(send, |sent| drain(subject, before + sent))
            }
            ["locks"] => {
                deckwatch_sync::count_locks(true);
                samples.set_sum(deckwatch_sync::locks_taken(), 0);
                Ok(())
            }
            ["compute", which, busy_ns] => {
                let subject = &self.subjects(2, false)?[usize::from(which == "low")];
                let busy_ns = busy_ns.parse().map_err(|_| unknown())?;
                samples.take_or_pace(|| subject.compute(busy_ns).map_err(words))
            }
            ["call", way, invocation, what, servant, spread] => {
                let manner = Manner {
                    is_oneway: way == "one-way",
                    by_stub: invocation == "static",
                    what: match what {
                        "nothing" => What::Nothing,
                        "octets" => What::Octets,
                        "structs" => What::Structs,
                        _ => return Err(unknown()),
                    },
                };
                let subjects = self.subjects(command.back, servant == "dynamic")?;
                let subjects = match spread {
                    // The last one activated: a linear search would visit all of them.
                    "one" => subjects.last().map(std::slice::from_ref),
                    _ => Some(subjects),
                };
                call(manner, subjects.ok_or_else(unknown)?, command, samples)
            }
            _ => Err(unknown()),
        }
    }

    /// Makes `count` subjects of the wanted kind active, and none of the other kind. Returns them.
    fn subjects(&mut self, count: usize, are_dynamic: bool) -> Result<&[SubjectRef], String> {
        if self.active.0 != are_dynamic || self.active.1.len() != count {
            let wanted = u32::try_from(count).unwrap_or(u32::MAX);
            self.subjects.activate(0, !are_dynamic).map_err(words)?;
            self.subjects.activate(wanted, are_dynamic).map_err(words)?;
            let one = |index| {
                let found = self.subjects.by_index(index, are_dynamic).map_err(words)?;
                found.ok_or_else(|| "a subject is nil".to_owned())
            };
            self.active = (are_dynamic, (0..wanted).map(one).collect::<Result<_, _>>()?);
        }
        if self.active.1.is_empty() {
            return Err("no subject is active".to_owned());
        }
        Ok(&self.active.1)
    }
}

/// Waits until the server has served `told` one-ways.
fn drain(subject: &SubjectRef, told: u64) -> Result<(), String> {
    while subject.told().map_err(words)? < told {
        std::thread::yield_now();
    }
    Ok(())
}

fn call(
    manner: Manner,
    subjects: &[SubjectRef],
    command: &Command,
    samples: &mut Samples,
) -> Result<(), String> {
    let mut turn = 0;
    let mut sent = 0;
    let mut next = || {
        sent += 1;
        turn += 1;
        &subjects[turn % subjects.len()]
    };
    let count = command.there;
    if !manner.is_oneway {
        let mut one = one(manner, count)?;
        return samples.take(|| one(next()));
    }
    let before = subjects[0].told().map_err(words)?;
    let mut one = one(manner, count)?;
    samples.take(|| one(next()))?;
    drain(&subjects[0], before + sent)
}

/// A call of any subject.
type Call = Box<dyn FnMut(&SubjectRef) -> Result<(), String>>;

fn one(manner: Manner, count: usize) -> Result<Call, String> {
    if !manner.by_stub {
        return dynamic(manner, count);
    }
    let is_oneway = manner.is_oneway;
    Ok(match manner.what {
        What::Nothing if is_oneway => Box::new(|subject| subject.tell_nothing().map_err(words)),
        What::Nothing => Box::new(|subject| subject.nothing().map_err(words)),
        What::Octets => {
            let data = vec![7_u8; count];
            if is_oneway {
                Box::new(move |subject| subject.stream_octets(&data).map_err(words))
            } else {
                Box::new(move |subject| subject.take_octets(&data).map_err(words))
            }
        }
        What::Structs => {
            let data = vec![element(); count];
            if is_oneway {
                Box::new(move |subject| subject.stream_structs(&data).map_err(words))
            } else {
                Box::new(move |subject| subject.take_structs(&data).map_err(words))
            }
        }
    })
}

/// A dynamic invocation. Each call makes a new request and inserts the sequence that a stub would get into its
/// argument.
fn dynamic(manner: Manner, count: usize) -> Result<Call, String> {
    let (octets, structs) = match manner.what {
        What::Nothing => (Vec::new(), Vec::new()),
        What::Octets => (vec![7_u8; count], Vec::new()),
        What::Structs => (Vec::new(), vec![element(); count]),
    };
    let argument = move || match manner.what {
        What::Nothing => None,
        What::Octets => Some(Any::from_value(&octets[..])),
        What::Structs => Some(Any::from_value(&structs[..])),
    };
    let is_oneway = manner.is_oneway;
    let operation = match (manner.what, is_oneway) {
        (What::Nothing, false) => "nothing",
        (What::Nothing, true) => "tell_nothing",
        (What::Octets, false) => "take_octets",
        (What::Octets, true) => "stream_octets",
        (What::Structs, false) => "take_structs",
        (What::Structs, true) => "stream_structs",
    };
    Ok(Box::new(move |subject| {
        let mut request = subject.object().create_request(operation);
        if let Some(argument) = argument() {
            let argument = argument.map_err(|error| error.to_string())?;
            request.add_arg(NamedValue::of_in("m", argument));
        }
        if is_oneway {
            return request.send_oneway().map_err(words);
        }
        request.invoke().map_err(|error| error.to_string())
    }))
}
