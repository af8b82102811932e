//! The far end of exchanges that relate the clocks, started through the pipe.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::Child;
use std::sync::mpsc::sync_channel;

use deckwatch_carrier::plan::{ClockPlan, PartPlan};
use deckwatch_carrier::talk::PartEvent;
use deckwatch_os::namespace::kill_process_group;

use super::probe::{check_build, first_octets};
use super::{Reach, ReachError, plain_text};
use crate::limits::{
    FAR_LINE_SIZE_MAX, HELLO_PATIENCE, LAST_WORDS_SIZE_MAX, LINES_BEFORE_HELLO_MAX,
};

/// A responder on a far host. It ends when this is dropped.
#[derive(Debug)]
pub struct FarClock {
    process: Child,
    /// Where it answers.
    pub endpoint: SocketAddr,
}

impl FarClock {
    /// Starts a responder at an address of a far host. The kernel there chooses the port.
    ///
    /// # Errors
    /// [`ReachError`]
    pub fn start(reach: &Reach, address: IpAddr, build: &str) -> Result<Self, ReachError> {
        let host = reach.in_words();
        check_build(&host, reach, build)?;
        let cannot = |error: std::io::Error| ReachError::NoCommand {
            host: host.clone(),
            command: reach.in_words(),
            reason: error.to_string(),
        };
        let words = [reach.program(), "part"];
        let mut command = reach.command(&words).map_err(cannot)?;
        let mut process = command.spawn().map_err(cannot)?;
        let plan = PartPlan::Clock(ClockPlan {
            address,
            peers: Vec::new(),
        });
        let line = serde_json::to_string(&plan).map_err(|error| cannot(error.into()))?;
        if let Some(input) = &mut process.stdin {
            // A process that has died is noticed by the end of its output.
            let _ = writeln!(input, "{line}");
        }
        let (tell, told) = sync_channel(1);
        let output = process.stdout.take();
        let complaints = process.stderr.take();
        // These threads end with the process.
        std::thread::spawn(move || {
            let _ = tell.send(output.and_then(first_event));
        });
        let complaints = std::thread::spawn(move || first_octets(complaints, LAST_WORDS_SIZE_MAX));
        let event = told.recv_timeout(HELLO_PATIENCE);
        let endpoint = match &event {
            Ok(Some(PartEvent::Ready(ready))) => ready.endpoint.parse().ok(),
            _ => None,
        };
        if let Some(endpoint) = endpoint {
            return Ok(Self { process, endpoint });
        }
        end(&mut process);
        let how = match event {
            Err(_) => format!("it said nothing for {} s", HELLO_PATIENCE.as_secs()),
            Ok(Some(PartEvent::Error { text })) => text,
            Ok(_) => {
                let said = complaints.join().unwrap_or_default();
                String::from_utf8_lossy(&said).trim().to_owned()
            }
        };
        Err(ReachError::NoClock {
            host,
            how: plain_text(how.trim_end_matches('.')),
        })
    }
}

impl Drop for FarClock {
    fn drop(&mut self) {
        // Its end of the pipe closes, and so it ends there too.
        drop(self.process.stdin.take());
        end(&mut self.process);
    }
}

/// Errors are ignored: it may have ended just now.
fn end(process: &mut Child) {
    let _ = kill_process_group(process.id());
    let _ = process.wait();
}

/// Reads up to the first event; before it, login scripts may write.
fn first_event(output: std::process::ChildStdout) -> Option<PartEvent> {
    let mut output = BufReader::new(output);
    for _ in 0..LINES_BEFORE_HELLO_MAX {
        let mut line = Vec::new();
        let most = FAR_LINE_SIZE_MAX as u64;
        let read = (&mut output).take(most).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return None;
        }
        if let Ok(event) = serde_json::from_slice(&line) {
            return Some(event);
        }
    }
    None
}
