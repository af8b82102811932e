//! One end: a process that serves, or that calls on command. Foreign ends use the same protocol (`bench/*/`).
//!
//! Protocol on standard input and output:
//! * An end first prints its scheduling class and a reference: `fifo REFERENCE` or `other REFERENCE`. A client prints
//!   `ready` as the reference. If another process does the work, ` of process NUMBER` follows.
//! * A client reads `KIND A B COUNT BUDGET_NS PERIOD_NS`. A and B are the octets there and back of raw messages, or the
//!   number of octets or structs. With a period, one call starts each PERIOD_NS nanoseconds.
//! * A client answers `ok N` and N round trips of four octets each, nanoseconds in this machine's byte order. A stream
//!   and a load answer `sum MESSAGES NANOSECONDS`. A failed command answers `error WORDS`.
//! * A server of our own reads questions: `locks`, `factored`, `factor` and `rest`.
//! * Every end exits when its standard input ends.

mod attacked;
mod attacker;
mod caller;
mod channel;
mod client;
mod commands;
mod factoring;
mod fan;
mod load;
mod names;
pub(crate) mod omni_events;
mod raw;
mod relay;
pub(crate) mod servant;
mod server;
mod subjects;
pub(crate) mod tao_events;

use std::io::{BufRead as _, Write};
use std::path::PathBuf;
use std::process::Command;

use deckwatch_os::namespace::Placement;
use deckwatch_os::schedule::{Class, class, limit_real_time, set_affinity, set_class};

use super::error::LaboratoryError;
use super::inserted::Inserted;
use super::process::BEAT;
use super::program::Place;
use super::variant::Variant;
use crate::bench::Attack;
use crate::limits::{FAR_BEAT, REAL_TIME_UNBLOCKED_MAX};
use commands::commands;
use factoring::Factoring;

pub(crate) use commands::WARM_UP;
pub(crate) use raw::SYSTEM_CALLS;

/// The role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Serves plain TCP.
    RawServer,
    /// Calls over plain TCP.
    RawClient,
    /// Calls over many plain TCP connections at once.
    RawLoad,
    /// Serves objects with our ORB.
    OrbServer,
    /// Calls objects with our ORB.
    OrbClient,
    /// Calls an object with many instances of our ORB at once.
    OrbLoad,
    /// Relays messages over plain TCP.
    Relay,
    /// Supplies and consumes over plain TCP.
    RelayEnds,
    /// Serves an event channel.
    Channel,
    /// Supplies and consumes through an event channel.
    ChannelEnds,
    /// The same without pause, at low priority.
    ChannelLoad,
    /// Serves a COS event channel of omniEvents.
    OmniEvents,
    /// Serves a real-time event channel of TAO.
    TaoEvents,
    /// Serves objects and services that are attacked.
    Attacked,
    /// Serves names as `deckwatch names serve` does.
    Names,
    /// Attacks such a server.
    Attacker,
    /// Either end of a sweep.
    Sweep,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 17] = [
        Self::RawServer,
        Self::RawClient,
        Self::RawLoad,
        Self::OrbServer,
        Self::OrbClient,
        Self::OrbLoad,
        Self::Relay,
        Self::RelayEnds,
        Self::Channel,
        Self::ChannelEnds,
        Self::ChannelLoad,
        Self::OmniEvents,
        Self::TaoEvents,
        Self::Attacked,
        Self::Names,
        Self::Attacker,
        Self::Sweep,
    ];

    /// Server and client over plain TCP.
    pub(crate) const RAW: (Self, Self) = (Self::RawServer, Self::RawClient);

    /// Server and client of an ORB.
    pub(crate) const ORB: (Self, Self) = (Self::OrbServer, Self::OrbClient);

    /// A relay over plain TCP, with its supplier and consumers.
    pub(crate) const RELAY: (Self, Self) = (Self::Relay, Self::RelayEnds);

    /// An event channel, with its supplier and consumers.
    pub(crate) const CHANNEL: (Self, Self) = (Self::Channel, Self::ChannelEnds);

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RawServer => "raw-server",
            Self::RawClient => "raw-client",
            Self::RawLoad => "raw-load",
            Self::OrbServer => "orb-server",
            Self::OrbClient => "orb-client",
            Self::OrbLoad => "orb-load",
            Self::Relay => "relay",
            Self::RelayEnds => "relay-ends",
            Self::Channel => "channel",
            Self::ChannelEnds => "channel-ends",
            Self::ChannelLoad => "channel-load",
            Self::OmniEvents => "omnievents",
            Self::TaoEvents => "tao-events",
            Self::Attacked => "attacked",
            Self::Names => "names",
            Self::Attacker => "attacker",
            Self::Sweep => "sweep",
        }
    }
}

