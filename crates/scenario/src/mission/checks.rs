//! The checks of a mission file that its schema cannot express:
//! - names that must exist
//! - keys that need or exclude each other
//! - values that contradict each other

mod flow;
mod load;
mod location;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use deckwatch_carrier::carriers::{self, CarrierRef, UnknownCarrier};
use deckwatch_meter::result::Published;
use deckwatch_testbed::{Emulation, NetworkSpec, PRESETS, preset};
use toml::Spanned;

use super::fault::Faults;
use super::file::{self, MissionFile};
use super::shape::{list, nearest};
use super::{Host, LoadError, Mission};

/// Looks up the IDL type of a flow.
pub(super) trait Types {
    /// Returns the largest number that the member `sequence` of `type_name` in `idl_file` can hold. The error says
    /// which of the three is at fault.
    fn check(&mut self, idl_file: &Path, type_name: &str, sequence: &str)
    -> Result<u64, TypeFault>;

    /// Reads a network file. Returns `None` if files are not opened.
    fn network(&mut self, path: &Path) -> Option<Result<NetworkSpec, LoadError>>;
}

/// A fault in the IDL type of a flow.
pub(super) struct TypeFault {
    pub(super) of: TypeKey,
    pub(super) fact: String,
    pub(super) help: String,
}

/// The key of the mission file that is at fault.
pub(super) enum TypeKey {
    Idl,
    Type,
    Sequence,
}

/// Opens no IDL file, and accepts every type.
pub(super) struct TypesUnseen;

impl Types for TypesUnseen {
    fn check(&mut self, _: &Path, _: &str, _: &str) -> Result<u64, TypeFault> {
        Ok(u64::MAX)
    }

    fn network(&mut self, _: &Path) -> Option<Result<NetworkSpec, LoadError>> {
        None
    }
}

/// Makes the mission. If something is wrong, it is reported to `faults`, and the mission is incomplete.
pub(super) fn mission(
    file: &MissionFile,
    path: &Path,
    faults: &mut Faults,
    types: &mut dyn Types,
) -> Mission {
    let mut checks = Checks {
        file,
        folder: path.parent().unwrap_or(Path::new("")),
        hosts: BTreeMap::new(),
        faults,
    };
    let carrier = checks.carrier();
    let network = checks.network(types);
    let hosts = checks.hosts();
    let loads = checks.loads();
    checks.link_shares(network.link().is_some());
    let mut names = BTreeMap::new();
    let mut flows = Vec::new();
    for (flow, index) in file.flows.iter().zip(0..) {
        checks.name(&flow.name, "flow", &mut names);
        flows.extend(checks.flow(flow, index, types));
    }
    for flow in &mut flows {
        flow.carriers = carrier.map_or_else(|| flow.carriers.clone(), |one| vec![one]);
    }
    Mission {
        name: file.name.clone(),
        description: file.description.clone(),
        variant: None,
        variants: Vec::new(),
        left_out: None,
        path: path.to_owned(),
        text: Arc::from(""),
        published: file.published.as_ref().map(|printed| Published {
            source: printed.source.clone(),
            figure: printed.figure.clone(),
            late: printed.late.clone(),
        }),
        network,
        auto_emulation: {
            let wish = file.network.emulation.as_ref().map(Spanned::get_ref);
            wish == Some(&file::Emulation::Auto)
        },
        hosts,
        loads,
        flows,
    }
}

struct Checks<'m> {
    file: &'m MissionFile,
    folder: &'m Path,
    hosts: BTreeMap<&'m str, usize>,
    faults: &'m mut Faults,
}

