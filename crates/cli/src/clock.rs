//! `deckwatch clock`: relates the clocks of other machines to this one's, live.

mod show;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use deckwatch_carrier::clock::{Counts, Prober, Responder, sync_state};
use deckwatch_carrier::error::socket_fault;
use deckwatch_meter::clock::{SyncState, Tracker, Window};
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::signal;
use deckwatch_scenario::reach::{self, FarClock, Reach};
use show::Shown;

use crate::exit;
use crate::far_ends::far_host;
use crate::mission_args::duration;
use crate::output::{self, outln};
use crate::version::BUILD;

/// Relate other machines' clocks to this one's, with bounds of the error
#[derive(clap::Args)]
#[command(after_help = NOTES)]
pub(crate) struct Args {
    /// ADDRESS or ADDRESS:PORT of a machine on which `deckwatch clock --serve` runs; with --reach, of
    /// the machine reached; with --hosts, the name of a host of the file
    #[arg(value_name = "HOST", required_unless_present = "serve")]
    hosts: Vec<String>,
    /// Answer at this address, until Ctrl-C
    #[arg(long, value_name = "ADDRESS[:PORT]", conflicts_with_all = ["hosts", "reach"])]
    serve: Option<String>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Print one JSON object a line; the last of each host is its total
    #[arg(long)]
    json: bool,
    /// Where this program is on the far machine
    #[arg(long, value_name = "PATH", default_value = reach::PROGRAM, requires = "reach")]
    program: String,
    /// Start the far end on a host of this mission file, which has `reach`
    #[arg(id = "file", long = "hosts", value_name = "FILE", conflicts_with_all = ["serve", "reach", "program"])]
    mission: Option<PathBuf>,
    /// Start the far end on the machine that these words reach, as `reach` of a mission; this option is the last
    #[arg(long, value_name = "WORD", num_args = 1.., allow_hyphen_values = true)]
    reach: Vec<String>,
}

const NOTES: &str = "\
400 questions a second go over UDP; the kernels of both machines stamp them. Each line is one second:
  ahead       how far the other machine's time of day is ahead
  skew        by how much its clock gains, parts in a million
  within      bound of the error, whatever the two directions take
  alike       bound if the shortest times of both directions are the same, in 95 of 100 cases
  round trip  the shortest time under way in both directions together
  lost        questions without an answer
The port is 52719 if none is given.

Exit status: 0 each machine answered, 2 one did not, 130 ended by Ctrl-C (the total is printed).

Examples:
  deckwatch clock --serve 10.0.0.1                      on the other machine
  deckwatch clock 10.0.0.1
  deckwatch clock 10.0.0.1 10.0.0.2:6000 --for 10s --json
  deckwatch clock 10.0.0.1 --reach ssh rts.ship
  deckwatch clock RTS --hosts ship.toml
  deckwatch clock 10.0.0.1 --program /opt/deckwatch/bin/deckwatch --reach kubectl exec -i sonar-0 --";

