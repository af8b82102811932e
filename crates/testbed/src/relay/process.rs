//! The process of a relay: how a testbed starts it, and what it does.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use deckwatch_os::namespace::{Namespace, Placement};

use super::driver::{Driver, RelayPlan};
use crate::TestbedError;
use crate::limits::{RELAY_LINES_MAX, RELAY_PLAN_BYTES_MAX};

/// The program that carries the frames of a relay: one that calls [`serve`]. The default is the calling program with the
/// argument `relay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayProgram {
    /// The program's file.
    pub path: PathBuf,
    /// Its arguments.
    pub words: Vec<OsString>,
    /// Added to its environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl RelayProgram {
    /// Returns a program that is called with the argument `relay`, as `deckwatch` is.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            words: vec!["relay".into()],
            environment: Vec::new(),
        }
    }

    /// Returns the calling program.
    ///
    /// # Errors
    /// [`TestbedError::System`] when its file is not known.
    pub fn this() -> Result<Self, TestbedError> {
        let path = std::env::current_exe()
            .map_err(TestbedError::system("Asking for the program's own path"))?;
        Ok(Self::at(path))
    }
}

/// A relay that runs. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RelayProcess {
    child: Child,
    /// Closed by the end of this process, whatever ends it.
    input: Option<ChildStdin>,
}

impl RelayProcess {
    /// Starts the relay in the switch's namespace. When this returns, it carries frames.
    pub(crate) fn start(
        program: &RelayProgram,
        switch: &Namespace,
        plan: &RelayPlan,
    ) -> Result<Self, TestbedError> {
        let starting = || TestbedError::system("Starting the relay of the switch");
        let mut command = Command::new(&program.path);
        command
            .args(&program.words)
            .envs(program.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if !plan.ends_with_input {
            // A kept relay outlives its maker. A pipe that it inherits would never end for the pipe's reader.
            command.stderr(Stdio::null());
        }
        let placement = Placement {
            namespace: Some(switch.clone()),
            own_group: true,
            ..Placement::default()
        };
        placement.apply(&mut command).map_err(starting())?;
        let mut child = command.spawn().map_err(starting())?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let mut process = Self { child, input };
        let mut line = serde_json::to_vec(plan).map_err(|error| starting()(error.into()))?;
        line.push(b'\n');
        if let Some(input) = &mut process.input {
            input.write_all(&line).map_err(starting())?;
        }
        let lines = BufReader::new(
            output
                .into_iter()
                .next()
                .ok_or(std::io::ErrorKind::BrokenPipe)
                .map_err(|kind| starting()(kind.into()))?,
        )
        .lines();
        for line in lines.take(RELAY_LINES_MAX) {
            let line = line.map_err(starting())?;
            if line == READY {
                return Ok(process);
            }
            if let Some(fact) = line.strip_prefix(FAILED) {
                return Err(starting()(std::io::Error::other(fact.to_owned())));
            }
        }
        let silent = std::io::Error::other("it ended, or is a program that has no relay");
        Err(starting()(silent))
    }

    /// Lets the relay live on without its owner; it ends with its namespace.
    pub(crate) fn keep(mut self) {
        // The pipe stays open until this process ends; a kept relay does not watch it.
        self.input.take();
        self.child.stdin.take();
        std::mem::forget(self);
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Carries frames as the process of a relay: reads its plan from standard input, and ends with it.
///
/// # Errors
/// [`TestbedError::System`] for what the kernel refuses.
pub fn serve() -> Result<(), TestbedError> {
    let failed = || TestbedError::system("Carrying frames");
    let mut line = Vec::new();
    let input = std::io::stdin();
    // Octet by octet: what comes after the line is the end.
    let mut limited = input.lock().take(RELAY_PLAN_BYTES_MAX);
    limited.read_until(b'\n', &mut line).map_err(failed())?;
    drop(limited);
    let opened = serde_json::from_slice::<RelayPlan>(&line)
        .map_err(std::io::Error::from)
        .and_then(|plan| Ok((Driver::open(&plan)?, plan.ends_with_input)));
    let mut output = std::io::stdout().lock();
    match opened {
        Ok((mut driver, ends_with_input)) => {
            // On a line of its own, after what the program may have printed.
            writeln!(output, "\n{READY}")
                .and_then(|()| output.flush())
                .map_err(failed())?;
            drop(output);
            let input = ends_with_input.then(|| input.as_fd());
            driver.run(input).map_err(failed())
        }
        Err(error) => {
            writeln!(output, "\n{FAILED}{error}")
                .and_then(|()| output.flush())
                .map_err(failed())?;
            Err(failed()(error))
        }
    }
}

const READY: &str = "The relay carries frames.";
const FAILED: &str = "The relay failed: ";
