//! The arguments that select a mission and change it, shared by several commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use deckwatch_carrier::carriers::{self, CarrierRef};
use deckwatch_meter::pacing::Extent;
use deckwatch_meter::result::LeftOut;
use deckwatch_scenario::mission::{DurationText, EmulationChoice, Mission, Overrides};
use deckwatch_testbed::{Emulation, NetworkSpec, preset, preset_names};

#[derive(clap::Args)]
pub(crate) struct MissionArgs {
    /// The mission file (TOML)
    file: PathBuf,
    /// Take this variant of the mission
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[arg(long, value_name = "NAME", value_parser = network, help = format!("Emulate this network: {}, or a network file", preset_names()))]
    network: Option<NetworkSpec>,
    /// Carry its frames by shapers of the kernel, by a relay that gives each frame its time, by a `spinning-relay`,
    /// which never sleeps, or by `auto`: a relay where the mission needs one
    #[arg(long, value_name = "KIND", value_parser = emulation_choice)]
    emulation: Option<EmulationChoice>,
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = format!("Run every flow over each of these carriers: {}, those of `deckwatch carriers`, or `all`", carriers::built_in_names()))]
    carriers: Option<Vec<String>>,
    /// Search this folder too for carriers in other languages
    #[arg(long, value_name = "FOLDER")]
    adapters: Vec<PathBuf>,
    /// Judge each flow for so long, for example 20s
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "count")]
    duration: Option<Duration>,
    /// Judge so many messages of each flow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seed of the first Poisson flow; each further flow has the next
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl MissionArgs {
    /// Reads the mission file and applies the other arguments to it.
    pub(crate) fn load(&self) -> anyhow::Result<Mission> {
        self.load_variant(self.variant.as_deref())
    }

    /// As [`Self::load`]. If that is the mission itself, the variants of the file are read too, so that an error in one
    /// of them is found.
    pub(crate) fn load_with_variants(&self) -> anyhow::Result<Mission> {
        let mission = self.load()?;
        if self.variant.is_none() {
            for variant in &mission.variants {
                self.load_variant(Some(variant))?;
            }
        }
        Ok(mission)
    }

    /// As [`Self::load`], for each of these variants of the file; for all of them, if the only name is `all`.
    pub(crate) fn load_each(&self, names: &[String]) -> anyhow::Result<Vec<Mission>> {
        carriers::find_in(&self.adapters);
        let all = Mission::load_over(&self.file, None, self.first_carrier()?)?.variants;
        if all.is_empty() {
            bail!("{} has no variants at all.", self.file.display());
        }
        let is_all = names.len() == 1 && names[0] == ALL;
        let names = if is_all { &all[..] } else { names };
        let twice = (0..)
            .zip(names)
            .find(|(place, name)| names[..*place].contains(name));
        if let Some((_, name)) = twice {
            bail!("The variant {name} is named twice in --variants. Name each once.");
        }
        names
            .iter()
            .map(|name| self.load_variant(Some(name)))
            .collect()
    }

    /// Returns the carriers of the command line, if it names any.
    fn carriers(&self) -> anyhow::Result<Option<Vec<CarrierRef>>> {
        let Some(names) = &self.carriers else {
            return Ok(None);
        };
        let twice = (0..)
            .zip(names)
            .find(|(place, name)| names[..*place].contains(name));
        if let Some((_, name)) = twice {
            bail!("The carrier {name} is named twice in --carriers. Name each once.");
        }
        if names.iter().any(|name| name == ALL) {
            let all = CarrierRef::all().chain(carriers::found().carriers());
            return Ok(Some(all.collect()));
        }
        let carriers: Result<_, _> = names.iter().map(|name| name.parse()).collect();
        Ok(Some(carriers?))
    }

    fn first_carrier(&self) -> anyhow::Result<Option<CarrierRef>> {
        Ok(self.carriers()?.and_then(|all| all.first().copied()))
    }

    /// Returns the adapters that `all` does not include, each with the reason.
    fn left_out(&self) -> Option<Vec<LeftOut>> {
        let is_all = self.carriers.iter().flatten().any(|name| name == ALL);
        is_all.then(|| left_out().collect())
    }

    fn load_variant(&self, variant: Option<&str>) -> anyhow::Result<Mission> {
        carriers::find_in(&self.adapters);
        let mission = Mission::load_over(&self.file, variant, self.first_carrier()?)?;
        let network = self.network.as_ref().unwrap_or(&mission.network);
        if network.layout.is_some()
            && self.emulation == Some(EmulationChoice::Named(Emulation::Shaper))
        {
            bail!("Only a relay carries a network file. Leave `--emulation` out.");
        }
        let by_count = self.count.map(|messages| Extent::Count { messages });
        let by_duration = self.duration.map(|duration| Extent::Duration { duration });
        Ok(mission.with(&Overrides {
            network: self.network.clone(),
            emulation: self.emulation,
            carriers: self.carriers()?,
            left_out: self.left_out(),
            extent: by_count.or(by_duration),
            seed: self.seed,
        }))
    }
}

