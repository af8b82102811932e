//! Ports that other programs have: one that a user names, and all from which the kernel chooses.

use std::process::{Command, Output};

use crate::watched::Folder;

const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// In a network of its own, whose only port for the kernel to choose is taken, over UDP and TCP.
const TAKEN: &str = "\
    ip link set lo up && echo '40000 40000' >/proc/sys/net/ipv4/ip_local_port_range || exit 9
    \"$0\" load net --serve 127.0.0.1:40000 --for 60s >/dev/null 2>&1 & taken=$!
    until grep -q ':9C40 ' /proc/net/tcp && grep -q ':9C40 ' /proc/net/udp; do kill -0 $taken || exit 8; done
    ";

/// Runs a shell script where all ports are taken. Returns `None` and counts a skip where that is not permitted.
fn where_ports_are_taken(folder: &Folder, script: &str) -> Option<Output> {
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "sh", "-c", script, DECKWATCH]);
        command.current_dir(folder.path()).env("NO_COLOR", "1");
        command.output()
    };
    if !unshared("ip link set lo up").is_ok_and(|tried| tried.status.success()) {
        deckwatch_testkit::skip("namespaces", "a network of its own is not permitted");
        return None;
    }
    let whole = format!("{TAKEN}{script}\nkill $taken");
    Some(unshared(&whole).expect("it runs"))
}

/// Two hosts of this machine, one of them reached by a command. Hosts of an emulated network have ports of their own.
fn mission() -> String {
    format!(
        "name = \"m\"\n\
         hosts = [{{ name = \"A\", address = \"127.0.0.1\" }},\n\
         {{ name = \"B\", reach = [\"env\"], address = \"127.0.0.1\", program = \"{DECKWATCH}\" }}]\n\
         [[flows]]\nname = \"f\"\noctets = 64\nfrom = \"A\"\nto = [\"B\"]\ncarrier = \"udp\"\nrate_hz = 100\n\
         deadline = \"100ms\"\nlate = \"1 in 10\"\ncount = 10\n"
    )
}

#[test]
fn where_no_port_is_free_instruments_end_with_status_2_the_place_and_no_result() {
    let folder = Folder::new("busy-ports");
    std::fs::write(folder.path().join("m.toml"), mission()).expect("writable");
    let sizes = "--sizes=64 --iterations=1 --messages=10 --output result";
    let (named, none) = ("127.0.0.1:40000 (", "no port is free");
    let commands = [
        ("load net --serve 127.0.0.1:40000".to_owned(), named),
        ("clock --serve 127.0.0.1:40000".to_owned(), named),
        ("clock 127.0.0.1:9".to_owned(), none),
        (format!("sweep --carriers=udp {sizes}"), none),
        (format!("sweep --carriers=tcp {sizes}"), none),
        (
            format!("sweep --hosts m.toml --from A --to B {sizes}"),
            none,
        ),
        (format!("overhead --carriers=corba {sizes}"), none),
        ("run m.toml --output result".to_owned(), none),
    ];
    let script: String = commands
        .iter()
        .map(|(words, _)| {
            format!(
                "echo \"== {words}\"; \"$0\" {words} 2>&1; echo \"status $?\"\n\
                 test -e result/result.json && echo 'a result'; rm -rf result\n"
            )
        })
        .collect();
    let Some(output) = where_ports_are_taken(&folder, &script) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Vec<&str> = text.split("== ").skip(1).collect();
    assert_eq!(told.len(), commands.len(), "{text}");
    for (told, (words, place)) in told.into_iter().zip(&commands) {
        assert!(told.starts_with(words), "{told}");
        assert!(told.contains("\nerror: "), "{told}");
        assert!(told.contains("Address already in use"), "{told}");
        assert!(told.contains(place), "{told}");
        assert!(told.trim_end().ends_with("status 2"), "{told}");
    }
}