/// The port of both ends if none is given: in the range that nobody registers.
const PORT: u16 = 52_719;

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    signal::catch_ending().context("Signals cannot be caught.")?;
    if let Some(address) = &args.serve {
        return serve(address, &args);
    }
    let mut far = None;
    let hosts: Vec<(String, SocketAddr)> = if let Some(file) = &args.mission {
        let (name, reach) = far_host(file, &args.hosts, "HOST")?;
        let started = FarClock::start(&reach, reach.address, &BUILD.in_words())?;
        vec![(name, far.insert(started).endpoint)]
    } else if args.reach.is_empty() {
        let host = |text: &String| Ok((text.clone(), socket_address(text)?));
        args.hosts.iter().map(host).collect::<anyhow::Result<_>>()?
    } else {
        let started = far.insert(start_far(&args)?);
        vec![(args.hosts[0].clone(), started.endpoint)]
    };
    let probers = hosts.into_iter().map(|(name, to)| {
        let prober = Prober::connect(to, None).map_err(|error| {
            let any = SocketAddr::new(to.ip(), 0);
            anyhow!(
                "No datagrams can be sent to {name} ({}).",
                socket_fault(any, &error)
            )
        })?;
        Ok((name, prober))
    });
    let probers = probers.collect::<anyhow::Result<Vec<_>>>()?;
    let totals = watch(&args, probers)?;
    for total in &totals {
        show::total(total, args.json)?;
    }
    if let Some(signal) = signal::ending() {
        return Ok(exit::ended_by(signal).into());
    }
    let silent = totals.iter().find(|total| total.windows == 0);
    match silent {
        Some(total) => Err(no_answer(total)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Parses `ADDRESS[:PORT]`, or a name in place of the address.
fn socket_address(text: &str) -> anyhow::Result<SocketAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, PORT).into());
    }
    let with_port = match text.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => text.to_owned(),
        _ => format!("{text}:{PORT}"),
    };
    let found = with_port.to_socket_addrs();
    let found = found.with_context(|| {
        format!("`{text}` is no host. Write an address or a name, and a port after a colon: 10.0.0.1:52719.")
    })?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| anyhow!("`{text}` has no address."))
}

/// Starts the far end through the pipe.
fn start_far(args: &Args) -> anyhow::Result<FarClock> {
    let [host] = &args.hosts[..] else {
        bail!(
            "--reach starts the far end on one machine: write one address of it, and no other host."
        );
    };
    let address: IpAddr = host.parse().map_err(|_| {
        anyhow!("With --reach, HOST is an IP address of the far machine; `{host}` is none. The kernel there chooses the port.")
    })?;
    ensure!(
        reach::is_plain_word(&args.program),
        "`{}` cannot be the path of the program: a remote shell may read it. Use letters, digits and `/._-+`.",
        args.program
    );
    let far = Reach {
        words: args.reach.clone(),
        address: Ipv4Addr::UNSPECIFIED.into(),
        program: Some(args.program.clone()),
    };
    Ok(FarClock::start(&far, address, &BUILD.in_words())?)
}

fn serve(address: &str, args: &Args) -> anyhow::Result<ExitCode> {
    let address = socket_address(address)?;
    let mut responder = Responder::bind(address).map_err(|error| cannot_serve(address, &error))?;
    show::serving(responder.address(), args.json)?;
    let until = args.time.map(|time| Instant::now() + time);
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    while signal::ending().is_none() && !is_over() {
        responder.turn(TURN);
    }
    show::served(responder.answered(), responder.ignored(), args.json)?;
    Ok(match signal::ending() {
        Some(signal) => exit::ended_by(signal).into(),
        None => ExitCode::SUCCESS,
    })
}

/// Returns why nothing can be received at an address, and what to do.
fn cannot_serve(address: SocketAddr, error: &io::Error) -> anyhow::Error {
    let what_to_do = match error.kind() {
        io::ErrorKind::AddrInUse => "",
        io::ErrorKind::PermissionDenied => " Write a port from 1024.",
        _ => " Write an address of this machine; `ip address` lists them.",
    };
    let fault = socket_fault(address, error);
    anyhow!("Nothing can be received at {address} ({fault}).{what_to_do}")
}

/// All that was found of one host.
#[derive(Debug)]
struct Total {
    host: String,
    windows: u64,
    /// The window with the narrowest rigorous bound.
    best: Option<Shown>,
    last: Shown,
    impossible: u64,
    breaks: u64,
    near_sync: SyncState,
}