/// The parameters of an end.
#[derive(Clone, Debug)]
pub struct EndPlan {
    /// Its role.
    pub role: Role,
    /// The processor that it is bound to.
    pub processor: Option<u32>,
    /// Its SCHED_FIFO priority; without one, it is in the time-sharing class.
    pub fifo: Option<u8>,
    /// What servants do in addition to the operation.
    pub inserted: Inserted,
    /// What a client calls: a reference, an address, or `@FILE` with one reference on each line.
    pub reference: Option<String>,
    /// Number of objects that a server activates.
    pub objects: usize,
    /// The file that a server writes their references to.
    pub references: Option<PathBuf>,
    /// The server serves the experiments' subjects, and the client calls them.
    pub subjects: bool,
    /// Transport, and how the end waits.
    pub variant: Variant,
    /// The priorities, high and low, for which a server has lanes and that its callers ask for.
    pub lanes: Option<(u8, u8)>,
    /// The folder of the certificates, if the end speaks TLS.
    pub certificates: Option<PathBuf>,
    /// What an attacker does.
    pub attack: Option<Attack>,
    /// Number of clients in a load.
    pub clients: usize,
    /// A thread of the server factors numbers.
    pub factors: bool,
    /// The SCHED_FIFO priority that a raw client asks for its serving thread; by default its own.
    pub serving_fifo: Option<u8>,
    /// The endpoint at which a server of our ORB listens; by default any free port of the loopback interface.
    pub listen: Option<String>,
    /// The end shows in short intervals that it lives.
    pub beats: bool,
}

/// Plays an end until its standard input ends.
///
/// # Errors
/// [`LaboratoryError`]: the end cannot start. Later failures are answers.
pub fn run_end(plan: &EndPlan) -> Result<(), LaboratoryError> {
    if let Some(processor) = plan.processor {
        set_affinity(&[processor]).map_err(system("The processor cannot be used"))?;
    }
    let reference = plan.reference.as_deref().unwrap_or_default();
    match plan.role {
        Role::RawServer => raw::serve(plan),
        Role::OrbServer => server::serve(plan),
        Role::RawClient => {
            place(plan.fifo);
            let mut client = raw::Client::new(reference, plan);
            commands(|command, samples| client.run(command, samples))
        }
        Role::RawLoad => {
            place(plan.fifo);
            commands(|command, samples| raw::load(reference, plan, command, samples))
        }
        Role::Relay => relay::serve(plan),
        Role::Channel => channel::serve(plan),
        Role::OmniEvents => omni_events::serve(plan),
        Role::TaoEvents => tao_events::serve(plan),
        Role::Attacked => attacked::serve(plan),
        Role::Names => names::serve(plan),
        Role::Attacker => {
            let attacker = attacker::Attacker::new(plan)?;
            commands(|command, samples| attacker.run(command, samples))
        }
        Role::Sweep => {
            place(plan.fifo);
            greet("ready")?;
            crate::sweep::end::play(plan.beats)
        }
        Role::RelayEnds => {
            place(plan.fifo);
            commands(|command, samples| relay::run(reference, plan, command, samples))
        }
        Role::ChannelEnds | Role::ChannelLoad => {
            let mut ends = channel::Ends::new(reference, plan)?;
            place(plan.fifo);
            commands(|command, samples| ends.run(command, samples))
        }
        Role::OrbClient if plan.subjects => {
            let mut caller = caller::Caller::new(reference)?;
            place(plan.fifo);
            commands(|command, samples| caller.run(command, samples))
        }
        Role::OrbClient => {
            let targets = client::Targets::of(plan)?;
            place(plan.fifo);
            targets.take_priority(plan)?;
            commands(|command, samples| targets.run(command, samples))
        }
        Role::OrbLoad => {
            let clients = client::load_clients(plan)?;
            place(plan.fifo);
            commands(|command, samples| client::load(plan, &clients, command, samples))
        }
    }
}

