//! A COS event channel of omniEvents, an installed program, as a server.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_life_cycle::{GenericFactoryRef, NameValuePair};
use deckwatch_orb::cos_naming::NameComponent;
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_os::schedule::{Class, set_class};

use super::{EndPlan, answer_questions, daemon, greet, place, refused, system};
use crate::laboratory::error::LaboratoryError;
use crate::limits::END_PATIENCE;

/// The program.
pub(crate) const PROGRAM: &str = "omniEvents";

/// Serves a channel until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    let orb = Orb::builder().build().map_err(refused("The ORB"))?;
    place(plan.fifo);
    let mut started = start(&orb, plan.fifo);
    // Another process may take the free port before the program does.
    for _ in 1..STARTS_MAX {
        if started.is_err() {
            started = start(&orb, plan.fifo);
        }
    }
    let (daemon, channel) = started?;
    greet(&format!(
        "{}, of process {}",
        orb.object_to_string(&channel),
        daemon.child.id()
    ))?;
    let _ = set_class(Class::Other);
    answer_questions(None)
}

/// Starts the program, and has it create a channel.
fn start(orb: &Orb, fifo: Option<u8>) -> Result<(Daemon, ObjectRef), LaboratoryError> {
    let mut daemon = Daemon::start(fifo)?;
    let factory = format!("corbaloc::127.0.0.1:{}/omniEvents", daemon.port);
    let factory = orb.string_to_object(&factory);
    let factory = factory.map_err(refused(PROGRAM))?;
    let factory = factory.ok_or_else(|| refused(PROGRAM)("its reference is nil"))?;
    let channel = create(&mut daemon.child, &factory)?;
    Ok((daemon, channel))
}

/// Has the factory create a channel, once it answers.
fn create(program: &mut Child, factory: &ObjectRef) -> Result<ObjectRef, LaboratoryError> {
    let until = Instant::now() + END_PATIENCE;
    while let Err(error) = factory.non_existent() {
        if let Ok(Some(status)) = program.try_wait() {
            return Err(refused(PROGRAM)(format!("it has ended ({status})")));
        }
        if Instant::now() >= until {
            return Err(refused(PROGRAM)(error));
        }
        std::thread::sleep(LOOK);
    }
    let key = [NameComponent {
        id: "EventChannel".to_owned(),
        kind: "object interface".to_owned(),
    }];
    let period = NameValuePair {
        name: "CyclePeriod_ns".to_owned(),
        value: Any::from_value(&CYCLE_NS).map_err(refused(PROGRAM))?,
    };
    let factory = GenericFactoryRef::unchecked_narrow(factory.clone());
    let channel = factory.create_object(&key, &[period]);
    let channel = channel.map_err(refused(PROGRAM))?;
    channel.ok_or_else(|| refused(PROGRAM)("its channel is nil"))
}

/// The running program. Dropping it ends it and removes its files.
struct Daemon {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Daemon {
    fn start(fifo: Option<u8>) -> Result<Self, LaboratoryError> {
        let name = format!("deckwatch-bench-omnievents-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(system("A folder cannot be made"))?;
        // It has no option for a port that the kernel chooses.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.map_err(system("There is no free port"))?.port();
        let cannot = || system("omniEvents cannot be started");
        let child = daemon(PROGRAM, fifo)
            .map_err(cannot())?
            .args(["-f", "-p", &port.to_string(), "-t", "/dev/null", "-l"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot())?;
        Ok(Self {
            child,
            port,
            folder,
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// So long it waits before it passes on what has arrived. With some nanoseconds its thread never sleeps, and in a
/// real-time class it would keep the processor from the consumers.
const CYCLE_NS: u32 = 20_000;

/// How often it is started at most, each time at another free port.
const STARTS_MAX: usize = 3;

/// How often its factory is looked for.
const LOOK: Duration = Duration::from_millis(10);
