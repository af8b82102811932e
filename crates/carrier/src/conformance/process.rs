//! A part as a process of its own.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use deckwatch_os::namespace::{GroupSignal, Placement, signal_process_group};

use super::PATIENCE;
use crate::plan::PartPlan;
use crate::talk::{PartCommand, PartEvent, Ready};

/// How a part is started: a program that reads a plan in the first line of its input, such as `deckwatch part`.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables for its environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Where an end of a stream runs.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The address of its host.
    pub address: IpAddr,
    /// Its namespace and processors, in a process group of its own.
    pub placement: Placement,
}

impl Default for Spot {
    /// Loopback.
    fn default() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            placement: Placement {
                own_group: true,
                dies_with_parent: true,
                ..Placement::default()
            },
        }
    }
}

/// A part that runs. It is killed when this is dropped.
pub(super) struct Part {
    label: String,
    child: Child,
    input: ChildStdin,
    events: Receiver<PartEvent>,
    program: Option<u32>,
}

impl Part {
    pub(super) fn start(
        launcher: &Launcher,
        placement: &Placement,
        label: &str,
        plan: &PartPlan,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("The {label} cannot be started ({error}).");
        let mut command = Command::new(&launcher.program);
        command
            .args(&launcher.arguments)
            .envs(launcher.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        placement.apply(&mut command).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut input, output) =
            pipes.ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        let line = serde_json::to_string(plan).map_err(|error| failed(error.into()))?;
        writeln!(input, "{line}").map_err(failed)?;
        let (tell, events) = sync_channel(16);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Another line is the greeting of the launcher.
                let event = serde_json::from_str(&line);
                if event.is_ok_and(|event| tell.send(event).is_err()) {
                    return;
                }
            }
        });
        Ok(Self {
            label: label.to_owned(),
            child,
            input,
            events,
            program: None,
        })
    }

    /// Waits for an event that `is` accepts.
    fn wait<T>(
        &mut self,
        what: &str,
        mut is: impl FnMut(PartEvent) -> Option<T>,
    ) -> Result<T, String> {
        let until = Instant::now() + PATIENCE;
        let label = &self.label;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(PartEvent::Error { text }) => return Err(format!("The {label} failed: {text}")),
                Ok(event) => {
                    if let Some(found) = is(event) {
                        return Ok(found);
                    }
                }
                Err(_) => {
                    let seconds = PATIENCE.as_secs();
                    return Err(format!(
                        "The {label} ended, or did not write `{what}` within {seconds} s."
                    ));
                }
            }
        }
    }

    pub(super) fn ready(&mut self) -> Result<Ready, String> {
        let ready = self.wait("ready", |event| match event {
            PartEvent::Ready(ready) => Some(ready),
            _ => None,
        })?;
        self.program = ready.program;
        Ok(ready)
    }

    pub(super) fn done(&mut self) -> Result<(), String> {
        self.wait("done", |event| {
            matches!(event, PartEvent::Done(_)).then_some(())
        })
    }

    pub(super) fn tell(&mut self, command: PartCommand) {
        // A part that has died shows that by the end of its output.
        let _ = writeln!(self.input, "{command}");
    }

    /// Sends a signal to the process that moves the messages: the program of an external carrier, or the part.
    pub(super) fn signal(&self, signal: GroupSignal) -> Result<(), String> {
        let process = self.program.unwrap_or(self.child.id());
        signal_process_group(process, signal)
            .map_err(|error| format!("The {} cannot be signalled ({error}).", self.label))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(program) = self.program {
            // It may be stopped, and the part would wait for it. Fails if it has ended.
            let _ = signal_process_group(program, GroupSignal::Kill);
        }
        // Both fail if it has ended.
        let _ = signal_process_group(self.child.id(), GroupSignal::Kill);
        let _ = self.child.wait();
    }
}
