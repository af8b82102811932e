//! Each example is run as a user would, and must print what its own header says.

use std::process::Command;

/// What stands in the ```` ```text ```` block of a program's header.
fn promised(source: &str) -> String {
    source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .skip_while(|line| line.trim() != "```text")
        .skip(1)
        .take_while(|line| line.trim() != "```")
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

fn prints_what_it_promises(program: &str, source: &str) {
    let promised = promised(source);
    assert!(!promised.is_empty(), "the header promises nothing");
    let ended = Command::new(program).output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{:?}: {errors}", ended.status);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), promised, "{errors}");
}

macro_rules! examples {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                prints_what_it_promises(
                    env!(concat!("CARGO_BIN_EXE_", stringify!($name))),
                    include_str!(concat!("../src/bin/", stringify!($name), ".rs")),
                );
            }
        )+

        /// A program that stands in the folder and is not run would be one that nobody keeps true.
        #[test]
        fn every_example_is_run() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin");
            let mut found: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, [$(concat!(stringify!($name), ".rs")),+]);
        }
    };
}

examples!(
    any,
    asynchronous,
    callback,
    echo,
    exceptions,
    factory,
    interceptors,
    lanes,
    naming,
    oneway,
    poa_policies,
    servant_locator,
    timeouts
);