fn system(doing: &'static str) -> impl Fn(std::io::Error) -> LaboratoryError {
    move |source| LaboratoryError::System { doing, source }
}

fn refused<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> LaboratoryError {
    move |error| LaboratoryError::EndFailed {
        what: what.to_owned(),
        reason: error.to_string(),
    }
}

/// An error as an end prints it.
fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Puts the calling thread into its class. [`greet`] prints the class that it got.
fn place(fifo: Option<u8>) {
    if let Some(priority) = fifo {
        let _ = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
        let _ = set_class(Class::Fifo(priority));
    }
}

/// A command that starts a program which serves for this end: on its processor, with its limit of real-time threads, and
/// in the class of `fifo`, which no process inherits from a thread of ours. The program dies with the end.
fn daemon(program: &str, fifo: Option<u8>) -> std::io::Result<Command> {
    let place = Place {
        processor: None,
        fifo,
    };
    let mut command = place.command(program);
    let placement = Placement {
        dies_with_parent: true,
        ..Placement::default()
    };
    placement.apply(&mut command)?;
    Ok(command)
}

/// Prints the calling thread's class, and `reference`.
fn greet(reference: &str) -> Result<(), LaboratoryError> {
    let word = match class() {
        Ok(Class::Fifo(_)) => "fifo",
        _ => "other",
    };
    print_line(&format!("{word} {reference}"))
}

/// Writes a line in each [`FAR_BEAT`], which shows that this process lives, until standard output is closed. The thread
/// ends with the process.
pub fn beat() {
    std::thread::spawn(|| {
        while print_line(BEAT).is_ok() {
            std::thread::sleep(FAR_BEAT);
        }
    });
}

pub(crate) fn print_line(line: &str) -> Result<(), LaboratoryError> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(system("Standard output cannot be written"))
}

/// Answers the questions of a server's standard input until it ends.
fn answer_questions(factoring: Option<&Factoring>) -> Result<(), LaboratoryError> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Standard input cannot be read"))?;
        let answer = match (line.as_str(), factoring) {
            ("factored", Some(factoring)) => factoring.words(),
            ("factor" | "rest", Some(factoring)) => {
                factoring.enable(line == "factor");
                factoring.words()
            }
            ("locks", _) => {
                deckwatch_sync::count_locks(true);
                format!("locks {}", deckwatch_sync::locks_taken())
            }
            _ => format!("error '{line}' is no question"),
        };
        print_line(&answer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Stdio;

    use deckwatch_os::schedule::class_of;

    use super::*;

    #[test]
    fn a_program_that_serves_for_an_end_and_its_threads_have_the_class_of_the_end() {
        if set_class(Class::Fifo(1)).is_err() {
            deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
            return;
        }
        // An end has the class itself when it starts the program.
        let mut shell = daemon("sh", Some(1)).expect("a command");
        set_class(Class::Other).expect("always permitted");
        let line = "cat & echo $!; wait";
        let started = shell.args(["-c", line]).stdin(Stdio::piped());
        let mut program = started.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut told = [0; 16];
        let output = program.stdout.as_mut().expect("a pipe");
        let length = output.read(&mut told).expect("a line");
        let child = std::str::from_utf8(&told[..length]).expect("text");
        for id in [program.id(), child.trim().parse().expect("a process")] {
            assert_eq!(class_of(id).expect("it runs"), Class::Fifo(1));
        }
        drop(program.stdin.take());
        program.wait().expect("it ends");
    }
}
