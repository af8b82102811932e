//! `deckwatch testbed`: emulated hosts for use by hand, which exist until they are taken down.

mod chain;
mod host;

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::bail;
use deckwatch_scenario::run::clean_work_folders;
use deckwatch_testbed::{
    Emulation, Fidelity, HostSpec, NetworkSpec, PRESETS, Standing, StandingDescription, Testbed,
    leftovers, preset_names,
};
use host::{At, exec, lose};

use crate::mission_args::{carried, emulation, network};
use crate::output::outln;
use crate::words;

/// Make, use and take down emulated hosts by hand
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  deckwatch testbed up --network fast-ethernet --hosts RTS,SONAR
  deckwatch testbed up --network fast-ethernet --emulation relay --hosts RTS,SONAR
  deckwatch testbed up --network scenarios/two-decks.toml
  deckwatch testbed exec RTS -- ip address
  deckwatch testbed hold SONAR
  deckwatch testbed release SONAR
  deckwatch testbed down
  deckwatch testbed chain --simulate --load 0,50,95

`exec`, `hold`, `release` and `lose` reach the hosts of a run that is going on, too.";

#[derive(clap::Subcommand)]
enum Action {
    /// Make hosts on a network; they stand until `down`.
    Up {
        #[arg(long, default_value = PRESETS[0].name, value_parser = network, help = format!("{}, or a network file", preset_names()))]
        network: NetworkSpec,
        /// Carry its frames by shapers of the kernel, or by a relay that gives each frame its time
        #[arg(long, value_name = "KIND", value_parser = emulation)]
        emulation: Option<Emulation>,
        /// Names, separated by commas; all hosts of the network file if not given.
        #[arg(long, value_delimiter = ',')]
        hosts: Vec<String>,
    },
    /// Take down what `up` made: one testbed by its number, or all.
    Down {
        /// The number that `up` and `list` print.
        number: Option<u32>,
    },
    /// Say what stands on this machine, and whose it is.
    List,
    /// Remove what was left by runs that were killed.
    Clean,
    /// Measure latencies through chains of switch ports with a loaded one in the middle, against theory.
    Chain(chain::Args),
    /// Run a command on a host.
    Exec {
        #[command(flatten)]
        at: At,
        /// The command, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Hold back every frame that the network has for a host, until `release`.
    Hold {
        #[command(flatten)]
        at: At,
    },
    /// Let frames flow again, in their order.
    Release {
        #[command(flatten)]
        at: At,
    },
    /// Lose some of the frames to a host; say how many were lost so far.
    Lose {
        #[command(flatten)]
        at: At,
        /// The first frame from now and every N-th after it; none any more if not given.
        #[arg(long, value_name = "N")]
        every: Option<NonZeroU32>,
    },
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Up {
            network,
            emulation,
            mut hosts,
        } => {
            let network = carried(network, emulation)?;
            match &network.layout {
                Some(layout) if hosts.is_empty() => hosts.clone_from(&layout.hosts),
                None if hosts.is_empty() => {
                    bail!("Name the hosts, for example: --hosts RTS,SONAR")
                }
                _ => {}
            }
            let hosts: Vec<HostSpec> = hosts.into_iter().map(HostSpec::new).collect();
            Testbed::clean_leftovers()?;
            let made = Testbed::create_kept(&network, &hosts)?;
            if !args.json {
                outln!("{network}")?;
                if let Some(fidelity) = Fidelity::of(&network) {
                    for line in words::fidelity(&fidelity.emulated, &fidelity.not_emulated) {
                        outln!("{line}")?;
                    }
                }
            }
            print("stands", &[made], args.json)?;
        }
        Action::Down { number } => {
            print("taken down", &leftovers::take_down_kept(number)?, args.json)?
        }
        Action::List => print("stands", &Testbed::standing(), args.json)?,
        Action::Clean => {
            clean_work_folders();
            print("removed", &Testbed::clean_leftovers()?, args.json)?;
        }
        Action::Chain(chain) => return chain::run(&chain, args.json),
        Action::Exec { at, command } => return exec(&at, &command),
        Action::Hold { at } => at.port()?.hold()?,
        Action::Release { at } => at.port()?.release()?,
        Action::Lose { at, every } => lose(&at, every, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(what: &str, testbeds: &[Standing], as_json: bool) -> anyhow::Result<()> {
    let testbeds: Vec<StandingDescription> = testbeds.iter().map(Standing::describe).collect();
    if as_json {
        outln!("{}", serde_json::to_string(&testbeds)?)?;
        return Ok(());
    }
    if testbeds.is_empty() {
        outln!("No testbed {what}.")?;
    }
    for found in testbeds {
        outln!("{}: {what}{}", found.name, owner(&found))?;
        for host in found.hosts {
            let address = host
                .address
                .map_or_else(String::new, |address| address.to_string());
            outln!("  {:<16} {address:<16} {}", host.name, host.namespace)?;
        }
    }
    Ok(())
}

fn owner(found: &StandingDescription) -> String {
    match found.owner_pid {
        0 => format!(", testbed {} of `deckwatch testbed up`", found.number),
        pid if found.owner_has_ended => format!(", left by process {pid}, which has ended"),
        pid => format!(", of process {pid}"),
    }
}
