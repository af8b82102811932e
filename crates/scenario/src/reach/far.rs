//! The far end: makes a folder for the part, starts it, passes lines on, and returns its files.
//!
//! The part is a process of its own, so that whatever it does, the folder is removed and its end is reported. If the
//! coordinator is gone (the end of the input, or no `ping` for [`FAR_SILENCE_MAX`]), the part ends, and so does this.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deckwatch_carrier::limits::LINE_SIZE_MAX;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_os::namespace::Placement;
use deckwatch_os::signal;
use sha2::{Digest as _, Sha256};

use super::files::hex;
use super::folder::FarFolder;
use super::words::{FarPlan, FarReadings, FarWord, PING};
use crate::limits::{EXIT_PATIENCE, FAR_LOOK, FAR_SILENCE_MAX, STOP_PATIENCE};
use crate::part::ProcessError;
use crate::run::killed_by;

/// What the threads report to the one that supervises.
enum Event {
    /// A line was read from the coordinator; true for `stop`.
    Heard(bool),
    /// The coordinator is gone.
    Gone,
    /// The part has closed its output.
    Silent,
    /// Everything is written.
    Written,
}

/// The output, shared by the threads that write lines.
type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// Runs a part of a run on this host, which is far from the coordinator.
///
/// # Errors
/// [`ProcessError`], which the coordinator reads on standard error.
pub fn run(
    build: &str,
    mut input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), ProcessError> {
    let output: Output = Arc::new(Mutex::new(Box::new(output)));
    let hello = FarWord::Hello {
        build: build.to_owned(),
    };
    write(&output, &hello).map_err(ProcessError::Report)?;
    let mut line = String::new();
    (&mut input)
        .take(LINE_SIZE_MAX as u64)
        .read_line(&mut line)
        .map_err(|error| ProcessError::Plan(error.to_string()))?;
    if line.is_empty() {
        // The coordinator only asked for the version.
        return Ok(());
    }
    let plan: FarPlan =
        serde_json::from_str(&line).map_err(|error| ProcessError::Plan(error.to_string()))?;
    // An ending signal must not leave the folder behind.
    signal::catch_ending().map_err(ProcessError::Far)?;
    let folder = FarFolder::make(&plan.run)?;
    for file in &plan.files {
        let path = inside(folder.path(), &file.path).map_err(ProcessError::Far)?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(ProcessError::Far)?;
        }
        std::fs::write(path, &file.text).map_err(ProcessError::Far)?;
    }
    let mut part = start(&plan, folder.path()).map_err(ProcessError::Start)?;
    supervise(&plan, &folder, &mut part, input, output);
    Ok(())
}

/// Starts the part in its folder, and writes its plan.
fn start(plan: &FarPlan, folder: &Path) -> std::io::Result<Child> {
    // A program that was replaced meanwhile is still there under this name.
    let itself = PathBuf::from("/proc/self/exe");
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(program.unwrap_or(itself));
    command
        .arg("part")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let placement = Placement {
        processors: plan.processors.clone(),
        dies_with_parent: true,
        own_group: true,
        ..Placement::default()
    };
    placement.apply(&mut command)?;
    let mut part = command.spawn()?;
    let mut line = serde_json::to_string(&plan.plan)?;
    line.push('\n');
    // A part that has died is noticed by the end of its output.
    let _ = part
        .stdin
        .as_mut()
        .map(|input| input.write_all(line.as_bytes()));
    Ok(part)
}

/// Waits for the end of the part or of the coordinator.
fn supervise(
    plan: &FarPlan,
    folder: &FarFolder,
    part: &mut Child,
    input: impl BufRead + Send + 'static,
    output: Output,
) {
    let (tell, events) = channel();
    let (answer, status) = sync_channel(1);
    let lines = part.stdout.take();
    let part_input = part.stdin.take();
    let to_part = {
        let (output, tell) = (Arc::clone(&output), tell.clone());
        move || listen(input, part_input, &output, &tell)
    };
    let before = Readings::take();
    let from_part = {
        let paths: Vec<PathBuf> = plan
            .returns
            .iter()
            .filter_map(|name| inside(folder.path(), name).ok())
            .collect();
        move || {
            if let Some(lines) = lines {
                pass_on(BufReader::new(lines), &output);
            }
            let _ = tell.send(Event::Silent);
            let end = FarWord::End {
                how: status.recv().unwrap_or(None),
                readings: FarReadings::of(&before.until(&Readings::take())),
            };
            let _ = return_files(&paths, &end, &output);
            let _ = tell.send(Event::Written);
        }
    };
    // These threads end with the process: they may wait for a coordinator that is gone.
    std::thread::spawn(to_part);
    std::thread::spawn(from_part);
    let mut heard = Instant::now();
    let mut stop_by: Option<Instant> = None;
    loop {
        match next(&events, stop_by) {
            Some(Event::Heard(stop)) => {
                heard = Instant::now();
                if stop {
                    stop_by.get_or_insert(heard + STOP_PATIENCE);
                }
            }
            Some(Event::Silent) => {
                let how = how_ended(end(part, EXIT_PATIENCE));
                // The thread that waits for it has nothing else to wait for.
                let _ = answer.send(how);
            }
            Some(Event::Written) => return,
            Some(Event::Gone) => break,
            None => {}
        }
        if stop_by.is_some_and(|by| Instant::now() >= by) {
            let _ = part.kill();
            stop_by = None;
        }
        if heard.elapsed() > FAR_SILENCE_MAX || signal::ending().is_some() {
            break;
        }
    }
    // The thread with the part's input may be blocked, so the end is not left to it.
    let _ = part.kill();
    let _ = part.wait();
}

