//! A load between two hosts, emulated or far: the sink is a process on one host; the source is a thread on an emulated
//! host, or a process on a far one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, bail};
use deckwatch_load::{LoadPlan, NetPlan, SinkPlan, Work};
use deckwatch_probe::laboratory::{LOAD_WORDS, LoadEnd};
use deckwatch_testbed::{Environment, HostSpec, LinkSpec, NetworkSpec, Testbed};

use super::Args;
use crate::far_ends::far_ends;
use crate::output::{errln, outln};
use crate::words;

/// Carries out the load on an emulated network.
pub(super) fn emulated(args: &Args, network: &NetworkSpec) -> anyhow::Result<ExitCode> {
    let from = args.from.as_deref().unwrap_or("CLIENT");
    let to = args.to.as_deref().unwrap_or("SERVER");
    if Testbed::isolate_if_needed()? {
        errln!("Hosts are emulated in a user namespace of this process, without root.");
    }
    let bed = Testbed::create(network, &[HostSpec::new(from), HostSpec::new(to)])?;
    let (source, target) = (bed.host(from)?, bed.host(to)?);
    let Some(namespace) = source.namespace() else {
        let reason = match bed.environment() {
            Environment::Loopback { reason } => reason,
            Environment::Namespaces => "it has no hosts".to_owned(),
        };
        bail!("The network {} cannot be emulated: {reason}", network.name);
    };
    let program = std::env::current_exe().context("The program's own path cannot be read.")?;
    let mut command = Command::new(program);
    command.args(LOAD_WORDS);
    target.place(&mut command)?;
    let at = SocketAddr::new(target.address().into(), args.port);
    let fidelity = deckwatch_load::fidelity(network);
    for stated in fidelity.iter().filter(|_| !args.common.json) {
        for line in words::fidelity(&stated.emulated, &stated.not_emulated) {
            outln!("{line}")?;
        }
    }
    let sink = start_sink(args, (to, command), at)?;
    let plan = args.waiting_plan(at, network.link());
    let mut report = args.common.report(plan, &|plan, stop, tell| {
        let inside = || {
            let found = deckwatch_load::run(plan, stop, tell);
            found.map_err(anyhow::Error::from)
        };
        namespace
            .run_inside(inside)
            .context("The host cannot be entered.")?
    })?;
    report.received = sink.end()?.received;
    report.fidelity = fidelity;
    args.common.print(&report)
}

/// Carries out the load between two hosts of a mission file.
pub(super) fn far(args: &Args, file: &Path, link: Option<LinkSpec>) -> anyhow::Result<ExitCode> {
    let (Some(from), Some(to)) = (&args.from, &args.to) else {
        bail!("Name two hosts of {} with --from and --to.", file.display());
    };
    let [source, target] = far_ends(file, [from, to], args.install)?;
    let at = SocketAddr::new(target.address, args.port);
    let plan = args.waiting_plan(at, link);
    args.common.plan(plan.clone())?;
    let mut sink = start_sink(args, (to, target.load()), at)?;
    let report = args.common.report(plan, &|plan, stop, tell| {
        let what = format!("The source on {from}");
        let mut source = LoadEnd::start(what, source.load(), plan)?;
        Ok(source.follow(stop, tell)?)
    });
    // Where something is wrong with the sink, the source was not to blame.
    let mut report = report.map_err(|error| sink.fault().map_or(error, Into::into))?;
    report.received = sink.end()?.received;
    args.common.print(&report)
}

fn start_sink(
    args: &Args,
    (host, command): (&str, Command),
    at: SocketAddr,
) -> anyhow::Result<LoadEnd> {
    let plan = LoadPlan {
        work: Work::Sink(SinkPlan { at }),
        lifetime: args.common.lasting + GRACE,
    };
    Ok(LoadEnd::start(
        format!("The sink on {host}"),
        command,
        &plan,
    )?)
}

impl Args {
    /// What the source does, which waits for the sink.
    fn waiting_plan(&self, at: SocketAddr, link: Option<LinkSpec>) -> Work {
        Work::Net(NetPlan {
            patience: PATIENCE,
            ..self.plan(at, link)
        })
    }
}

const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which the sink ends by itself.
const GRACE: Duration = Duration::from_secs(30);
