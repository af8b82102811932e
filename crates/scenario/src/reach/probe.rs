//! Asks a program on a far host something, before or without a run.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_os::namespace::kill_process_group;
use serde::Deserialize;

use super::near::other_build;
use super::words::{FAR, FarWord};
use super::{Reach, plain_text};
use crate::limits::{FAR_LINE_SIZE_MAX, HELLO_PATIENCE, LAST_WORDS_SIZE_MAX};
use crate::mission::{Flow, Location, Mission};

/// Why a far host cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// The command is not on this machine.
    #[error(
        "{host} cannot be reached: `{command}` cannot be started ({reason}). Write a command of this machine as `reach`."
    )]
    NoCommand {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// Why.
        reason: String,
    },
    /// The command ended with a fault.
    #[error(
        "{host} cannot be reached: `{command}` ended with {how}. It has no terminal to ask for a password in: use a key or an agent. Try it in a terminal: {command} true"
    )]
    Refused {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// Its status, and what it said.
        how: String,
    },
    /// There is no answer.
    #[error(
        "{host} cannot be reached: `{command}` said nothing for {seconds} s. Try it in a terminal: {command} true. It must ask nothing."
    )]
    NoAnswer {
        /// The host.
        host: String,
        /// The command.
        command: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The program is not on the host.
    #[error(
        "There is no `{program}` on {host} ({how}). Copy this program there with --install, or say where it is: program = \"/PATH/deckwatch\"."
    )]
    NoProgram {
        /// The host.
        host: String,
        /// The program.
        program: String,
        /// What was said.
        how: String,
    },
    /// The program cannot be copied to the host.
    #[error("This program cannot be copied to {host}: {step}: {how}.")]
    NotInstalled {
        /// The host.
        host: String,
        /// What failed.
        step: String,
        /// How it failed.
        how: String,
    },
    /// The program on the host answers no questions about its clock.
    #[error(
        "{host} gives no end for the exchanges that relate the clocks: {how}. Write an address of that host before --reach."
    )]
    NoClock {
        /// The host.
        host: String,
        /// What it said.
        how: String,
    },
    /// The host lacks the program of a carrier in another language.
    #[error(
        "{host} cannot use the carrier {carrier}: {how}. Build it there, or copy the folder {} of this machine into lib/deckwatch/adapters beside the folder of `{program}` there.",
        folder.display()
    )]
    NoAdapter {
        /// The host.
        host: String,
        /// The carrier.
        carrier: &'static str,
        /// Why.
        how: String,
        /// Its folder on this machine.
        folder: PathBuf,
        /// The program on the host.
        program: String,
    },
    /// The program on the host is not this one.
    #[error("The program on {host} cannot take part: {how}.")]
    OtherBuild {
        /// The host.
        host: String,
        /// Both builds.
        how: String,
    },
}

/// What a program on a far host answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Its standard output.
    pub output: Vec<u8>,
    /// The end of its standard error, without what could change a terminal.
    pub complaints: String,
}

impl Answer {
    /// Returns how the command ended, and what it said.
    #[must_use]
    pub fn how(&self) -> String {
        let status = self
            .status
            .map_or("a signal".to_owned(), |status| format!("status {status}"));
        match self.complaints.as_str() {
            "" => status,
            words => format!("{status}: {}", words.trim_end_matches('.')),
        }
    }
}

/// Runs `words` on a far host with an empty standard input, and returns the answer.
///
/// # Errors
/// [`ReachError::NoCommand`], [`ReachError::NoAnswer`]. A fault of the program is an answer.
pub fn ask(
    host: &str,
    reach: &Reach,
    words: &[&str],
    patience: Duration,
) -> Result<Answer, ReachError> {
    send(host, reach, words, Vec::new(), patience)
}