fn next(events: &Receiver<Event>, stop_by: Option<Instant>) -> Option<Event> {
    let left = stop_by.map_or(FAR_LOOK, |by| by.saturating_duration_since(Instant::now()));
    events.recv_timeout(left.min(FAR_LOOK)).ok()
}

/// Reads the coordinator's lines: answers pings, and passes the rest on to the part.
fn listen(
    mut input: impl BufRead,
    mut part: Option<ChildStdin>,
    output: &Output,
    tell: &Sender<Event>,
) {
    let mut line = String::new();
    loop {
        line.clear();
        if !matches!(
            (&mut input).take(LINE_SIZE_MAX as u64).read_line(&mut line),
            Ok(1..)
        ) {
            // The end of its input ends the part; it may need some time to.
            drop(part);
            let _ = tell.send(Event::Gone);
            return;
        }
        let t2_ns = monotonic_ns();
        let _ = tell.send(Event::Heard(line.trim_end() == "stop"));
        let asked = line.strip_prefix(PING).map(str::trim_end);
        if let Some(t1_ns) = asked.and_then(|text| text.parse().ok()) {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            let pong = FarWord::Pong {
                t1_ns,
                t2_ns,
                t3_ns: monotonic_ns(),
            };
            // The end of the input shows that the coordinator is gone.
            let _ = write_word(&mut *output, &pong);
        } else if let Some(part) = &mut part {
            let _ = part.write_all(line.as_bytes());
        }
    }
}

/// Passes the part's lines on.
fn pass_on(mut lines: impl BufRead, output: &Output) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines)
            .take(LINE_SIZE_MAX as u64)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Writes the files back that the part created, then the last line.
fn return_files(paths: &[PathBuf], end: &FarWord, output: &Output) -> std::io::Result<()> {
    for (index, path) in paths.iter().enumerate() {
        // A part that failed has not created all of them.
        let Ok(mut file) = File::open(path) else {
            continue;
        };
        let size_bytes = file.metadata()?.len();
        // Nothing else is written meanwhile: the octets are no lines.
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        write_word(&mut *output, &FarWord::File { index, size_bytes })?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; COPY_BYTES];
        let mut left = size_bytes;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(COPY_BYTES);
            let count = file.read(&mut buffer[..wanted])?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            digest.update(&buffer[..count]);
            output.write_all(&buffer[..count])?;
            left -= count as u64;
        }
        let sha256 = hex(&digest.finalize());
        write_word(&mut *output, &FarWord::FileEnd { sha256 })?;
    }
    write(output, end)
}

/// Waits for the end of the part, and kills it if that does not come in time.
fn end(part: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        match part.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(WAIT_STEP),
            Ok(None) | Err(_) => {
                let _ = part.kill();
                return part.wait().ok();
            }
        }
    }
}

fn how_ended(status: Option<ExitStatus>) -> Option<String> {
    match status {
        Some(status) if status.success() => None,
        Some(status) => Some(match (status.signal(), status.code()) {
            (Some(signal), _) => killed_by(signal),
            (None, Some(code)) => format!("ended with status {code}"),
            (None, None) => "ended without a status".to_owned(),
        }),
        None => Some("did not end".to_owned()),
    }
}

/// Returns the path of a file in the part's folder.
fn inside(folder: &Path, name: &str) -> std::io::Result<PathBuf> {
    let path = Path::new(name);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !path.components().all(is_plain) {
        return Err(std::io::ErrorKind::InvalidFilename.into());
    }
    Ok(folder.join(path))
}

fn write(output: &Output, word: &FarWord) -> std::io::Result<()> {
    write_word(
        &mut *output.lock().unwrap_or_else(PoisonError::into_inner),
        word,
    )
}

fn write_word(mut output: impl Write, word: &FarWord) -> std::io::Result<()> {
    let line = serde_json::to_string(word)?;
    writeln!(output, "{line}")?;
    output.flush()
}

/// Octets of a file that are copied at once.
const COPY_BYTES: usize = 64 << 10;
/// Interval of the checks whether the part that closed its output has ended.
const WAIT_STEP: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let folder = Path::new("/work");
        for name in ["", "..", "a/../../b", "/etc/passwd", "./a"] {
            assert!(inside(folder, name).is_err(), "{name}");
        }
        let path = inside(folder, "idl/nav.idl").expect("inside");
        assert_eq!(path, folder.join("idl/nav.idl"));
    }
}
