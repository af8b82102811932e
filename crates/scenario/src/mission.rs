//! Mission files: reads them, validates them against the published schema, cross-checks them, and makes a [`Mission`].

mod checks;
mod emulation;
mod entry;
pub(crate) mod fault;
mod file;
mod given;
pub(crate) mod listed;
pub(crate) mod schema;
pub(crate) mod shape;
mod text;
mod types;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_carrier::body::BodyPlan;
use deckwatch_carrier::carrier::NetworkPriority;
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::plan::{History, Reliability};
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_load::{Pace, Pattern, Protocol, StressPlan};
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_meter::pacing::{Arrivals, Extent};
use deckwatch_meter::result::{LateBudget, LeftOut, Published};
use deckwatch_testbed::NetworkSpec;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use emulation::{EmulationChoice, choose};
pub use fault::{Fault, Faults};
pub use schema::schema;
pub use text::{BudgetText, DurationText, NotUnderstood};

use crate::limits::MISSION_SIZE_MAX;
use crate::reach::Reach;

/// A mission that can be run. Every name is resolved and every value is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Mission {
    /// Its name.
    pub name: String,
    /// Its description; that of the chosen variant, if it has one.
    pub description: Option<String>,
    /// Name of the chosen variant.
    pub variant: Option<String>,
    /// Names of all variants in the file.
    pub variants: Vec<String>,
    /// The mission file.
    pub path: PathBuf,
    /// Text of the mission file.
    pub text: Arc<str>,
    /// What a paper printed of the experiment that the mission repeats.
    pub published: Option<Published>,
    /// The network between the hosts.
    pub network: NetworkSpec,
    /// Whether what carries its frames is chosen by the mission ([`choose`]).
    pub auto_emulation: bool,
    /// The hosts, in the file's order.
    pub hosts: Vec<Host>,
    /// The loads that keep the hosts and their links busy.
    pub loads: Vec<Load>,
    /// The flows, in the file's order.
    pub flows: Vec<Flow>,
    /// With `--carriers all`: the carriers that are left out. A carrier is left out too if its program does not start.
    pub left_out: Option<Vec<LeftOut>>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub location: Location,
    /// Processors of its machine that the host uses; empty for all.
    pub processors: Vec<u32>,
    /// Its entry in the file, for remedies.
    pub entry: HostEntry,
}

/// Where a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// On this machine, in a network namespace on an emulated network; on loopback where that is not permitted.
    #[default]
    Emulated,
    /// This machine, on its own network.
    Here {
        /// The address of this machine at which the other hosts send to it.
        address: IpAddr,
    },
    /// Another machine, or a container.
    Far(Reach),
}

/// A load on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Index of the host in [`Mission::hosts`].
    pub host: usize,
    /// What keeps it busy.
    pub work: LoadWork,
    /// A run in which it misses its target is INVALID.
    pub must_hold: bool,
}

/// What a load does.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadWork {
    /// Processes that count and sleep in turns.
    Loops {
        /// Number of processes.
        processes: u32,
        /// The number to which each process counts before it sleeps.
        count: u64,
        /// Duration of one sleep.
        sleep: Duration,
    },
    /// A share of each of the host's processors.
    Share {
        /// What everything there is to take.
        share: f64,
        /// Priority of SCHED_FIFO; `None` for time sharing.
        fifo_priority: Option<u8>,
    },
    /// Messages to another host.
    Net {
        /// Index of the host that takes them.
        to: usize,
        /// The messages.
        messages: Messages,
    },
    /// Memory or a disk.
    Stress(StressPlan),
}

/// The messages of a load on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// How they are carried.
    pub protocol: Protocol,
    /// Octets of one.
    pub size_octets: u32,
    /// How many.
    pub pace: Pace,
    /// When they are due.
    pub pattern: Pattern,
}

impl Load {
    /// Returns the number of its processes.
    #[must_use]
    pub const fn processes(&self) -> u32 {
        match self.work {
            LoadWork::Loops { processes, .. } => processes,
            LoadWork::Share { .. } | LoadWork::Stress(_) => 1,
            // A source and a sink.
            LoadWork::Net { .. } => 2,
        }
    }
}