impl<'m> Checks<'m> {
    /// Checks a name: names must be unique, and they are used in file names and on the command line.
    fn name(
        &mut self,
        name: &'m Spanned<String>,
        kind: &str,
        known: &mut BTreeMap<&'m str, usize>,
    ) {
        let text = name.get_ref().as_str();
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !text.chars().all(sound) || !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let help = "use letters and digits of ASCII, `-`, `_` and `.`, and begin with a letter or digit";
            self.faults.report(
                name.span(),
                format!("`{text}` cannot be the name of a {kind}"),
                help,
            );
        }
        if known.insert(text, known.len()).is_some() {
            let help = format!("give each {kind} a name of its own");
            self.faults.report(
                name.span(),
                format!("there is another {kind} named `{text}`"),
                help,
            );
        }
    }

    /// Returns the carrier of all flows, if the file names one. The schema does not list the names, so that the other
    /// variants of a file run where one of them names a carrier of another program version.
    fn carrier(&mut self) -> Option<CarrierRef> {
        let word = self.file.carrier.as_ref()?;
        match word.get_ref().parse() {
            Ok(carrier) => Some(carrier),
            Err(UnknownCarrier::NotBuilt { reason, .. }) => {
                let fact = format!("the carrier `{}` cannot be used", word.get_ref());
                self.faults.report(word.span(), fact, reason);
                None
            }
            Err(UnknownCarrier::Unknown(_)) => {
                let help = format!(
                    "name one of {}, or choose another variant",
                    carriers::names()
                );
                self.faults.report(
                    word.span(),
                    format!("this deckwatch has no carrier `{}`", word.get_ref()),
                    help,
                );
                None
            }
        }
    }

    /// Returns the network of a file, if the mission names one.
    fn network_of_file(&mut self, types: &mut dyn Types) -> Option<NetworkSpec> {
        let name = self.file.network.file.as_ref()?;
        let network = match types.network(&self.folder.join(name.get_ref()))? {
            Ok(network) => network,
            Err(error) => {
                let fact = format!(
                    "this network cannot be used\n{}",
                    error.to_string().trim_end()
                );
                self.faults
                    .report(name.span(), fact, "change the network file");
                return None;
            }
        };
        let known = network.layout.iter().flat_map(|layout| &layout.hosts);
        for host in self.file.hosts.iter().filter(|host| host.address.is_none()) {
            let wanted = host.name.get_ref();
            if !known.clone().any(|name| name == wanted) {
                let help = format!("name one of {}, or add it there", list(known.clone()));
                let fact = format!("the network file has no host `{wanted}`");
                self.faults.report(host.name.span(), fact, help);
            }
        }
        Some(network)
    }

    /// Returns the named network, with the changes that the file makes to it.
    fn network(&mut self, types: &mut dyn Types) -> NetworkSpec {
        let wish = &self.file.network;
        // The schema check has already refused unknown names.
        let by_name = wish.preset.as_deref().and_then(|name| preset(name).ok());
        let named = by_name.unwrap_or_else(|| PRESETS[0].spec());
        let changes = [
            ("rate_mbit_s", wish.rate_mbit_s.as_ref().map(Spanned::span)),
            ("mtu_bytes", wish.mtu_bytes.as_ref().map(Spanned::span)),
            ("burst_bytes", wish.burst_bytes.as_ref().map(Spanned::span)),
            (
                "queue_frames",
                wish.queue_frames.as_ref().map(Spanned::span),
            ),
        ];
        let emulation = wish.emulation.as_ref();
        let chosen = ("emulation", emulation.map(Spanned::span));
        let changed: Vec<_> = changes
            .into_iter()
            .filter_map(|(key, place)| Some((key, place?)))
            .collect();
        if let Some(network) = self.network_of_file(types) {
            if let Some(chosen) = emulation.filter(|of| *of.get_ref() == file::Emulation::Shaper) {
                let fact = "shapers do not carry the network of a file";
                let help = "remove `emulation`: a relay carries it";
                self.faults.report(chosen.span(), fact, help);
            }
            for (key, place) in changed {
                let help = "remove it, and change the network file";
                let fact = format!("`file` and `{key}` exclude each other");
                self.faults.report(place, fact, help);
            }
            return network;
        }
        if named.rate_bits_per_s.is_none() {
            let chosen = chosen.1.map(|place| (chosen.0, place));
            for (key, place) in changed.into_iter().chain(chosen) {
                let help = "remove it, or name an emulated network as preset";
                self.faults
                    .report(place, format!("loopback has no `{key}`"), help);
            }
            return named;
        }
        let value = |of: &Option<Spanned<u32>>| of.as_ref().map(|value| *value.get_ref());
        let rate = wish
            .rate_mbit_s
            .as_ref()
            .map(|rate| (*rate.get_ref() * 1e6).round() as u64);
        NetworkSpec {
            name: if changed.is_empty() {
                named.name
            } else {
                format!("{}, changed", named.name)
            },
            rate_bits_per_s: rate.or(named.rate_bits_per_s),
            mtu_bytes: value(&wish.mtu_bytes).unwrap_or(named.mtu_bytes),
            burst_bytes: value(&wish.burst_bytes).unwrap_or(named.burst_bytes),
            queue_frames: value(&wish.queue_frames).unwrap_or(named.queue_frames),
            emulation: match emulation.map(Spanned::get_ref) {
                // What the mission leaves open is chosen when all of it is known.
                None | Some(file::Emulation::Auto) => named.emulation,
                Some(file::Emulation::Shaper) => Emulation::Shaper,
                Some(file::Emulation::Relay) => Emulation::Relay,
                Some(file::Emulation::SpinningRelay) => Emulation::SpinningRelay,
            },
            ..named
        }
    }

    fn hosts(&mut self) -> Vec<Host> {
        let mut known = BTreeMap::new();
        let file = self.file;
        for (host, index) in file.hosts.iter().zip(0..) {
            self.name(&host.name, "host", &mut known);
            self.processors(host.processors.as_ref());
            known.insert(host.name.get_ref(), index);
        }
        self.hosts = known;
        let hosts: Vec<Host> = file
            .hosts
            .iter()
            .map(|host| Host {
                name: host.name.get_ref().clone(),
                location: self.location(host),
                processors: host
                    .processors
                    .as_ref()
                    .map_or(Vec::new(), |list| list.get_ref().clone()),
                entry: host.entry(!file.loads.is_empty()),
            })
            .collect();
        self.joined_by_a_network(&hosts);
        hosts
    }

    fn processors(&mut self, processors: Option<&Spanned<Vec<u32>>>) {
        let Some(processors) = processors else { return };
        let mut sorted = processors.get_ref().clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() {
            let help = "name at least one, for example [0], or leave the key out for all";
            self.faults
                .report(processors.span(), "`processors` names none", help);
        } else if sorted.len() < processors.get_ref().len() {
            let help = format!("write {sorted:?}");
            self.faults
                .report(processors.span(), "`processors` names one twice", help);
        }
    }

    fn host(&mut self, name: &Spanned<String>) -> Option<usize> {
        let wanted = name.get_ref().as_str();
        if let Some(&index) = self.hosts.get(wanted) {
            return Some(index);
        }
        let help = match nearest(wanted, self.hosts.keys().copied()) {
            Some(near) => format!("write \"{near}\""),
            None => format!(
                "add it to `hosts`, or name one of {}",
                list(self.hosts.keys())
            ),
        };
        self.faults.report(
            name.span(),
            format!("there is no host named `{wanted}`"),
            help,
        );
        None
    }
}
