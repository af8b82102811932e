//! TAO's real-time event channel, an installed program, as a server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use deckwatch_os::schedule::{Class, set_class};

use super::{EndPlan, answer_questions, daemon, greet, place, refused, system};
use crate::laboratory::error::LaboratoryError;
use crate::limits::END_PATIENCE;

/// The program of the TAO at `TAO_ROOT`, whether or not it is there. Returns `None` without that variable.
pub(crate) fn program() -> Option<PathBuf> {
    let root = PathBuf::from(std::env::var_os("TAO_ROOT")?);
    Some(root.join("orbsvcs/Event_Service/tao_rtevent"))
}

/// Serves a channel until the standard input ends.
pub(super) fn serve(plan: &EndPlan) -> Result<(), LaboratoryError> {
    place(plan.fifo);
    let mut daemon = Daemon::start(plan.fifo)?;
    let reference = daemon.reference()?;
    // It has no COS channel.
    greet(&format!(",{reference} of process {}", daemon.child.id()))?;
    let _ = set_class(Class::Other);
    answer_questions(None)
}

/// The running program. Dropping it ends it and removes its file.
struct Daemon {
    child: Child,
    file: PathBuf,
}

impl Daemon {
    fn start(fifo: Option<u8>) -> Result<Self, LaboratoryError> {
        let program = program().ok_or_else(|| refused(PROGRAM)("TAO_ROOT is not set"))?;
        let name = format!("deckwatch-bench-tao-{}.ior", std::process::id());
        let file = std::env::temp_dir().join(name);
        // A process that had the same id may have left it.
        let _ = std::fs::remove_file(&file);
        let cannot = || system("TAO's event channel cannot be started");
        let child = daemon(&program.to_string_lossy(), fifo)
            .map_err(cannot())?
            .env("LD_LIBRARY_PATH", libraries())
            // Without a name in a naming service and without a scheduler.
            .args(["-x", "-s", "none", "-o"])
            .arg(&file)
            .args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot())?;
        Ok(Self { child, file })
    }

    /// The reference that it writes once it serves.
    fn reference(&mut self) -> Result<String, LaboratoryError> {
        let until = Instant::now() + END_PATIENCE;
        loop {
            let text = std::fs::read_to_string(&self.file).unwrap_or_default();
            // The file may be seen empty, but its text is one write.
            if text.starts_with("IOR:") {
                return Ok(text);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(refused(PROGRAM)(format!("it has ended ({status})")));
            }
            if Instant::now() >= until {
                return Err(refused(PROGRAM)("it writes no reference"));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Where its libraries are, before those that the user has set: in a build tree, TAO is inside ACE.
fn libraries() -> OsString {
    let ace = std::env::var_os("ACE_ROOT").map(PathBuf::from);
    let ace = ace.or_else(|| Some(PathBuf::from(std::env::var_os("TAO_ROOT")?).join("..")));
    let mut all = ace.unwrap_or_default().join("lib").into_os_string();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        all.push(":");
        all.push(others);
    }
    all
}

const PROGRAM: &str = "TAO's tao_rtevent";

/// How often its file is looked for.
const LOOK: Duration = Duration::from_millis(10);
