//! The event channels of a carrier: one for each leg of the way, each a process, and a naming service to find them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deckwatch_carrier::body::BodyPlan;
use deckwatch_carrier::carrier::{ChannelAt, NetworkPriority};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::plan::{ChannelPlan, NamesPlan, PartPlan, StreamPlan};
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::talk::{PartCommand, PartEvent, Ready};
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_testbed::Host;

use super::end::PATIENCE;
use crate::laboratory::LaboratoryError;
use crate::laboratory::process::End;
use crate::limits::{END_PATIENCE, SWEEP_SIZE_MIN};

/// The address of an end, and its emulated host.
type At<'h> = (IpAddr, Option<&'h Host>);

/// The channels of a carrier.
pub(super) struct Channels {
    /// Of each process to the next one; of the last to the first.
    pub(super) legs: Vec<ChannelAt>,
    /// The processes, which end before the folder is removed.
    processes: Vec<End>,
    /// The folder of the naming service's store.
    folder: PathBuf,
}

impl Channels {
    /// Starts the processes. `folder` is made, and removed afterwards.
    pub(super) fn start(
        program: &Path,
        (carrier, network_priority): (CarrierRef, NetworkPriority),
        sides: &[At<'_>],
        folder: PathBuf,
    ) -> Result<Self, LaboratoryError> {
        std::fs::create_dir_all(&folder).map_err(|source| LaboratoryError::File {
            path: folder.clone(),
            source,
        })?;
        let Some(&(first, first_host)) = sides.first() else {
            return Err(LaboratoryError::Nothing);
        };
        let names = PartPlan::Names(NamesPlan {
            address: first,
            port: 0,
            store: folder.join("names"),
            scheduling: Scheduling::default(),
        });
        let mut channels = Self {
            legs: Vec::new(),
            processes: Vec::new(),
            folder,
        };
        let what = format!("The naming service of {carrier}");
        let endpoint = channels.play(what, (program, first_host), &names)?.endpoint;
        for (leg, &(address, host)) in sides.iter().enumerate() {
            let channel = ChannelAt {
                names: endpoint.clone(),
                name: format!("deckwatch/sweep-{leg}"),
            };
            channels.legs.push(channel.clone());
            let plan = PartPlan::Channel(ChannelPlan {
                stream: stream(carrier),
                address,
                channel,
                queue_len: None,
                network_priority,
                scheduling: Scheduling::default(),
            });
            channels.play(format!("A channel of {carrier}"), (program, host), &plan)?;
        }
        Ok(channels)
    }

    /// Events that the channels have dropped, or whose push has failed. Returns `None` if the user wants to end.
    pub(super) fn drops(&mut self) -> Result<Option<u64>, LaboratoryError> {
        let mut drops = 0;
        // The first process is the naming service.
        for channel in self.processes.iter_mut().skip(1) {
            channel.send_line(&PartCommand::Count.to_string())?;
            let Some(line) = channel.receive_line(END_PATIENCE)? else {
                return Ok(None);
            };
            match serde_json::from_str(&line) {
                Ok(PartEvent::Progress(counts)) => drops += counts.overflows + counts.send_errors,
                _ => return Err(channel.failed(&format!("it answered '{line}'"))),
            }
        }
        Ok(Some(drops))
    }

    fn play(
        &mut self,
        what: String,
        (program, host): (&Path, Option<&Host>),
        plan: &PartPlan,
    ) -> Result<Ready, LaboratoryError> {
        let mut command = Command::new(program);
        command.arg("part");
        if let Some(host) = host {
            host.place(&mut command)?;
        }
        let mut end = End::start(what, command)?;
        end.send_line(&serde_json::to_string(plan).unwrap_or_default())?;
        let Some(line) = end.receive_line(END_PATIENCE)? else {
            let signal = deckwatch_os::signal::ending().unwrap_or("a signal");
            return Err(LaboratoryError::Interrupted(signal));
        };
        let ready = match serde_json::from_str(&line) {
            Ok(PartEvent::Ready(ready)) => ready,
            Ok(PartEvent::Error { text }) => return Err(end.failed(&text)),
            _ => return Err(end.failed(&format!("its first line is '{line}'"))),
        };
        self.processes.push(end);
        Ok(ready)
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(End::close_input);
        self.processes.clear();
        // An error is ignored: what remains is a small file among the results.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The stream of a channel's plan. A channel reads its carrier and its deadline alone.
fn stream(carrier: CarrierRef) -> StreamPlan {
    StreamPlan {
        flow: 0,
        name: "sweep".to_owned(),
        carrier,
        body: BodyPlan::Octets {
            size_bytes: SWEEP_SIZE_MIN,
        },
        schedule: Schedule {
            start_ns: 0,
            offset: Duration::ZERO,
            arrivals: Arrivals::Periodic {
                period: Duration::from_secs(1),
            },
            extent: Extent::Count { messages: 1 },
            warm_up: 0,
        },
        deadline: PATIENCE,
    }
}
