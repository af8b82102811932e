//! How the ends of a bench are started.

use std::path::PathBuf;
use std::process::Command;

use super::end::Role;
use super::mirror::Inserted;
use super::variant::Variant;

/// Where an end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) processor: Option<u32>,
    pub(crate) fifo: Option<u8>,
}

impl Place {
    /// The same processor at another priority, where it is real-time at all.
    pub(crate) fn at(self, fifo: u8) -> Self {
        let fifo = self.fifo.map(|_| fifo);
        Self { fifo, ..self }
    }
}

/// How an end is started.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// This program in a hidden role.
    Own { path: PathBuf, inserted: Inserted },
    /// A foreign one: `PATH server PROCESSOR FIFO OBJECTS FILE` and `PATH client PROCESSOR FIFO REFERENCE`, with `-` for what is not wanted.
    Foreign { path: PathBuf },
}

/// What else an end is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    /// Objects that a server activates, beyond one.
    pub(crate) objects: usize,
    /// Where it writes their references.
    pub(crate) references: Option<PathBuf>,
    /// How our ends wait, and over what they talk.
    pub(crate) variant: Variant,
    /// Our server has a lane of its own for the high priority, and our callers say theirs.
    pub(crate) lanes: bool,
    /// Clients of a load.
    pub(crate) clients: usize,
}

impl Program {
    /// The command that starts it in `role`.
    pub(crate) fn command(
        &self,
        role: Role,
        place: Place,
        reference: Option<&str>,
        shape: &Shape,
    ) -> Command {
        match self {
            Self::Own { path, inserted } => {
                let mut command = Command::new(path);
                command.args(["bench", "end", role.word()]);
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
                let more = |count: usize| (count > 1).then(|| count.to_string());
                match role {
                    Role::OrbServer => {
                        option("--inserted", inserted.words());
                        option("--objects", more(shape.objects));
                        let file = shape.references.as_ref();
                        option("--references", file.map(|it| it.display().to_string()));
                    }
                    Role::RawLoad | Role::OrbLoad => option("--clients", more(shape.clients)),
                    _ => {}
                }
                if shape.lanes {
                    command.arg("--lanes");
                }
                command
            }
            Self::Foreign { path } => {
                let or_none = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
                let mut command = Command::new(path);
                let is_server = matches!(role, Role::RawServer | Role::OrbServer);
                command
                    .arg(if is_server { "server" } else { "client" })
                    .arg(or_none(place.processor.map(|number| number.to_string())))
                    .arg(or_none(place.fifo.map(|number| number.to_string())));
                if is_server {
                    let file = shape.references.as_ref();
                    command
                        .arg(shape.objects.max(1).to_string())
                        .arg(or_none(file.map(|it| it.display().to_string())));
                } else {
                    command.args(reference);
                }
                command
            }
        }
    }
}