/// A flow of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The body of its messages.
    pub body: BodyPlan,
    /// The largest sequence number that the message's type can carry; `None` for plain octets.
    pub sequence_max: Option<u64>,
    /// Index of the supplier's host in [`Mission::hosts`].
    pub from: usize,
    /// Indices of the consumers' hosts, in the file's order.
    pub to: Vec<usize>,
    /// Its carriers, in the order of their schedules' offsets: one, or those of `--carriers`.
    pub carriers: Vec<CarrierRef>,
    /// The arrival process, which decides when messages are due.
    pub arrivals: Arrivals,
    /// Length of the judged part.
    pub extent: Extent,
    /// Number of warm-up messages, before the judged part.
    pub warm_up: u64,
    /// Deadline, counted from the time when a message is due.
    pub deadline: Duration,
    /// Its late budget.
    pub budget: LateBudget,
    /// Late messages in the largest burst for which the verdict must hold, if the file gives it, as `clusters` or as
    /// `stall`.
    pub clusters: Option<u64>,
    /// CORBA priority, if one was given.
    pub priority: Option<u16>,
    /// Scheduling of the supplier (and of an event channel, which runs on the supplier's host).
    pub supplier_scheduling: Scheduling,
    /// Scheduling of the consumer at each destination.
    pub consumer_scheduling: Vec<Scheduling>,
    /// Its file gives its scheduling and processors, instead of its hosts.
    pub has_own: OwnKeys,
    /// Priority of its packets.
    pub network_priority: NetworkPriority,
    /// Requested size of the receive buffer, in octets.
    pub receive_buffer_bytes: Option<u32>,
    /// Maximum number of events that an event channel queues for one consumer.
    pub channel_queue_len: Option<u32>,
    /// What the middleware of an external carrier does about lost messages, if the file says it.
    pub reliability: Option<Reliability>,
    /// The messages that it keeps for a slow consumer, if the file says it.
    pub history: Option<History>,
    /// Processor time that the consumer spends on each message.
    pub handle_for: Duration,
    /// The declared worst case of that time, if the file gives one.
    pub worst_case: Option<Duration>,
}

/// Keys of a flow that stand for those of its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnKeys {
    /// `scheduling`.
    pub scheduling: bool,
    /// `processors`.
    pub processors: bool,
}

impl Flow {
    /// Returns the member that carries the sequence number; empty for plain octets.
    #[must_use]
    pub fn sequence_member(&self) -> &str {
        match &self.body {
            BodyPlan::Octets { .. } => "",
            BodyPlan::Typed {
                sequence_member, ..
            } => sequence_member,
        }
    }

    /// Returns the largest burst of late messages for which the verdict must hold, as far as the file decides it. A
    /// disturbance of the run can make it longer.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.clusters
            .unwrap_or_else(|| self.arrivals.messages_within(self.deadline))
    }

    /// Returns the name of the IDL type, or `octets`.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match &self.body {
            BodyPlan::Octets { .. } => "octets",
            BodyPlan::Typed { type_name, .. } => type_name,
        }
    }
}

/// Values of the command line, which replace those of a mission file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Another network.
    pub network: Option<NetworkSpec>,
    /// Other means to carry the frames of the network.
    pub emulation: Option<EmulationChoice>,
    /// Other carriers, for all flows.
    pub carriers: Option<Vec<CarrierRef>>,
    /// The carriers that are left out of `carriers`, if the run may leave out others.
    pub left_out: Option<Vec<LeftOut>>,
    /// Another length of the judged part, for all flows.
    pub extent: Option<Extent>,
    /// Seed of the first Poisson flow; each further flow has the next.
    pub seed: Option<u64>,
}

/// The reason why a mission cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("The file {} cannot be read ({error}). Give the path of a TOML file.", path.display())]
    Unreadable {
        /// The mission file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is longer than any mission.
    #[error("The file {} is larger than {} MiB; it is something else.", path.display(), MISSION_SIZE_MAX >> 20)]
    TooLarge {
        /// The mission file.
        path: PathBuf,
    },
    /// Its text has faults.
    #[error("{0}")]
    Malformed(Box<Faults>),
    /// It has no variant of that name.
    #[error("{} has no variant `{wanted}`; {known}.", path.display())]
    NoSuchVariant {
        /// The mission file.
        path: PathBuf,
        /// The variant asked for.
        wanted: String,
        /// The names of its variants, in words.
        known: String,
    },
}

impl Mission {
    /// Reads a mission file and the IDL files that it names.
    ///
    /// # Errors
    /// [`LoadError`], with all faults of the file that one reading finds.
    pub fn load(path: &Path, variant: Option<&str>) -> Result<Self, LoadError> {
        Self::load_over(path, variant, None)
    }

