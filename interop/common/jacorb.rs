//! JacORB, which Maven downloads with its own settings, and our Java program built with JacORB's stubs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{built_once, files_of, root, run, try_run};

/// A built Java program.
pub(crate) struct JavaProgram {
    class_path: String,
}

impl JavaProgram {
    /// The command that runs its class `Main`.
    pub(crate) fn command(&self) -> Command {
        self.command_with(&[])
    }

    /// The same with options of the virtual machine.
    pub(crate) fn command_with(&self, options: &[String]) -> Command {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
        command.args(options).arg("-cp");
        command.args([&self.class_path, "Main"]);
        command
    }
}

/// Builds `interop/jacorb/` with the stubs of an IDL file. Returns `None` and counts a skip without Java or Maven.
pub(crate) fn jacorb_program(idl_file: &str) -> Option<JavaProgram> {
    jacorb_program_in("jacorb", idl_file)
}

/// As [`jacorb_program`], for another folder of `interop/`.
pub(crate) fn jacorb_program_in(folder: &str, idl_file: &str) -> Option<JavaProgram> {
    deckwatch_testkit::program("java")?;
    deckwatch_testkit::program("javac")?;
    let archives = archives()?;
    let idl = root().join("idl").join(idl_file);
    let source = root().join("interop").join(folder);
    let mut inputs = files_of(&source);
    inputs.push(idl.clone());
    let class_path = format!("{}/*", archives.display());
    let built = built_once(&format!("{folder}-program"), &inputs, |folder| {
        compile(&source, &idl, &class_path, folder);
        Ok(())
    });
    let built = built.expect("what cannot be built has failed the test");
    Some(JavaProgram {
        class_path: format!("{class_path}:{}", built.join("classes").display()),
    })
}

/// The directory of JacORB's archives; downloaded once.
fn archives() -> Option<PathBuf> {
    let maven = deckwatch_testkit::program("mvn")?;
    let pom = root().join("interop/jacorb/pom.xml");
    let fetched = built_once("jacorb", std::slice::from_ref(&pom), |folder| {
        let fetching = try_run(
            Command::new(&maven)
                .args(["--quiet", "--batch-mode", "dependency:copy-dependencies"])
                .arg("--file")
                .arg(&pom)
                .arg(format!("-DoutputDirectory={}", folder.display())),
        );
        fetching.map(drop)
    });
    if let Err(said) = &fetched {
        let first = said.lines().find(|line| line.contains("ERROR"));
        deckwatch_testkit::skip("jacorb", first.unwrap_or("Maven cannot fetch it"));
    }
    fetched.ok()
}

fn compile(source: &Path, idl: &Path, class_path: &str, folder: &Path) {
    let stubs = folder.join("stubs");
    run(Command::new("java")
        .args(["-cp", class_path, "org.jacorb.idl.parser", "-DFOR_JACORB"])
        .arg(format!("-I{}", source.display()))
        .arg("-d")
        .arg(&stubs)
        .arg(idl));
    let mut files = files_of(source);
    files.retain(|file| file.extension().is_some_and(|end| end == "java"));
    files.extend(java_below(&stubs));
    run(Command::new("javac")
        .args(["-nowarn", "-cp", class_path, "-d"])
        .arg(folder.join("classes"))
        .args(files));
}

fn java_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_of(folder);
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("its entries too").path();
        if path.is_dir() {
            files.extend(java_below(&path));
        }
    }
    files
}
