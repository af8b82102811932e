//! Shared code of the interop tests: foreign programs built from our IDL, processes that end with their test, packet
//! captures.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time limit for a foreign program to print an expected line.
const PATIENCE: Duration = Duration::from_secs(30);

/// The root directory of the source tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("floors.toml").is_file())
        .expect("the checkout exists")
        .to_owned()
}

/// An empty directory for this test.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let folder = root()
        .join("target/interop")
        .join(format!("{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder takes files");
    folder
}

/// Builds `interop/omniorb/<name>.cc` with the stubs of the IDL files, or counts a skip. Reuses an earlier build of the
/// same sources.
pub(crate) fn omniorb_program(name: &str, idl_files: &[&str]) -> Option<PathBuf> {
    deckwatch_testkit::program("omniidl")?;
    deckwatch_testkit::program("g++")?;
    if !Path::new("/usr/include/omniORB4/CORBA.h").exists() {
        deckwatch_testkit::skip("libomniorb4-dev", "omniORB's headers are not installed");
        return None;
    }
    let source = root().join("interop/omniorb").join(format!("{name}.cc"));
    let idl_files: Vec<PathBuf> = idl_files
        .iter()
        .map(|file| root().join("idl").join(file))
        .collect();
    let folder = source.parent().expect("a source stands in a folder");
    let mut inputs = idl_files.clone();
    inputs.push(root().join("interop/omniorb/program.h"));
    // A program in a directory of its own consists of all files there.
    if name.contains('/') {
        inputs.extend(files_of(folder));
    } else {
        inputs.push(source.clone());
    }
    let stem = name.replace('/', "-");
    let built = built_once(&stem, &inputs, |folder| {
        build_omniorb(&source, &idl_files, &stem, folder);
        Ok(())
    });
    Some(
        built
            .expect("what cannot be built has failed the test")
            .join(stem),
    )
}

/// The files directly in a directory, sorted.
pub(crate) fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("its entries too").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// A directory for a build, removed on drop if the build has not finished.
struct Making(PathBuf);

impl Drop for Making {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // It may have been renamed.
    }
}

/// The directory with the result of `build` for these files. Builds again if one of the files or the harness has
/// changed. A failed build leaves nothing behind except its error.
pub(crate) fn built_once(
    name: &str,
    inputs: &[PathBuf],
    build: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    use std::hash::{Hash, Hasher};
    static BUILDING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let mut hasher = std::hash::DefaultHasher::new();
    include_str!("common.rs").hash(&mut hasher);
    for input in inputs {
        input.hash(&mut hasher);
        std::fs::read(input)
            .unwrap_or_else(|error| panic!("{}: {error}", input.display()))
            .hash(&mut hasher);
    }
    let all = root().join("target/interop/built");
    let folder = all.join(format!("{name}-{:016x}", hasher.finish()));
    let _one_at_a_time = BUILDING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if !folder.exists() {
        // Another process may build the same; the first to finish provides the result.
        let making = all.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&making).expect("the target folder takes files");
        let making = Making(making);
        build(&making.0)?;
        let renamed = std::fs::rename(&making.0, &folder);
        // The rename fails if another process was first; then its result must exist.
        assert!(folder.is_dir(), "{}: {renamed:?}", folder.display());
    }
    Ok(folder)
}

/// Compiles the stubs and the program, one compiler process per object file.
fn build_omniorb(source: &Path, idl_files: &[PathBuf], stem: &str, folder: &Path) {
    let mut sources = vec![source.to_owned()];
    for idl in idl_files {
        run(Command::new("omniidl")
            .args(["-bcxx", "-Wba", "-I"])
            .arg(root().join("idl/omg"))
            .arg("-I/usr/share/idl/omniORB")
            .arg("-C")
            .arg(folder)
            .arg(idl));
        let name = idl.file_stem().expect("an IDL file has a name").display();
        sources.extend([
            folder.join(format!("{name}SK.cc")),
            folder.join(format!("{name}DynSK.cc")),
        ]);
    }
    let objects: Vec<PathBuf> = (0..sources.len())
        .map(|number| folder.join(format!("{number}.o")))
        .collect();
    std::thread::scope(|scope| {
        for (source, object) in sources.iter().zip(&objects) {
            scope.spawn(move || {
                run(Command::new("g++")
                    .args(["-O0", "-w", "-c", "-I"])
                    .arg(folder)
                    .arg("-o")
                    .arg(object)
                    .arg(source))
            });
        }
    });
    run(Command::new("g++")
        .arg("-o")
        .arg(folder.join(stem))
        .args(&objects)
        .args(["-lomniDynamic4", "-lomniORB4", "-lomnithread"]));
}

