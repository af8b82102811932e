//! Two channels, each with a gateway to zenoh: both programs, ours, as processes.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{Running, free_port, scratch};
use crate::names::deckwatch;

/// The gateway that DECKWATCH_GATEWAY names, or a counted skip.
fn gateway() -> Option<PathBuf> {
    let named = std::env::var_os("DECKWATCH_GATEWAY").map(PathBuf::from);
    if named.is_none() {
        let why = "DECKWATCH_GATEWAY names no gateway; `./dev gateway` builds and tests one";
        deckwatch_testkit::skip("gateway", why);
    }
    named
}

#[test]
fn an_event_that_was_published_on_one_channel_is_echoed_on_another_behind_zenoh() {
    let Some(program) = gateway() else {
        return;
    };
    let folder = scratch("gateway");
    let endpoint = format!("tcp/127.0.0.1:{}", free_port());
    let start = |name: &str, zenoh: &str| {
        let ior_file = folder.join(format!("{name}.ior"));
        let mut channel = Running::start(
            deckwatch()
                .args(["channel", "--real-time", "--ior-file"])
                .arg(&ior_file),
        );
        let ior = channel.line_with("IOR:");
        let file = folder.join(format!("{name}.toml"));
        let text = format!(
            "channel = \"{ior}\"\n[zenoh]\n{zenoh} = [\"{endpoint}\"]\n\
             [[map]]\ndirection = \"both\"\ntype = \"16..=99\"\nkey = \"ship/{{type}}/{{source}}\"\n"
        );
        std::fs::write(&file, text).expect("written");
        let mut gateway = Running::start(Command::new(&program).arg(&file));
        gateway.line_with("connected with the channel");
        (ior_file, channel, gateway)
    };
    let (near, _near_channel, near_gateway) = start("near", "listen");
    let (far, _far_channel, far_gateway) = start("far", "connect");
    let mut echo = Running::start(
        deckwatch()
            .args([
                "events", "echo", "--json", "--type", "17", "--count", "1", "--ior",
            ])
            .arg(&far),
    );
    // Until both sides of zenoh know of each other, an event is not heard.
    let publish = Running::start(
        deckwatch()
            .args(["events", "publish", "--event-type", "17", "--source", "3"])
            .args([
                "{type: \"long\", value: 7}",
                "--rate",
                "20/s",
                "--for",
                "60s",
                "--ior",
            ])
            .arg(&near),
    );
    let line = echo.line_with("{");
    assert!(
        line.contains("\"source\":3") || line.contains("\"source\": 3"),
        "{line}"
    );
    publish.terminate();
    for gateway in [near_gateway, far_gateway] {
        gateway.terminate();
        let (status, said) = gateway.wait();
        assert!(status.success(), "{said:?}");
        assert!(
            said.iter().any(|line| line.contains("received")),
            "{said:?}"
        );
    }
}
