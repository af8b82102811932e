//! The program itself.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::tempdir;

use crate::support::{Channel, config_file, free_endpoint};

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_deckwatch-gateway"))
}

fn check(file: &Path) -> Output {
    command()
        .arg(file)
        .arg("--check")
        .output()
        .expect("it runs")
}

#[test]
fn the_example_is_correct() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("example.toml");
    let output = check(&file);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_mistake_is_shown_with_its_place() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("nav.toml");
    std::fs::write(&file, "channel = \"nav.ior\"\n\n[zenoh]\nconect = []\n").expect("written");
    let output = check(&file);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(
        said.starts_with("error: ") && said.contains("nav.toml:4:1: unknown field `conect`"),
        "{said}"
    );
}

#[test]
fn a_signal_disconnects_and_the_counts_are_printed() {
    let folder = tempdir().expect("a folder");
    let near = Channel::start(folder.path(), "near");
    let zenoh = format!("listen = [{:?}]", free_endpoint());
    let map = "[[map]]\ndirection = \"both\"\ntype = 17\nkey = \"nav/{source}\"\n";
    let file = config_file(&near, &zenoh, map);
    let mut running = command()
        .arg(file)
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(running.stderr.take().expect("piped")).lines();
    let has_line = |text: &str, said: &mut dyn Iterator<Item = std::io::Result<String>>| {
        said.map_while(Result::ok).any(|line| line.contains(text))
    };
    assert!(has_line("connected with the channel", &mut said));
    assert_eq!(near.consumers(), 2);
    let ended = Command::new("kill")
        .arg("-INT")
        .arg(running.id().to_string())
        .status();
    assert!(ended.expect("kill runs").success());
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(near.consumers(), 1, "our own");
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(counts["connects"], 1);
    let mapping = &counts["mappings"][0];
    assert_eq!(mapping["key"], "nav/{source}");
    assert_eq!(
        (&mapping["out"]["received"], &mapping["in"]["lost"]),
        (&0.into(), &0.into())
    );
}