/// Returns the adapters of this machine that cannot be used, each with the reason.
pub(crate) fn left_out() -> impl Iterator<Item = LeftOut> {
    let adapters = &carriers::found().adapters;
    let unbuilt = adapters.adapters.iter().filter_map(|adapter| {
        let reason = adapter.program.clone().err()?;
        let carrier = adapter.manifest.name.clone();
        Some(LeftOut { carrier, reason })
    });
    let unusable = adapters.unusable.iter().map(|one| LeftOut {
        carrier: one.folder.display().to_string(),
        reason: one.reason.clone(),
    });
    unbuilt.chain(unusable)
}

/// The word that stands for all variants of a file, and for all carriers.
pub(crate) const ALL: &str = "all";

/// Parses a duration greater than zero, such as `20s` or `500ms`.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let duration = text.parse::<DurationText>()?.0;
    if duration.is_zero() {
        bail!("A duration of nothing is no duration; write for example 500ms or 20s.");
    }
    Ok(duration)
}

/// As [`duration`], with the limit for one run of a bench or an experiment, or for the work of its servant.
pub(crate) fn run_time(text: &str) -> anyhow::Result<Duration> {
    let time = duration(text)?;
    if time > RUN_TIME_MAX {
        bail!("One run takes at most {RUN_TIME_MAX:?}; write for example 300ms or 4s.");
    }
    Ok(time)
}

/// Longest run of a bench or an experiment: a bench has hundreds of runs.
const RUN_TIME_MAX: Duration = Duration::from_secs(3_600);

/// Returns a network whose frames are carried as the user asks.
pub(crate) fn carried(
    mut network: NetworkSpec,
    emulation: Option<Emulation>,
) -> anyhow::Result<NetworkSpec> {
    if network.layout.is_some() && emulation == Some(Emulation::Shaper) {
        bail!("Only a relay carries a network file. Leave `--emulation` out.");
    }
    network.emulation = emulation.unwrap_or(network.emulation);
    Ok(network)
}

/// Parses the name of an emulation.
pub(crate) fn emulation(name: &str) -> anyhow::Result<Emulation> {
    let found = Emulation::ALL.into_iter().find(|one| one.name() == name);
    found.ok_or_else(|| anyhow::anyhow!("Write shaper, relay or spinning-relay."))
}

/// Parses the name of an emulation, or `auto`.
fn emulation_choice(name: &str) -> anyhow::Result<EmulationChoice> {
    let found = EmulationChoice::ALL
        .into_iter()
        .find(|one| one.name() == name);
    found.ok_or_else(|| anyhow::anyhow!("Write shaper, relay, spinning-relay or auto."))
}

/// Returns a network by its name, or by the path of its file.
pub(crate) fn network(name: &str) -> anyhow::Result<NetworkSpec> {
    if Path::new(name).extension().is_some() {
        return Ok(deckwatch_scenario::network::load(Path::new(name))?);
    }
    Ok(preset(name)?)
}
