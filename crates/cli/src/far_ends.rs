//! The hosts of a mission file as the two ends of an instrument.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail, ensure};
use deckwatch_probe::sweep::FarEnd;
use deckwatch_scenario::mission::{Location, Mission};
use deckwatch_scenario::reach::{self, Reach};

use crate::output::errln;
use crate::version::BUILD;

/// Returns a host of a mission file that is another machine, by its name, which is the only word of `option`.
pub(crate) fn far_host(
    file: &Path,
    words: &[String],
    option: &str,
) -> anyhow::Result<(String, Reach)> {
    let [name] = words else {
        bail!(
            "With --hosts, {option} names one host of {}.",
            file.display()
        );
    };
    let mission = Mission::load(file, None)?;
    let found = mission.far_hosts().find(|(host, _)| host.name == *name);
    let Some((_, reach)) = found else {
        let known: Vec<&str> = mission.far_hosts().map(|(host, _)| &*host.name).collect();
        bail!(
            "{} has no host `{name}` with `reach`. Those with it: {}.",
            file.display(),
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        );
    };
    Ok((name.clone(), reach.clone()))
}

/// Returns the hosts of these names, with this program on each of them.
pub(crate) fn far_ends<const N: usize>(
    file: &Path,
    names: [&str; N],
    install: bool,
) -> anyhow::Result<[FarEnd; N]> {
    let mut mission = Mission::load(file, None)?;
    let known: Vec<String> = mission.hosts.iter().map(|host| host.name.clone()).collect();
    for name in names {
        ensure!(
            known.iter().any(|one| one == name),
            "{} has no host `{name}`. Name one of {}.",
            file.display(),
            known.join(", ")
        );
    }
    mission
        .hosts
        .retain(|host| names.contains(&host.name.as_str()));
    let program = std::env::current_exe().context("The program's own path cannot be read.")?;
    let build = BUILD.in_words();
    if install {
        let mut told = |words: &str| errln!("{words}");
        reach::install(&mut mission, &program, &build, &mut told)?;
    } else {
        reach::check(&mission, &build)?;
    }
    let run = format!(
        "m{}x{}",
        std::process::id(),
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos()
    );
    let end = |name: &str| {
        let host = mission.hosts.iter().find(|host| host.name == name);
        let (command, address, run) = match host.map(|host| &host.location) {
            Some(Location::Far(reach)) => {
                let program = reach.program().to_owned();
                let words = reach.words.iter().cloned();
                (
                    words.chain([program]).collect(),
                    reach.address,
                    Some(run.clone()),
                )
            }
            Some(Location::Here { address }) => {
                (vec![program.to_string_lossy().into_owned()], *address, None)
            }
            _ => bail!(
                "Host `{name}` of {} is emulated. Give it `reach` and `address`, or measure on --network.",
                file.display()
            ),
        };
        Ok(FarEnd {
            name: name.to_owned(),
            command,
            address,
            run,
        })
    };
    let ends: Vec<FarEnd> = names.into_iter().map(end).collect::<anyhow::Result<_>>()?;
    ends.try_into()
        .map_err(|_| anyhow!("a host of {} is missing", file.display()))
}
