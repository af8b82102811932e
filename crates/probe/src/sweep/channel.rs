//! The event channels of a carrier: one for each leg of the way, each a process, and a naming service to find them.
//!
//! As in a mission, each is a part at the host of its supplier: a channel at that of the process which sends to it, the
//! naming service at the client's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use deckwatch_carrier::body::BodyPlan;
use deckwatch_carrier::carrier::{ChannelAt, NetworkPriority};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::limits::FAR_COUNTER_MAX;
use deckwatch_carrier::plan::{ChannelPlan, NamesPlan, PartPlan, StreamPlan};
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::talk::{PartCommand, PartEvent, Ready};
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};

use super::end::PATIENCE;
use super::far::FarEnd;
use super::hosts::Site;
use crate::laboratory::LaboratoryError;
use crate::laboratory::process::{End, REFUSED, shown};
use crate::limits::{END_PATIENCE, SWEEP_SIZE_MIN};

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
        sites: &[Site<'_>],
        folder: PathBuf,
    ) -> Result<Self, LaboratoryError> {
        std::fs::create_dir_all(&folder).map_err(|source| LaboratoryError::File {
            path: folder.clone(),
            source,
        })?;
        let Some(&first) = sites.first() else {
            return Err(LaboratoryError::Nothing);
        };
        // A far part starts in its private folder.
        let store = if first.is_far() {
            PathBuf::from(STORE)
        } else {
            folder.join(STORE)
        };
        let names = PartPlan::Names(NamesPlan {
            address: first.address(),
            port: 0,
            store,
            scheduling: Scheduling::default(),
        });
        let mut channels = Self {
            legs: Vec::new(),
            processes: Vec::new(),
            folder,
        };
        let what = format!("The naming service of {carrier}");
        let endpoint = channels.play(what, (program, first), &names)?.endpoint;
        for (leg, &site) in sites.iter().enumerate() {
            let channel = ChannelAt {
                names: endpoint.clone(),
                name: format!("deckwatch/sweep-{leg}"),
            };
            channels.legs.push(channel.clone());
            let plan = PartPlan::Channel(ChannelPlan {
                stream: stream(carrier),
                address: site.address(),
                channel,
                queue_len: None,
                network_priority,
                scheduling: Scheduling::default(),
            });
            channels.play(format!("A channel of {carrier}"), (program, site), &plan)?;
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
                Ok(PartEvent::Progress(counts)) => {
                    let of_kinds = [counts.overflows, counts.send_errors];
                    if of_kinds.iter().any(|count| *count > FAR_COUNTER_MAX) {
                        return Err(channel.failed("its counts are impossible"));
                    }
                    drops += of_kinds.iter().sum::<u64>();
                }
                _ => return Err(channel.failed(&format!("it answered '{}'", shown(&line)))),
            }
        }
        Ok(Some(drops))
    }

    /// How one of the processes has died, if one has.
    pub(super) fn died(&mut self) -> Option<LaboratoryError> {
        self.processes.iter_mut().find_map(End::died)
    }

    pub(super) fn processes(&self) -> &[End] {
        &self.processes
    }

    fn play(
        &mut self,
        what: String,
        (program, site): (&Path, Site<'_>),
        plan: &PartPlan,
    ) -> Result<Ready, LaboratoryError> {
        let mut near = Command::new(program);
        near.arg("part");
        let command = site.command(near, FarEnd::part)?;
        let mut end = End::start(what + &site.suffix(), command)?;
        if site.is_far() {
            end.expect_beats();
        }
        end.send_line(&serde_json::to_string(plan).unwrap_or_default())?;
        let Some(line) = end.receive_line(END_PATIENCE)? else {
            let signal = deckwatch_os::signal::ending().unwrap_or("a signal");
            return Err(LaboratoryError::Interrupted(signal));
        };
        let ready = match serde_json::from_str(&line) {
            Ok(PartEvent::Ready(ready)) => ready,
            Ok(PartEvent::Error { text }) => return Err(end.failed(&shown(&text))),
            _ => {
                return Err(end.failed(&match line.strip_prefix(REFUSED) {
                    Some(reason) => shown(reason),
                    None => format!("its first line is '{}'", shown(&line)),
                }));
            }
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

/// The file of the naming service's store.
const STORE: &str = "names";

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
