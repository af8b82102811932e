//! A load on an emulated link: the sink is a process on one host, the source a thread on the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use deckwatch_load::{LoadPlan, LoadReport, NetPlan, SinkPlan, Work};
use deckwatch_testbed::{Environment, Host, HostSpec, NetworkSpec, Testbed};

use super::Args;
use crate::output::errln;

pub(super) fn run(args: &Args, network: &NetworkSpec) -> anyhow::Result<ExitCode> {
    let (from, to) = (args.from.as_str(), args.to.as_deref().unwrap_or("SERVER"));
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
    let at = SocketAddr::new(target.address().into(), PORT);
    let mut sink = Sink::start(target, at, args.common.lasting + GRACE)?;
    let plan = NetPlan {
        patience: PATIENCE,
        ..args.plan(at, network.link())
    };
    let mut report = args.common.report(Work::Net(plan), &|plan, stop, tell| {
        let inside = || {
            let found = deckwatch_load::run(plan, stop, tell);
            found.map_err(anyhow::Error::from)
        };
        namespace
            .run_inside(inside)
            .context("The host cannot be entered.")?
    })?;
    report.received = sink.end()?.received;
    args.common.print(&report)
}

/// The process of the sink. It ends with this one.
struct Sink(Child);

impl Sink {
    fn start(host: &Host, at: SocketAddr, lifetime: Duration) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("The program's own path cannot be read.")?;
        let mut command = Command::new(program);
        command
            .arg("part")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        host.place(&mut command)?;
        let mut child = command.spawn().context("The sink cannot be started.")?;
        let plan = LoadPlan {
            work: Work::Sink(SinkPlan { at }),
            lifetime,
        };
        if let Some(input) = &mut child.stdin {
            writeln!(input, "{}", serde_json::to_string(&plan)?)?;
        }
        Ok(Self(child))
    }

    /// Ends the sink. Returns what it has received.
    fn end(&mut self) -> anyhow::Result<LoadReport> {
        drop(self.0.stdin.take());
        let mut line = String::new();
        if let Some(output) = self.0.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        self.0.wait()?;
        serde_json::from_str(&line).context("The sink has ended without a report.")
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PORT: u16 = 7007;
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which the sink ends by itself.
const GRACE: Duration = Duration::from_secs(30);
