//! Bursts of datagrams that no send buffer holds: their supplier waits for room, and the late ones are the network's.

use deckwatch_meter::result::Warning;
use deckwatch_meter::sample::Layer;

use super::watched::WatchedRun;
use super::watched::disturbance::Failure;
use super::{failure, found};

/// Bursts larger than the send buffer, on links that are slower than the processor.
fn mission() -> String {
    let flow = |name: &str, from: &str, to: &str, deadline_ms: u32| {
        format!(
            "[[flows]]\nname = \"{name}\"\noctets = 60000\nfrom = \"{from}\"\nto = [\"{to}\"]\ncarrier = \"udp\"\n\
             arrivals = \"bursts\"\nburst_size = 40\nperiod = \"500ms\"\ndeadline = \"{deadline_ms}ms\"\n\
             late = \"1 in 10\"\ncount = 120\nwarm_up = \"500ms\"\n"
        )
    };
    format!(
        "name = \"burst\"\nnetwork = {{ preset = \"fast-ethernet\" }}\n\
         hosts = [{{ name = \"RTS\" }}, {{ name = \"SONAR\" }}, {{ name = \"SHORE\" }}, {{ name = \"RADAR\" }}]\n{}{}",
        flow("TRACK", "RTS", "SONAR", 400),
        flow("SHORT", "SHORE", "RADAR", 100)
    )
}

pub(super) fn check() -> Result<(), Failure> {
    let finished = WatchedRun::start("burst", &mission(), &[]).finish();
    let mut wrong = Vec::new();
    for name in ["TRACK", "SHORT"] {
        let counts = finished.flow(name).destinations[0].counts;
        if counts.send_errors != 0 || counts.lost != 0 {
            wrong.push(format!("{name}: {counts:?}"));
        }
    }
    // One warning for each of them, or one that counts both.
    let waits = |warning: &&Warning| warning.kind == "send-waits";
    let warned = finished.document.warnings.iter().filter(waits);
    let suppliers: usize = warned
        .map(|warning| 1 + usize::from(warning.text.starts_with("At 2 processes,")))
        .sum();
    if suppliers != 2 {
        wrong.push(format!("{:?}", finished.document.warnings));
    }
    // The link takes 5 ms for each message, so about half of a burst is late. The supplier's own time is that of 40
    // calls, and what other processes take from it meanwhile.
    let short = finished.flow("SHORT");
    let late = found(finished.samples_of(short));
    let is_network = |blame: &Option<Layer>| *blame == Some(Layer::Network);
    let layers = &short.destinations[0].late_layers_ns;
    let of = |layer: Layer| layers.get(layer.name()).copied().unwrap_or(0);
    let is_kept = of(Layer::Sender) < of(Layer::Network) / 5;
    if late.len() < 40 || !late.values().all(is_network) || !is_kept {
        wrong.push(format!("{late:?}; layers when late {layers:?}"));
    }
    failure(wrong, &finished)
}