    /// As [`Self::load`], for a run over other carriers than the file's: with one of them here, no flow needs its own.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_over(
        path: &Path,
        variant: Option<&str>,
        carrier: Option<CarrierRef>,
    ) -> Result<Self, LoadError> {
        let types = &mut types::TypesInFiles::default();
        Self::resolve(path, read(path)?, (variant, carrier), types)
    }

    /// Reads the text of a mission file. IDL files are not opened.
    ///
    /// # Errors
    /// [`LoadError`], with all faults of the text that one reading finds.
    pub fn parse(path: &Path, text: &str, variant: Option<&str>) -> Result<Self, LoadError> {
        Self::resolve(path, text.into(), (variant, None), &mut checks::TypesUnseen)
    }

    fn resolve(
        path: &Path,
        text: Arc<str>,
        (variant, carrier): (Option<&str>, Option<CarrierRef>),
        types: &mut dyn checks::Types,
    ) -> Result<Self, LoadError> {
        let mut faults = Faults::new(path, text.clone());
        let malformed = |faults| LoadError::Malformed(Box::new(faults));
        let schema = match carrier {
            Some(_) => given::schema_without_carrier(),
            None => schema::schema(),
        };
        let mut table =
            shaped_table(&text, schema, "the mission", &mut faults).map_err(malformed)?;
        let hosts_vary = a_variant_replaces(&table, "hosts");
        let variants =
            choose_variant(&mut table, variant).map_err(|known| LoadError::NoSuchVariant {
                path: path.to_owned(),
                wanted: variant.unwrap_or_default().to_owned(),
                known,
            })?;
        if let Some(carrier) = &carrier {
            given::give_carrier(&mut table, carrier.name());
        }
        let network = table.get_ref().get("network").map(Spanned::span);
        let file = match file::MissionFile::deserialize(toml::de::Deserializer::from(table)) {
            Ok(file) => file,
            Err(error) => {
                let place = error.span().unwrap_or(0..0);
                faults.report(place, error.message(), "see what `deckwatch schema` prints");
                faults.finish().map_err(malformed)?;
                unreachable!("a fault has just been reported");
            }
        };
        let mission = checks::mission(&file, path, &mut faults, types);
        // With other hosts, the same file may emulate some.
        if let Some(place) = network.filter(|_| !hosts_vary && !mission.emulates()) {
            faults.report(
                place,
                "no host is emulated, so that this network joins none",
                "remove `network`, or remove `reach` and `address` of the hosts that shall be emulated",
            );
        }
        faults.finish().map_err(malformed)?;
        let mut mission = Self {
            variant: variant.map(str::to_owned),
            variants,
            text,
            ..mission
        };
        mission.settle_emulation();
        Ok(mission)
    }

    /// Returns its name, with that of the chosen variant.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}, {variant}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether all hosts are emulated, on an emulated network: the run reaches no other machine.
    #[must_use]
    pub fn stays_here(&self) -> bool {
        let emulated = |host: &Host| host.location == Location::Emulated;
        self.hosts.iter().all(emulated) && !self.is_on_loopback()
    }

    /// Whether the mission asks for no emulated network.
    #[must_use]
    pub fn is_on_loopback(&self) -> bool {
        self.network.rate_bits_per_s.is_none()
    }

    /// Whether any host is emulated.
    #[must_use]
    pub fn emulates(&self) -> bool {
        let is_emulated = |host: &Host| host.location == Location::Emulated;
        self.hosts.iter().any(is_emulated)
    }

    /// Returns the hosts that are other machines, with how each is reached.
    pub fn far_hosts(&self) -> impl Iterator<Item = (&Host, &Reach)> {
        self.hosts.iter().filter_map(|host| match &host.location {
            Location::Far(reach) => Some((host, reach)),
            Location::Emulated | Location::Here { .. } => None,
        })
    }

    /// Leaves out a carrier whose program did not start. Returns false if it may not be left out, or no flow would have a
    /// carrier.
    pub(crate) fn leave_out(&mut self, carrier: CarrierRef, reason: String) -> bool {
        let is_other = |other: &CarrierRef| *other != carrier;
        let has_others = |flow: &Flow| flow.carriers.iter().any(is_other);
        let Some(left_out) = &mut self.left_out else {
            return false;
        };
        if !self.flows.iter().all(has_others) {
            return false;
        }
        left_out.push(LeftOut {
            carrier: carrier.name().to_owned(),
            reason,
        });
        for flow in &mut self.flows {
            flow.carriers.retain(is_other);
        }
        true
    }

    /// Returns the mission with the given overrides.
    #[must_use]
    pub fn with(mut self, overrides: &Overrides) -> Self {
        if let Some(network) = &overrides.network {
            self.network.clone_from(network);
        }
        self.auto_emulation = match overrides.emulation {
            Some(choice) => choice == EmulationChoice::Auto,
            None => self.auto_emulation,
        };
        // Only a relay carries the frames of a layout.
        if let (Some(EmulationChoice::Named(emulation)), None) =
            (overrides.emulation, &self.network.layout)
        {
            self.network.emulation = emulation;
        }
        self.left_out.clone_from(&overrides.left_out);
        for (flow, index) in self.flows.iter_mut().zip(0..) {
            if let Some(carriers) = &overrides.carriers {
                flow.carriers.clone_from(carriers);
            }
            if let Some(extent) = overrides.extent {
                flow.extent = extent;
            }
            if let (Some(first), Arrivals::Poisson { seed, .. }) =
                (overrides.seed, &mut flow.arrivals)
            {
                *seed = first.wrapping_add(index);
            }
        }
        self.settle_emulation();
        self
    }

    /// Chooses what carries the frames, if that is left open.
    fn settle_emulation(&mut self) {
        if self.auto_emulation {
            (self.network.emulation, _) = choose(self);
        }
    }
}

