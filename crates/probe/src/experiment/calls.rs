//! The calling end: obeys what it is told to call, and how.
//!
//! `process/KIND` and `stream/KIND` send A elements, there and back or one way; `compute/high` and `compute/low` ask the first or the second
//! subject to keep busy for A nanoseconds; `locks` counts the locks of our own kind from then on, and tells how many there were;
//! `call/WAY/INVOCATION/WHAT/SERVANT/SPREAD` calls one of B subjects, or each in its turn, with A elements.

use deckwatch_cdr::Any;
use deckwatch_dynamic::{CreateRequest, NamedValue};
use deckwatch_orb::Orb;
use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::kind::{ElementKind, said};
use crate::bench::BenchError;
use crate::bench::case::element;
use crate::bench::end::commands::{Command, Samples};
use crate::bench::idl::experiment::{SubjectRef, SubjectsRef};

/// The caller of one server's subjects.
pub(super) struct Caller {
    subjects: SubjectsRef,
    /// Those called last: how many, with generated skeletons or dynamic ones.
    held: (bool, Vec<SubjectRef>),
    /// Keeps the connections.
    _orb: Orb,
}

/// What the last three words of a `call` say.
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
    /// Calls what `reference` leads to.
    pub(super) fn new(orb: Orb, reference: &str) -> Result<Self, BenchError> {
        let unusable = |reason: String| BenchError::Reference(reason);
        let object = orb.string_to_object(reference);
        let object = object.map_err(|error| unusable(error.to_string()))?;
        let object = object.ok_or_else(|| unusable("it is nil".to_owned()))?;
        Ok(Self {
            subjects: SubjectsRef::unchecked_narrow(object),
            held: (false, Vec::new()),
            _orb: orb,
        })
    }

    /// Obeys one command.
    pub(super) fn run(&mut self, command: &Command, samples: &mut Samples) -> Result<(), String> {
        let unknown = || format!("'{}' is nothing that this end can do", command.kind);
        let words: Vec<&str> = command.kind.split('/').collect();
        match words[..] {
            ["process", kind] => {
                let kind = ElementKind::of_word(kind).ok_or_else(unknown)?;
                let subject = &self.held(1, false)?[0];
                samples.take(kind.process(subject, command.there)?)
            }
            ["stream", kind] => {
                let kind = ElementKind::of_word(kind).ok_or_else(unknown)?;
                let subject = &self.held(1, false)?[0];
                let before = subject.told().map_err(said)?;
                let send = kind.stream(subject, command.there);
                samples.stream(send, |sent| drain(subject, before + sent))
            }
            ["locks"] => {
                deckwatch_sync::count_locks(true);
                samples.told(deckwatch_sync::locks_taken(), 0);
                Ok(())
            }
            ["compute", which] => {
                let subject = &self.held(2, false)?[usize::from(which == "low")];
                let busy_ns = command.there as u64;
                let call = || subject.compute(busy_ns).map_err(said);
                if command.period_ns == 0 {
                    return samples.take(call);
                }
                paced(command, samples, call)
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
                let subjects = self.held(command.back, servant == "dynamic")?;
                let subjects = match spread {
                    // The last one activated: a search from the first would have to go through all of them.
                    "one" => subjects.last().map(std::slice::from_ref),
                    _ => Some(subjects),
                };
                call(manner, subjects.ok_or_else(unknown)?, command, samples)
            }
            _ => Err(unknown()),
        }
    }

    /// Lets so many subjects be active, of the kind that is asked for, and none of the other; gives them.
    fn held(&mut self, count: usize, are_dynamic: bool) -> Result<&[SubjectRef], String> {
        if self.held.0 != are_dynamic || self.held.1.len() != count {
            let wanted = u32::try_from(count).unwrap_or(u32::MAX);
            self.subjects.activate(0, !are_dynamic).map_err(said)?;
            self.subjects.activate(wanted, are_dynamic).map_err(said)?;
            let one = |index| {
                let found = self.subjects.by_index(index, are_dynamic).map_err(said)?;
                found.ok_or_else(|| "a subject is nil".to_owned())
            };
            self.held = (are_dynamic, (0..wanted).map(one).collect::<Result<_, _>>()?);
        }
        if self.held.1.is_empty() {
            return Err("there is nothing to call".to_owned());
        }
        Ok(&self.held.1)
    }
}

/// Waits until the server has served so many one-ways.
fn drain(subject: &SubjectRef, told: u64) -> Result<(), String> {
    while subject.told().map_err(said)? < told {
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
    let before = subjects[0].told().map_err(said)?;
    let mut one = one(manner, count)?;
    samples.take(|| one(next()))?;
    drain(&subjects[0], before + sent)
}

/// A call of any subject.
type Any1 = Box<dyn FnMut(&SubjectRef) -> Result<(), String>>;

fn one(manner: Manner, count: usize) -> Result<Any1, String> {
    if !manner.by_stub {
        return dynamic(manner, count);
    }
    let is_oneway = manner.is_oneway;
    Ok(match manner.what {
        What::Nothing if is_oneway => Box::new(|subject| subject.tell_nothing().map_err(said)),
        What::Nothing => Box::new(|subject| subject.nothing().map_err(said)),
        What::Octets => {
            let data = vec![7_u8; count];
            if is_oneway {
                Box::new(move |subject| subject.stream_octets(&data).map_err(said))
            } else {
                Box::new(move |subject| subject.take_octets(&data).map_err(said))
            }
        }
        What::Structs => {
            let data = vec![element(); count];
            if is_oneway {
                Box::new(move |subject| subject.stream_structs(&data).map_err(said))
            } else {
                Box::new(move |subject| subject.take_structs(&data).map_err(said))
            }
        }
    })
}

/// By a request that is made anew for each call, with its argument inserted into it from the sequence that a stub would be given.
fn dynamic(manner: Manner, count: usize) -> Result<Any1, String> {
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
            return request.send_oneway().map_err(said);
        }
        request.invoke().map_err(|error| error.to_string())
    }))
}

/// Calls by an absolute schedule until the count or the time is reached: first the round trips, then as many times from due to done.
/// A late call does not move those after it, and none is left out.
pub(super) fn paced(
    command: &Command,
    samples: &mut Samples,
    mut one: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    one()?;
    let short = |ns: i64| u32::try_from(ns).unwrap_or(u32::MAX);
    let (mut round_trips, mut from_due) = (Vec::new(), Vec::new());
    let begin_ns = monotonic_ns();
    let mut due_ns = begin_ns;
    while round_trips.len() < command.count {
        due_ns += command.period_ns;
        if due_ns - begin_ns > command.budget_ns {
            break;
        }
        sleep_until(due_ns);
        let sent_ns = monotonic_ns();
        one()?;
        let done_ns = monotonic_ns();
        round_trips.push(short(done_ns - sent_ns));
        from_due.push(short(done_ns - due_ns));
    }
    round_trips.append(&mut from_due);
    samples.put(round_trips);
    Ok(())
}
