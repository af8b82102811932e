//! The hosts of a mission file as the two ends of an instrument.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use deckwatch_probe::sweep::FarEnd;
use deckwatch_scenario::mission::{Location, Mission};
use deckwatch_scenario::reach;

use crate::output::errln;
use crate::version::BUILD;

/// Returns the hosts of these names, with this program on each of them.
pub(crate) fn far_ends(
    file: &Path,
    names: [&str; 2],
    install: bool,
) -> anyhow::Result<[FarEnd; 2]> {
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
    let end = |name: &str| {
        let host = mission.hosts.iter().find(|host| host.name == name);
        let (command, address) = match host.map(|host| &host.location) {
            Some(Location::Far(reach)) => {
                let program = reach.program().to_owned();
                let words = reach.words.iter().cloned();
                (words.chain([program]).collect(), reach.address)
            }
            Some(Location::Here { address }) => {
                (vec![program.to_string_lossy().into_owned()], *address)
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
        })
    };
    Ok([end(names[0])?, end(names[1])?])
}