/// Runs a program to its end and returns its standard output. Panics with all its output if the program fails.
pub(crate) fn run(command: &mut Command) -> String {
    try_run(command).unwrap_or_else(|said| panic!("{command:?} ended with {said}"))
}

/// Runs a program to its end. Returns its standard output, or its status and all its output.
pub(crate) fn try_run(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\n{said}{errors}", output.status))
}

/// The port in a stringified reference.
pub(crate) fn port_of(ior: &str) -> u16 {
    let ior: deckwatch_giop::Ior = ior.parse().expect("an IOR");
    let profile = ior.iiop_profiles().flatten().next();
    profile.expect("an IIOP profile").port
}

/// A process that is killed at the end of its test, and the lines that it prints.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Running {
    /// Starts the process with piped output.
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

    /// Waits for the next line that contains `word`. Panics if there is none.
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

    /// Waits for the end of the process. Returns its status and every line that it printed.
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

/// A loopback TCP port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

/// A packet capture of some loopback ports, by tshark's dumpcap.
pub(crate) struct Capture {
    running: Running,
    file: PathBuf,
    ports: Vec<u16>,
    /// A port without a listener. Packets sent there show how far the capture has got.
    nobody: u16,
}

impl Capture {
    /// Starts a capture, or counts a skip if tshark is not installed.
    pub(crate) fn start(folder: &Path, ports: &[u16]) -> Option<Self> {
        let tshark = deckwatch_testkit::program("tshark")?;
        let file = folder.join("capture.pcapng");
        let nobody = free_port();
        let wanted = ports.iter().chain([&nobody]);
        let wanted: Vec<String> = wanted.map(|port| format!("tcp port {port}")).collect();
        let mut running = Running::start(
            Command::new(tshark)
                // 64 MiB of buffer: after a segment that was not captured, the rest looks malformed.
                .args(["-i", "lo", "-B", "64", "-f", &wanted.join(" or "), "-w"])
                .arg(&file),
        );
        running.line_with("Capturing on");
        let capture = Self {
            running,
            file,
            ports: ports.to_vec(),
            nobody,
        };
        // tshark reports the start too early. The capture has started once the file contains packets, after a file
        // header of some hundred octets.
        capture.knock(|size, _| size > 4096);
        Some(capture)
    }

    /// Ends the capture. Returns the number of GIOP frames in each minor version, and the errors that tshark finds
    /// (none, if all is well).
    pub(crate) fn finish(mut self) -> ([usize; 3], Vec<String>) {
        // Captured packets are written every half second: after three writes, the file contains all of them.
        self.knock(|_, growths| growths > 3);
        self.running.terminate();
        self.running.line_with("captured");
        let count = |minor| {
            let filter = format!("giop.minor_version == {minor}");
            self.read(&filter).lines().count()
        };
        // A fragment of GIOP 1.1 has no request id. tshark takes data for the id, and the data may be too short.
        let malformed = self.read(
            "(_ws.malformed || giop.exceptionid contains \"MARSHAL\") \
             && !(giop.minor_version == 1 && giop.type == 7)",
        );
        let malformed = malformed.lines().map(str::to_owned).collect();
        ([count(0), count(1), count(2)], malformed)
    }

    /// The frames that match a display filter.
    fn read(&self, filter: &str) -> String {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&self.file);
        // tshark reassembles fragments by request id, which GIOP 1.1 fragments do not have, and across connections.
        command.args(["-o", "giop.reassemble:FALSE"]);
        for port in &self.ports {
            command.arg("-d").arg(format!("tcp.port=={port},giop"));
        }
        run(command.arg("-Y").arg(format!("giop && ({filter})")))
    }

    /// Sends packets to a port without a listener until `wanted` accepts the size of the capture file and the number of
    /// times it has grown.
    fn knock(&self, wanted: impl Fn(u64, usize) -> bool) {
        let (mut size, mut growths) = (0, 0);
        let began = std::time::Instant::now();
        while !wanted(size, growths) {
            assert!(
                began.elapsed() < PATIENCE,
                "no packet is captured in {PATIENCE:?}"
            );
            // The other side may close early.
            let _ = std::net::TcpStream::connect(("127.0.0.1", self.nobody));
            std::thread::sleep(Duration::from_millis(20));
            let now = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
            growths += usize::from(now > size);
            size = now;
        }
    }
}
