//! The TAO installation at `TAO_ROOT` and `ACE_ROOT`, and our C++ programs built with its stubs by `TAO_CXX`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{built_once, files_of, root, run};

/// Where TAO is installed, and how to build programs with it.
pub(crate) struct Tao {
    ace: PathBuf,
    tao: PathBuf,
}

/// Libraries of a program with real-time CORBA, in addition to those of every program.
const REAL_TIME: [&str; 6] = [
    "TAO_RTPortableServer",
    "TAO_RTCORBA",
    "TAO_PI",
    "TAO_CodecFactory",
    "TAO_PortableServer",
    "TAO_AnyTypeCode",
];
/// Libraries of a program without real-time CORBA.
const PLAIN: [&str; 2] = ["TAO_PortableServer", "TAO_AnyTypeCode"];

/// Libraries of a client of TAO's real-time event channel, with TAO's own stubs.
const EVENTS: [&str; 6] = [
    "TAO_RTEvent_Skel",
    "TAO_RTEvent",
    "TAO_Svc_Utils",
    "TAO_CosNaming",
    "TAO_PortableServer",
    "TAO_AnyTypeCode",
];

impl Tao {
    /// Finds the TAO of this machine, or counts a skip.
    pub(crate) fn find() -> Option<Self> {
        let Some(tao) = std::env::var_os("TAO_ROOT").map(PathBuf::from) else {
            deckwatch_testkit::skip("tao", "TAO_ROOT does not tell where one is");
            return None;
        };
        let ace = std::env::var_os("ACE_ROOT").map(PathBuf::from);
        // In a build tree, TAO is inside ACE.
        let found = Self {
            ace: ace.unwrap_or_else(|| tao.join("..")),
            tao,
        };
        let compiler = found.idl_compiler();
        if !compiler.is_file() {
            deckwatch_testkit::skip("tao", &format!("there is no {}", compiler.display()));
            return None;
        }
        deckwatch_testkit::program(&cpp_compiler())?;
        Some(found)
    }

    fn idl_compiler(&self) -> PathBuf {
        self.ace.join("bin/tao_idl")
    }

    fn libraries(&self) -> PathBuf {
        self.ace.join("lib")
    }

    /// Builds a program with real-time CORBA and the stubs of an IDL file.
    pub(crate) fn real_time_program(&self, source: &str, idl_file: &str) -> PathBuf {
        self.program(source, idl_file, &REAL_TIME)
    }

    /// Builds a program without real-time CORBA. Sources written for omniORB include their stubs as `NAME.hh`, so the
    /// stubs get that name too.
    pub(crate) fn plain_program(&self, source: &str, idl_file: &str) -> PathBuf {
        self.program(source, idl_file, &PLAIN)
    }

    /// Builds a program with the stubs of TAO's real-time event channel, from TAO's own IDL.
    pub(crate) fn event_program(&self, source: &str) -> PathBuf {
        let source = root().join("interop").join(source);
        let compiler = cpp_compiler().replace('/', "-");
        let mut inputs = vec![source.clone(), self.idl_compiler()];
        inputs.extend(headers_of(&source));
        let built = built_once(&format!("tao-events-{compiler}"), &inputs, |folder| {
            run(&mut self.compiler(std::slice::from_ref(&source), &EVENTS, folder));
            Ok(())
        });
        let built = built.expect("what cannot be built has failed the test");
        built.join("program")
    }

    /// TAO's real-time event channel.
    pub(crate) fn event_service(&self) -> Command {
        let mut command = Command::new(self.tao.join("orbsvcs/Event_Service/tao_rtevent"));
        command.env("LD_LIBRARY_PATH", self.libraries());
        command
    }

    /// Whether it is built with SSLIOP.
    pub(crate) fn has_tls(&self) -> bool {
        self.libraries().join("libTAO_SSLIOP.so").is_file()
    }

