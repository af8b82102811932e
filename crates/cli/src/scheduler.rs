//! `deckwatch scheduler`: the scheduling service of the real-time event channel, for anyone's clients.

use std::process::ExitCode;

use anyhow::Context as _;
use deckwatch_event::{SchedulerOptions, SchedulingService, limits};
use deckwatch_naming::user::{Existing, bind_with_contexts};
use deckwatch_orb::cos_naming::NamingContextRef;
use deckwatch_scenario::mission::DurationText;
use deckwatch_sched::{Operations, Settings, Strategy};

use crate::guarded::{GuardArgs, Refusals};
use crate::output::errln;
use crate::overruns::Overruns;
use crate::serve::ServeArgs;

/// Serve RtecScheduler::Scheduler: declared operations in, priorities and anomalies out
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch scheduler --listen 10.1.0.5:10015 --access ship-access.toml --names corbaloc::ship:2809/NameService
  deckwatch scheduler --strategy muf --overhead 20us --admit --ior-file scheduler.ior
  deckwatch call --idl idl/rtec/RtecScheduler.idl corbaloc::ship:10015/ScheduleService \\
      RtecScheduler::Scheduler::get_rt_info_set
  deckwatch schedule nav.toml --measured corbaloc::ship:10015/ScheduleService

Consumers report the execution times of their handlers (idl/rtec/execution_times.idl). An operation that takes longer
than it declares is named on standard error and in the anomalies of compute_scheduling.
Without --access, this host may do everything, and others may read the schedule. In an access file the service is named
`schedule`: `observe` reads it, `supply` reports execution times, `administer` declares and computes.
It ends with SIGINT or SIGTERM. `deckwatch schedule FILE` computes a schedule without a service.")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    guard: GuardArgs,
    /// Bind the service to this name; contexts on the way are made
    #[arg(long, value_name = "NAME", requires = "names", default_value = SchedulingService::NAME)]
    bind: String,
    /// Reference of the naming service, or a file that holds it
    #[arg(long, value_name = "REFERENCE")]
    names: Option<String>,
    /// Which priorities operations get
    #[arg(long, value_name = "NAME", default_value = "rms", value_parser = ["rms", "edf", "mlf", "muf", "rms-dyn"])]
    strategy: String,
    /// Processor time of each dispatch, beside the operation's own
    #[arg(long, value_name = "DURATION", default_value = "0ns")]
    overhead: DurationText,
    /// Queues by deadline or laxity let the running operation end first
    #[arg(long)]
    run_to_completion: bool,
    /// Refuse, with NO_RESOURCES, changes of a computed schedule that make an operation miss its deadline
    #[arg(long)]
    admit: bool,
    /// Percent of the operations and of the dependencies that one address, or one user of this host, may declare; beyond
    /// it IMP_LIMIT is raised
    #[arg(long, value_name = "PERCENT", default_value_t = limits::SHARE_PERCENT_DEFAULT,
        value_parser = clap::value_parser!(u8).range(1..=100))]
    share_per_peer: u8,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let access = args.guard.access(None, None)?;
    let audit = args.guard.audit()?;
    let orb = args.serve.orb(audit.as_ref(), None)?;
    args.serve.reload_with(&args.guard);
    let options = SchedulerOptions {
        settings: Settings {
            strategy: Strategy::named(&args.strategy).unwrap_or_default(),
            overhead_ns: u64::try_from(args.overhead.0.as_nanos())?,
            runs_to_completion: args.run_to_completion,
        },
        admits: args.admit,
        share_percent: args.share_per_peer,
    };
    let service =
        SchedulingService::start_with(&orb, options, Operations::default(), Some(access))?;
    if let Some(names) = &args.names {
        let names = crate::reference::target(&orb, names)?;
        bind_with_contexts(
            &NamingContextRef::unchecked_narrow(names),
            &args.bind,
            service.reference().object(),
            Existing::Replace,
        )
        .with_context(|| format!("cannot bind {}", args.bind))?;
    }
    let (overruns, refusals) = (Overruns::default(), Refusals::default());
    args.serve.serve(&orb, service.reference().object(), || {
        overruns.look(&service);
        refusals.look(|| service.take_refusals());
        false
    })?;
    refusals.print(service.take_refusals());
    if let Some(audit) = &audit {
        audit.close();
    }
    Overruns::print(&service);
    let counts = service.counts();
    errln!(
        "operations {}, schedules computed {}, changes refused {}, executions above their declared worst case {}",
        counts.operations,
        counts.computed,
        counts.refused,
        counts.exceeded
    );
    Ok(ExitCode::SUCCESS)
}