/// As [`ask`], with octets for the standard input.
pub(super) fn send(
    host: &str,
    reach: &Reach,
    words: &[&str],
    octets: Vec<u8>,
    patience: Duration,
) -> Result<Answer, ReachError> {
    let command = || reach.in_words();
    let failed = |error: std::io::Error| ReachError::NoCommand {
        host: host.to_owned(),
        command: command(),
        reason: error.to_string(),
    };
    let mut started = reach
        .command(words)
        .and_then(|mut command| command.stdin(Stdio::piped()).spawn())
        .map_err(failed)?;
    let (input, output, complaints) = (
        started.stdin.take(),
        started.stdout.take(),
        started.stderr.take(),
    );
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that does not read it says so by its status.
            let _ = input.map(|mut input| input.write_all(&octets));
        });
        let output = scope.spawn(move || first_octets(output, ANSWER_SIZE_MAX));
        let complaints = scope.spawn(move || first_octets(complaints, LAST_WORDS_SIZE_MAX));
        let status = wait(&mut started, patience);
        // Its children may hold the pipes open.
        let _ = kill_process_group(started.id());
        let _ = started.wait();
        let (output, complaints) = (output.join(), complaints.join());
        match status {
            None => Err(ReachError::NoAnswer {
                host: host.to_owned(),
                command: command(),
                seconds: patience.as_secs(),
            }),
            Some(status) => Ok(Answer {
                status,
                output: output.unwrap_or_default(),
                complaints: plain_text(
                    String::from_utf8_lossy(&complaints.unwrap_or_default()).trim(),
                ),
            }),
        }
    })
}