    /// A command with TAO's TLS, its authority, and a certificate with its key. Both ends must show a certificate. `more`
    /// are further options of the transport.
    pub(crate) fn over_tls(
        &self,
        program: &Path,
        authority: &Path,
        (chain, key): (&Path, &Path),
        more: &str,
    ) -> Command {
        let options = format!(
            "-SSLAuthenticate SERVER_AND_CLIENT -SSLCAfile PEM:{} -SSLCertificate PEM:{} -SSLPrivateKey PEM:{} {more}",
            authority.display(),
            chain.display(),
            key.display(),
        );
        let factory = "dynamic SSLIOP_Factory Service_Object * TAO_SSLIOP:_make_TAO_SSLIOP_Protocol_Factory()";
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", self.libraries())
            .arg("-ORBSvcConfDirective")
            .arg(format!("{factory} \"{options}\""))
            .arg("-ORBSvcConfDirective")
            .arg("static Resource_Factory \"-ORBProtocolFactory SSLIOP_Factory\"");
        command
    }

    fn program(&self, source: &str, idl_file: &str, libraries: &[&str]) -> PathBuf {
        let source = root().join("interop").join(source);
        let idl = root().join("idl").join(idl_file);
        let stem = source.file_stem().expect("a source has a name");
        let compiler = cpp_compiler().replace('/', "-");
        let name = format!("tao-{}-{}-{compiler}", stem.display(), libraries.len());
        let mut inputs = vec![source.clone(), idl.clone(), self.idl_compiler()];
        inputs.extend(headers_of(&source));
        let built = built_once(&name, &inputs, |folder| {
            self.build(&source, &idl, libraries, folder);
            Ok(())
        });
        let built = built.expect("what cannot be built has failed the test");
        built.join("program")
    }

    fn build(&self, source: &Path, idl: &Path, libraries: &[&str], folder: &Path) {
        run(Command::new(self.idl_compiler())
            .env("ACE_ROOT", &self.ace)
            .env("LD_LIBRARY_PATH", self.libraries())
            // Allows anonymous types, such as bounded strings in structs.
            .args(["-as", "-o"])
            .arg(folder)
            .arg(idl));
        let stubs = idl
            .file_stem()
            .expect("an IDL file has a name")
            .display()
            .to_string();
        std::fs::write(
            folder.join(format!("{stubs}.hh")),
            format!("#include \"{stubs}S.h\"\n"),
        )
        .expect("the folder takes files");
        let generated = ["C", "S"].map(|part| folder.join(format!("{stubs}{part}.cpp")));
        let sources = [&[source.to_owned()][..], &generated].concat();
        run(&mut self.compiler(&sources, libraries, folder));
    }

    /// The compiler's command for a program of these sources.
    fn compiler(&self, sources: &[PathBuf], libraries: &[&str], folder: &Path) -> Command {
        let libraries = libraries.iter().chain(&["TAO", "ACE"]);
        let mut command = Command::new(cpp_compiler());
        command
            // The headers of TAO 2 are older than current compilers.
            .args(["-fpermissive", "-O0", "-w", "-pthread"])
            .arg("-o")
            .arg(folder.join("program"))
            .args([Path::new("-I"), folder, Path::new("-I"), &self.ace])
            .args([Path::new("-I"), &self.tao])
            .arg("-I")
            .arg(self.tao.join("orbsvcs"))
            .args(sources)
            .arg("-L")
            .arg(self.libraries())
            .arg(format!("-Wl,-rpath,{}", self.libraries().display()))
            // TAO's libraries name each other without a path: this one holds for them too.
            .arg("-Wl,--disable-new-dtags")
            .args(libraries.map(|library| format!("-l{library}")));
        command
    }
}

/// The C++ compiler: `TAO_CXX`, or `g++`. TAO 2.2 needs g++ 11 or older.
fn cpp_compiler() -> String {
    std::env::var("TAO_CXX").unwrap_or_else(|_| "g++".into())
}

/// The headers that a source may include: in its directory and in the directories around it.
fn headers_of(source: &Path) -> impl Iterator<Item = PathBuf> {
    let interop = root().join("interop");
    let folders = source.ancestors().skip(1);
    let folders = folders.take_while(move |folder| *folder != interop);
    let files = folders.flat_map(files_of);
    files.filter(|file| file.extension().is_some_and(|ending| ending == "h"))
}

/// A program whose real-time threads run in the time-sharing class, so that every host permits their priorities.
pub(crate) fn real_time(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([
        "-ORBSvcConfDirective",
        "static RT_ORB_Loader \"-ORBPriorityMapping linear -ORBSchedPolicy SCHED_OTHER\"",
    ]);
    command
}
