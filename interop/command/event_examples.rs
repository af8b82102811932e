//! omniEvents' example programs (`pushsupp`, `pullsupp`, `pushcons`, `pullcons`) with `deckwatch channel`. omniEvents
//! publishes them as source only: `OMNIEVENTS_SOURCE` names a folder with its `examples` and `src`.

use std::path::{Path, PathBuf};
use std::process::Command;

use deckwatch_testkit::{program, skip};

use crate::common::{Running, built_once, root, run};
use crate::names::{Names, deckwatch};

const PROGRAMS: [&str; 4] = ["pushsupp", "pullsupp", "pushcons", "pullcons"];
/// What omniEvents' own build finds out about the platform.
const FOUND: [&str; 8] = [
    "-DHAVE_GETOPT",
    "-DHAVE_IOSTREAM",
    "-DHAVE_IOMANIP",
    "-DHAVE_STD_IOSTREAM",
    "-DHAVE_STDLIB_H",
    "-DHAVE_SIGNAL_H",
    "-DHAVE_OMNIORB4",
    "-includeomniORB4/Naming.hh",
];
const STUBS: [&str; 2] = ["CosEventComm", "CosEventChannelAdmin"];

/// Returns the folder with the four programs, or counts a skip.
fn built() -> Option<PathBuf> {
    let Some(source) = std::env::var_os("OMNIEVENTS_SOURCE").map(PathBuf::from) else {
        skip("omnievents-source", "OMNIEVENTS_SOURCE names no folder");
        return None;
    };
    program("omniidl")?;
    program("g++")?;
    let sources = PROGRAMS.map(|name| source.join("examples").join(format!("{name}.cc")));
    let mut inputs = sources.to_vec();
    inputs.push(source.join("src/naming.cc"));
    let made = built_once("omnievents-examples", &inputs, |folder| {
        build(&source, folder);
        Ok(())
    });
    Some(made.expect("what cannot be built has failed the test"))
}

fn build(source: &Path, folder: &Path) {
    let idl = root().join("idl/omg");
    for stub in STUBS {
        let mut omniidl = Command::new("omniidl");
        omniidl.arg("-bcxx").arg("-I").arg(&idl);
        omniidl.arg("-C").arg(folder);
        run(omniidl.arg(idl.join(format!("{stub}.idl"))));
    }
    for name in PROGRAMS {
        let mut compiler = Command::new("g++");
        compiler.args(["-w", "-fpermissive"]).args(FOUND);
        compiler.arg("-I").arg(source.join("src"));
        compiler.arg("-I").arg(folder);
        compiler.arg(source.join("examples").join(format!("{name}.cc")));
        compiler.arg(source.join("src/naming.cc"));
        compiler.args(STUBS.map(|stub| folder.join(format!("{stub}SK.cc"))));
        compiler.arg("-o").arg(folder.join(name));
        run(compiler.args(["-lomniORB4", "-lomniDynamic4", "-lomnithread"]));
    }
}

/// Starts one of the programs. It disconnects and connects again after each fifth event.
fn start(folder: &Path, name: &str, names: &Names, options: &[&str]) -> Running {
    let mut command = Command::new(folder.join(name));
    command.args(names.initial()).args(["-d", "5"]);
    Running::start(command.args(options))
}

/// Returns the numbers in the next lines of a consumer, and how many times it has connected.
fn consumed(consumer: &mut Running, count: usize) -> (Vec<u32>, usize) {
    let (mut numbers, mut connects) = (Vec::new(), 0);
    while numbers.len() < count {
        let line = consumer.line_with("");
        connects += usize::from(line.starts_with("Connected "));
        let number = line.split_once("Data : ").map(|(_, number)| number);
        numbers.extend(number.and_then(|number| number.trim().parse::<u32>().ok()));
    }
    (numbers, connects)
}

#[test]
fn example_programs_of_omni_events_use_our_channel_in_all_four_ways() {
    let Some(folder) = built() else {
        return;
    };
    let ways = [
        ("pushsupp", "pushcons"),
        ("pushsupp", "pullcons"),
        ("pullsupp", "pushcons"),
        ("pullsupp", "pullcons"),
    ];
    for (supplier, consumer) in ways {
        let names = Names::start();
        let bind = ["--bind", "EventChannel", "--names", &names.url];
        let mut channel = Running::start(
            deckwatch()
                .args(["channel", "--pull-period", "1"])
                .args(bind),
        );
        channel.line_with("IOR:");
        let mut taking = start(&folder, consumer, &names, &[]);
        let giving = start(&folder, supplier, &names, &[]);
        let (numbers, connects) = consumed(&mut taking, 23);
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "{supplier} to {consumer}: {numbers:?}"
        );
        assert!(connects >= 4, "{supplier} to {consumer}: {connects}");
        drop((taking, giving));
        channel.terminate();
        let (status, said) = channel.wait();
        assert!(status.success(), "{said:?}");
    }
}