/// Returns true if any variant of the file sets this key.
fn a_variant_replaces(table: &Spanned<DeTable<'_>>, key: &str) -> bool {
    let Some(DeValue::Table(variants)) = table.get_ref().get("variants").map(Spanned::get_ref)
    else {
        return false;
    };
    variants.values().any(|variant| match variant.get_ref() {
        DeValue::Table(variant) => variant.contains_key(key),
        _ => false,
    })
}

/// Replaces keys of the file by those of the chosen variant, and removes the variants. Returns their names, or the
/// fault if there is no such variant.
fn choose_variant(
    table: &mut Spanned<DeTable<'_>>,
    wanted: Option<&str>,
) -> Result<Vec<String>, String> {
    let table = table.get_mut();
    let Some(DeValue::Table(mut variants)) = table.remove("variants").map(Spanned::into_inner)
    else {
        return match wanted {
            Some(_) => Err("it has no variants at all".to_owned()),
            None => Ok(Vec::new()),
        };
    };
    let names: Vec<String> = variants
        .keys()
        .map(|name| name.get_ref().to_string())
        .collect();
    let Some(wanted) = wanted else {
        return Ok(names);
    };
    match variants.remove(wanted).map(Spanned::into_inner) {
        Some(DeValue::Table(variant)) => {
            for (key, value) in variant {
                table.remove(key.get_ref().as_ref());
                table.insert(key, value);
            }
            Ok(names)
        }
        _ => Err(format!("it has {}", shape::list(&names))),
    }
}

/// Parses TOML, and validates it against a schema. `what` names the file to the user.
pub(crate) fn shaped_table<'t>(
    text: &'t str,
    schema: &serde_json::Value,
    what: &str,
    faults: &mut Faults,
) -> Result<Spanned<DeTable<'t>>, Faults> {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map(|place| place.start));
    // Only the first error of a line is reported: the others are mostly its consequences.
    let mut line_end = 0;
    for error in errors {
        let place = error.span().unwrap_or(0..0);
        if place.start >= line_end {
            let after = text.get(place.start..).and_then(|rest| rest.find('\n'));
            line_end = after.map_or(text.len(), |length| place.start + length + 1);
            let fact = format!("this is not TOML: {}", error.message());
            faults.report(place, fact, TOML_HELP);
        }
    }
    faults.finish()?;
    shape::check(schema, &table, what, faults);
    faults.finish()?;
    Ok(table)
}

pub(crate) fn read(path: &Path) -> Result<Arc<str>, LoadError> {
    let read = deckwatch_os::regular::read_text(path, MISSION_SIZE_MAX);
    let text = read.map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => LoadError::TooLarge {
            path: path.to_owned(),
        },
        _ => LoadError::Unreadable {
            path: path.to_owned(),
            error,
        },
    })?;
    Ok(text.into())
}

/// The name of the network of real hosts.
pub(crate) const REAL_NETWORK: &str = "the network of the hosts";

const TOML_HELP: &str =
    "write keys as `key = value`, strings in quotes, tables under [name] or [[name]]";
