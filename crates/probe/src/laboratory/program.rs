//! The command lines of the ends.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::end::Role;
use super::foreign::ssl_transport;
use super::inserted::Inserted;
use super::variant::Variant;
use crate::bench::Attack;

/// Processor and priority of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The processor that the end is bound to.
    pub(crate) processor: Option<u32>,
    /// The SCHED_FIFO priority; without one, the end is in the time-sharing class.
    pub(crate) fifo: Option<u8>,
}

impl Place {
    /// The same processor at another priority. A place in the time-sharing class stays as it is.
    pub(crate) fn at(self, fifo: u8) -> Self {
        let fifo = self.fifo.map(|_| fifo);
        Self { fifo, ..self }
    }

    /// A command that starts a foreign program here, by the tools of util-linux. They exec the program, which has a
    /// process group of its own, so that Ctrl-C reaches this program alone.
    pub(crate) fn command(self, program: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(fifo) = self.fifo {
            words.extend(["chrt", "-f"].map(str::to_owned));
            words.push(fifo.to_string());
        }
        if let Some(processor) = self.processor {
            words.extend(["taskset", "-c"].map(str::to_owned));
            words.push(processor.to_string());
        }
        words.push(program.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).process_group(0);
        command
    }
}

/// A program that plays ends.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The executable.
    pub(crate) path: PathBuf,
    /// This program in a hidden role, or a foreign one.
    pub(crate) is_own: bool,
    /// What servants do in addition; foreign servants know delays only.
    pub(crate) inserted: Inserted,
}

/// Further parameters of an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    /// The server serves the experiments' subjects, and the client calls them.
    pub(crate) subjects: bool,
    /// Number of objects that a server activates; at least one.
    pub(crate) objects: usize,
    /// The file that a server writes their references to.
    pub(crate) references: Option<PathBuf>,
    /// Transport of our ends and how they wait.
    pub(crate) variant: Variant,
    /// The priorities, high and low, for which our server has lanes and that our callers ask for.
    pub(crate) lanes: Option<(u8, u8)>,
    /// The folder of the certificates, if the ends speak TLS.
    pub(crate) certificates: Option<PathBuf>,
    /// What an attacker does.
    pub(crate) attack: Option<Attack>,
    /// Number of clients in a load.
    pub(crate) clients: usize,
    /// A thread of the server factors numbers.
    pub(crate) factors: bool,
    /// The SCHED_FIFO priority that a raw client asks for its serving thread; by default its own.
    pub(crate) serving_fifo: Option<u8>,
}

impl Program {
    /// The command that starts an end. `reference` is what a client calls.
    pub(crate) fn command(
        &self,
        role: Role,
        place: Place,
        reference: Option<&str>,
        shape: &Shape,
    ) -> Command {
        let mut command = Command::new(&self.path);
        if self.is_own {
            self.own_arguments(&mut command, (role, place), reference, shape);
        } else {
            self.foreign_arguments(&mut command, (role, place), reference, shape);
        }
        command
    }

    fn own_arguments(
        &self,
        command: &mut Command,
        (role, place): (Role, Place),
        reference: Option<&str>,
        shape: &Shape,
    ) {
        command.args(["laboratory-end", role.word()]);
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.arg(name).arg(value);
            }
        };
        option("--processor", place.processor.map(|it| it.to_string()));
        option("--fifo", place.fifo.map(|it| it.to_string()));
        option("--reference", reference.map(str::to_owned));
        let variant = shape.variant;
        let is_plain = variant == Variant::Plain;
        option("--variant", (!is_plain).then(|| variant.word().to_owned()));
        let folder = shape.certificates.as_ref();
        option("--certificates", folder.map(|it| it.display().to_string()));
        let lanes = shape.lanes.map(|(high, low)| format!("{high},{low}"));
        option("--lanes", lanes);
        let more = |count: usize| (count > 1).then(|| count.to_string());
        match role {
            Role::OrbServer => {
                option("--inserted", self.inserted.words());
                option("--objects", more(shape.objects));
                let file = shape.references.as_ref();
                option("--references", file.map(|it| it.display().to_string()));
            }
            Role::Attacker => option("--attack", shape.attack.map(|it| it.word().to_owned())),
            Role::RawLoad | Role::OrbLoad => option("--clients", more(shape.clients)),
            Role::RawClient => option(
                "--serving-fifo",
                shape.serving_fifo.map(|it| it.to_string()),
            ),
            _ => {}
        }
        if shape.subjects {
            command.arg("--subjects");
        }
        if shape.factors && matches!(role, Role::RawServer | Role::OrbServer) {
            command.arg("--factors");
        }
    }

    /// `server PROCESSOR FIFO OBJECTS|subjects FILE DELAY_NS FACTORS` and `client PROCESSOR FIFO REFERENCE`. `-` stands
    /// for an argument that is not used.
    fn foreign_arguments(
        &self,
        command: &mut Command,
        (role, place): (Role, Place),
        reference: Option<&str>,
        shape: &Shape,
    ) {
        // Only omniORB's ends read them. The transport is no part of the program.
        if let Some((folder, transport)) = shape.certificates.as_ref().zip(ssl_transport()) {
            command.env("DECKWATCH_CERTIFICATES", folder);
            command.env("LD_PRELOAD", transport);
        }
        let or_none = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let is_server = matches!(role, Role::RawServer | Role::OrbServer | Role::Channel);
        command
            .arg(if is_server { "server" } else { "client" })
            .arg(or_none(place.processor.map(|number| number.to_string())))
            .arg(or_none(place.fifo.map(|number| number.to_string())));
        if !is_server {
            command.args(reference);
            return;
        }
        let file = shape.references.as_ref();
        command
            .arg(if shape.subjects {
                "subjects".to_owned()
            } else {
                shape.objects.max(1).to_string()
            })
            .arg(or_none(file.map(|it| it.display().to_string())));
        // An inserted delay must not show in the foreign results of a bench.
        if shape.subjects {
            command
                .arg(self.inserted.delay().as_nanos().to_string())
                .arg(if shape.factors { "factors" } else { "-" });
        }
    }
}
