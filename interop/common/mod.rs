//! What the interop tests share: foreign programs built from our IDL, processes that end with their test, captures.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The longest that a foreign program may take to say what it is asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The checkout's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the checkout exists")
}

/// A folder of this test's own, emptied.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let folder = root()
        .join("target/interop")
        .join(format!("{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder takes files");
    folder
}

/// Builds `interop/omniorb/<name>.cc` with the stubs of the IDL files, or counts a skip.
pub(crate) fn omniorb_program(name: &str, idl_files: &[&str], folder: &Path) -> Option<PathBuf> {
    deckwatch_testkit::program("omniidl")?;
    let compiler = deckwatch_testkit::program("g++")?;
    if !Path::new("/usr/include/omniORB4/CORBA.h").exists() {
        deckwatch_testkit::skip("libomniorb4-dev", "omniORB's headers are not installed");
        return None;
    }
    let mut stubs = Vec::new();
    for idl in idl_files {
        run(Command::new("omniidl")
            .args(["-bcxx", "-Wba", "-I"])
            .arg(root().join("idl/omg"))
            .arg("-C")
            .arg(folder)
            .arg(root().join("idl").join(idl)));
        let stem = Path::new(idl)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("an IDL file has a name");
        stubs.extend([
            folder.join(format!("{stem}SK.cc")),
            folder.join(format!("{stem}DynSK.cc")),
        ]);
    }
    let program = folder.join(name.replace('/', "-"));
    run(Command::new(compiler)
        .arg("-I")
        .arg(folder)
        .arg("-o")
        .arg(&program)
        .arg(root().join("interop/omniorb").join(format!("{name}.cc")))
        .args(&stubs)
        .args(["-lomniDynamic4", "-lomniORB4", "-lomnithread"]));
    Some(program)
}

/// Runs a program to its end and gives its standard output; a failure fails the test with all that it said.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// A process that lives as long as its test, and the lines it says.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Running {
    /// Starts it with piped output.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        for stream in [
            child
                .stdout
                .take()
                .map(|out| Box::new(out) as Box<dyn Read + Send>),
            child
                .stderr
                .take()
                .map(|err| Box::new(err) as Box<dyn Read + Send>),
        ]
        .into_iter()
        .flatten()
        {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Self {
            child,
            lines,
            heard: Vec::new(),
        }
    }

    /// The next line that holds `word`; the test fails where none comes.
    pub(crate) fn line_with(&mut self, word: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if line.contains(word) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!(
                    "no line with `{word}` in {PATIENCE:?}; heard: {:#?}",
                    self.heard
                ),
                Err(RecvTimeoutError::Disconnected) => panic!(
                    "ended without a line with `{word}`; heard: {:#?}",
                    self.heard
                ),
            }
        }
    }

    #[allow(dead_code, reason = "a server is ended, not waited for")]
    /// Waits for the end of the process and gives its status and every line it said.
    pub(crate) fn wait(mut self) -> (std::process::ExitStatus, Vec<String>) {
        let status = self.child.wait().expect("the process can be waited for");
        let mut heard = std::mem::take(&mut self.heard);
        heard.extend(self.lines.iter());
        (status, heard)
    }

    /// Sends SIGTERM, as an operator would.
    pub(crate) fn terminate(&self) {
        run(Command::new("kill").arg(self.child.id().to_string()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A capture of loopback by tshark's own capturer, or a counted skip where it is not permitted.
pub(crate) fn capture(folder: &Path) -> Option<(Running, PathBuf)> {
    let tshark = deckwatch_testkit::program("tshark")?;
    let file = folder.join("capture.pcapng");
    let mut running = Running::start(
        Command::new(tshark)
            // 64 MiB of buffer: a segment that is not captured makes what follows look malformed.
            .args(["-i", "lo", "-f", "tcp", "-B", "64", "-w"])
            .arg(&file),
    );
    running.line_with("Capturing on");
    // It says so before it does: the capture has begun once packets stand in the file, behind a head of some hundred octets.
    knock(&file, |size, _| size > 4096);
    Some((running, file))
}

/// Sends packets to a port that nobody listens at, until the capture's size, and how often it has grown, are as wanted.
fn knock(file: &Path, wanted: impl Fn(u64, usize) -> bool) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port");
    let (mut size, mut growths) = (0, 0);
    let began = std::time::Instant::now();
    while !wanted(size, growths) {
        assert!(
            began.elapsed() < PATIENCE,
            "no packet is captured in {PATIENCE:?}"
        );
        let _refused = std::net::TcpStream::connect(nobody);
        std::thread::sleep(Duration::from_millis(20));
        let now = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        growths += usize::from(now > size);
        size = now;
    }
}

/// What tshark finds wrong with the GIOP of some ports in a capture: nothing, with luck. Also counts the GIOP messages it saw.
fn dissect(file: &Path, ports: &[u16]) -> (usize, Vec<String>) {
    let read = |filter: &str| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(file);
        for port in ports {
            command.arg("-d").arg(format!("tcp.port=={port},giop"));
        }
        run(command.arg("-Y").arg(filter))
    };
    let malformed = read("giop && (_ws.malformed || giop.exceptionid contains \"MARSHAL\")");
    (
        read("giop").lines().count(),
        malformed.lines().map(str::to_owned).collect(),
    )
}

/// Ends a capture and dissects it.
pub(crate) fn finish(capturing: &mut Running, file: &Path, ports: &[u16]) -> (usize, Vec<String>) {
    // What has been captured is written every half a second: after three times all of it stands there.
    knock(file, |_, growths| growths > 3);
    capturing.terminate();
    capturing.line_with("captured");
    dissect(file, ports)
}