/// Probes all hosts and prints what is found, until the time is over or a signal comes.
fn watch(args: &Args, probers: Vec<(String, Prober)>) -> anyhow::Result<Vec<Total>> {
    let until = args.time.map(|time| Instant::now() + time);
    let is_over = || {
        signal::ending().is_some()
            || output::reader_is_gone()
            || until.is_some_and(|until| Instant::now() >= until)
    };
    let name_width = probers
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    if !args.json {
        outln!("{}", show::heading(name_width))?;
    }
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = probers
            .into_iter()
            .map(|(name, prober)| {
                let tell = tell.clone();
                let is_over = &is_over;
                scope.spawn(move || probe(name, prober, is_over, &tell))
            })
            .collect();
        drop(tell);
        let mut printed = Ok(());
        loop {
            match told.recv_timeout(TURN) {
                Ok(Said::Window(shown)) if args.json => {
                    printed = printed.and(show::as_json("window", &shown));
                }
                Ok(Said::Second(shown)) if !args.json => {
                    printed = printed.and(show::line(&shown, name_width));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        printed?;
        let totals = threads.into_iter().map(|thread| {
            let total = thread.join();
            total.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(totals.collect())
    })
}

/// What the thread of a host says.
enum Said {
    Window(Shown),
    /// The last window of this second.
    Second(Shown),
}

fn probe(
    host: String,
    mut prober: Prober,
    is_over: &impl Fn() -> bool,
    tell: &Sender<Said>,
) -> Total {
    let mut tracker = Tracker::default();
    let mut total = Total {
        last: shown(&host, None, &prober),
        host,
        windows: 0,
        best: None,
        impossible: 0,
        breaks: 0,
        near_sync: SyncState::default(),
    };
    let mut second = Instant::now() + SECOND;
    let mut latest = None;
    loop {
        let is_last = is_over();
        let mut windows = Vec::new();
        if is_last {
            windows.extend(tracker.finish());
        } else {
            let until_ns = monotonic_ns() + TURN.as_nanos() as i64;
            prober.run(until_ns, |exchange| windows.extend(tracker.note(exchange)));
        }
        for mut window in windows {
            window.widen(prober.stamp_error_ns());
            let one = shown(&total.host, Some(window), &prober);
            let rigorous_ns =
                |shown: &Shown| shown.window.map(|window| window.relation.rigorous_ns);
            let is_best = total
                .best
                .as_ref()
                .is_none_or(|best| rigorous_ns(&one) < rigorous_ns(best));
            if is_best {
                total.best = Some(one.clone());
            }
            total.windows += 1;
            latest = Some(window);
            // It fails when the other end prints no more.
            let _ = tell.send(Said::Window(one));
        }
        if Instant::now() >= second || (is_last && latest.is_some()) {
            second += SECOND;
            let one = shown(&total.host, latest.take(), &prober);
            let _ = tell.send(Said::Second(one));
        }
        if is_last {
            total.last = shown(&total.host, None, &prober);
            (total.impossible, total.breaks) = (tracker.impossible(), tracker.breaks());
            total.near_sync = sync_state(prober.counts().steps);
            return total;
        }
    }
}

fn shown(host: &str, window: Option<Window>, prober: &Prober) -> Shown {
    let counts: Counts = prober.counts();
    let ahead_ns = window.map(|window| window.relation.far_ns - window.relation.near_ns);
    Shown {
        host: host.to_owned(),
        ahead_ns,
        realtime_ahead_ns: ahead_ns.and_then(|ns| prober.realtime_ahead_ns(ns)),
        window,
        counts,
        far_sync: prober.far_sync(),
    }
}

fn no_answer(total: &Total) -> anyhow::Error {
    let Total { host, last, .. } = total;
    let why = match last.counts {
        Counts { answered: 1.., .. } => {
            "The kernel stamps no packets, there or here, or the stamps that came are impossible."
        }
        Counts { refused: 1.., .. } => "It refuses the datagrams: nothing listens at that port.",
        Counts { ignored: 1.., .. } => "Something else answers at that port.",
        _ => "Nothing came back: a firewall between, another address, or nothing listens.",
    };
    anyhow!(
        "No clock of {host}: {} of {} questions were answered. {why} Run `deckwatch clock --serve ADDRESS` there, or use --reach.",
        last.counts.answered,
        last.counts.asked
    )
}

const SECOND: Duration = Duration::from_secs(1);
/// The longest time until a signal is seen.
const TURN: Duration = Duration::from_millis(50);