/// Checks the program on each far host of a mission, all at once.
///
/// # Errors
/// The first host's [`ReachError`].
pub fn check(mission: &Mission, build: &str) -> Result<(), ReachError> {
    let mut hosts: BTreeMap<(&[String], &str), &str> = BTreeMap::new();
    for (host, reach) in mission.far_hosts() {
        hosts
            .entry((&reach.words, reach.program()))
            .or_insert(&host.name);
    }
    let asked: Vec<(&str, &Reach)> = mission
        .far_hosts()
        .filter(|(host, reach)| {
            hosts.get(&(&reach.words[..], reach.program())) == Some(&&*host.name)
        })
        .map(|(host, reach)| (host.name.as_str(), reach))
        .collect();
    std::thread::scope(|scope| {
        let answers: Vec<_> = asked
            .iter()
            .map(|&(host, reach)| scope.spawn(move || check_build(host, reach, build)))
            .collect();
        answers.into_iter().try_for_each(|answer| {
            answer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// The answer of `deckwatch carriers --json`, as far as it is used.
#[derive(Deserialize)]
struct Listing {
    carriers: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    usable: bool,
    /// Why it is not usable.
    program: String,
}

/// Returns the carriers in other languages that a far host of their flows cannot use, each once, with the reason.
///
/// # Errors
/// [`ReachError`]: a host does not answer.
pub(crate) fn missing_adapters(
    mission: &Mission,
) -> Result<Vec<(CarrierRef, ReachError)>, ReachError> {
    let mut missing: Vec<(CarrierRef, ReachError)> = Vec::new();
    for (index, host) in mission.hosts.iter().enumerate() {
        let Location::Far(reach) = &host.location else {
            continue;
        };
        let here = |flow: &&Flow| flow.from == index || flow.to.contains(&index);
        let mut wanted: Vec<CarrierRef> = Vec::new();
        for carrier in mission
            .flows
            .iter()
            .filter(here)
            .flat_map(|flow| &flow.carriers)
        {
            if carrier.external().is_some() && !wanted.contains(carrier) {
                wanted.push(*carrier);
            }
        }
        if wanted.is_empty() {
            continue;
        }
        let listed = listed_carriers(&host.name, reach)?;
        for carrier in wanted {
            let Some(external) = carrier.external() else {
                continue;
            };
            let there = listed.iter().find(|one| one.name == carrier.name());
            let how = match there {
                Some(one) if one.usable => continue,
                Some(one) => plain_text(&one.program),
                None => "it has no adapter of this name".to_owned(),
            };
            let error = ReachError::NoAdapter {
                host: host.name.clone(),
                carrier: carrier.name(),
                how: how.trim_end_matches('.').to_owned(),
                folder: external
                    .program()
                    .parent()
                    .unwrap_or(Path::new(""))
                    .to_owned(),
                program: reach.program().to_owned(),
            };
            if !missing.iter().any(|(known, _)| *known == carrier) {
                missing.push((carrier, error));
            }
        }
    }
    Ok(missing)
}

/// Asks a far host for its carriers.
fn listed_carriers(host: &str, reach: &Reach) -> Result<Vec<Listed>, ReachError> {
    let words = [reach.program(), "carriers", "--json"];
    let answer = ask(host, reach, &words, HELLO_PATIENCE)?;
    let listing = serde_json::from_slice::<Listing>(&answer.output);
    listing
        .map(|listing| listing.carriers)
        .map_err(|_| ReachError::Refused {
            host: host.to_owned(),
            command: reach.in_words(),
            how: answer.how(),
        })
}

/// Checks that the program on a host is this one.
pub(super) fn check_build(host: &str, reach: &Reach, build: &str) -> Result<(), ReachError> {
    let words = [reach.program(), "part", FAR];
    let answer = ask(host, reach, &words, HELLO_PATIENCE)?;
    let text = String::from_utf8_lossy(&answer.output);
    let hello = text
        .lines()
        .find_map(|line| serde_json::from_str(line).ok());
    match hello {
        Some(FarWord::Hello { build: theirs }) if theirs == build => Ok(()),
        Some(FarWord::Hello { build: theirs }) => Err(ReachError::OtherBuild {
            host: host.to_owned(),
            how: other_build(&theirs, build),
        }),
        _ => Err(no_hello(host, reach, &answer, build)),
    }
}

fn no_hello(host: &str, reach: &Reach, answer: &Answer, build: &str) -> ReachError {
    let how = answer.how();
    let host = host.to_owned();
    match answer.status {
        // The statuses of shells and of `env`, `docker exec` and the like for a program that cannot be started.
        Some(126 | 127) => ReachError::NoProgram {
            host,
            program: reach.program().to_owned(),
            how,
        },
        // An older version does not know the option.
        Some(2) if answer.complaints.contains(FAR) => ReachError::OtherBuild {
            host,
            how: other_build("of an older version", build),
        },
        // ssh ends with 255 if it has not reached the host. A key file that it misses is of this machine.
        status if status != Some(255) && answer.complaints.contains("No such file") => {
            ReachError::NoProgram {
                host,
                program: reach.program().to_owned(),
                how,
            }
        }
        _ => ReachError::Refused {
            host,
            command: reach.in_words(),
            how,
        },
    }
}

/// Returns what to do if the program is not on a far host, as the rest of a sentence.
pub(crate) fn missing_program(reach: &Reach) -> String {
    format!(
        "if there is no `{}` there, copy this program with --install, or say where it is: program = \"/PATH/deckwatch\"",
        reach.program()
    )
}

/// Waits for the end of a command. Returns its status, or `None` if it does not end in time.
fn wait(command: &mut Child, patience: Duration) -> Option<Option<i32>> {
    let until = Instant::now() + patience;
    loop {
        match command.try_wait() {
            Ok(Some(status)) => return Some(status.code()),
            Ok(None) if Instant::now() < until => std::thread::sleep(WAIT_STEP),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Reads to the end, and keeps the first octets.
pub(super) fn first_octets(from: Option<impl Read>, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(most as u64).read_to_end(&mut kept);
        // The writer must not wait for a reader. What is endless ends with the patience.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    kept
}

/// Octets of an answer: one line, or the examination of a machine.
const ANSWER_SIZE_MAX: usize = 4 * FAR_LINE_SIZE_MAX;
/// Interval of the checks whether a command has ended.
const WAIT_STEP: Duration = Duration::from_millis(5);
