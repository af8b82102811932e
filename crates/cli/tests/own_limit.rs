//! RLIMIT_RTTIME ends a part whose real-time thread never blocks. The run names the limit.

use deckwatch_meter::result::VerdictKind;

use super::watched::WatchedRun;

/// The consumer works for three periods on each message, so that the next one always waits for its thread. The limit is
/// 1 s and twice `handle_for`. The schedule ends soon after it, so that without the limit no processor is lost for long.
const NEVER_BLOCKS: &str = r#"
name = "never blocks"
network = { preset = "loopback" }

[[hosts]]
name = "RTS"
processors = [0]

[[hosts]]
name = "SONAR"
processors = [1]
scheduling = { class = "fifo", native_priority = 10 }

[[flows]]
name = "NAV"
octets = 384
from = "RTS"
to = ["SONAR"]
carrier = "udp"
rate_hz = 100
handle_for = "30ms"
deadline = "100ms"
late = "1 in 10"
count = 150
warm_up = "100ms"
"#;

pub(super) fn check() {
    let finished = WatchedRun::start("never-blocks", NEVER_BLOCKS, &[]).finish();
    let part = "consumer of NAV over udp at SONAR";
    let how = "ended by its own limit (RLIMIT_RTTIME): a thread in a real-time class ran for 1000 ms, and twice \
               `handle_for`, without blocking";
    let deaths = &finished.document.deaths;
    let [death] = deaths.as_slice() else {
        panic!("not one death, but {deaths:?}: {:#?}", finished.said);
    };
    assert_eq!(death.process, part);
    assert!(death.how.starts_with(how), "{death:?}");
    let told = format!("The {part} died: {how}");
    assert!(
        finished.said.iter().any(|line| line.contains(&told)),
        "{:#?}",
        finished.said
    );
    let verdict = &finished.document.verdict;
    assert!(verdict.kind >= VerdictKind::Fail, "{verdict:?}");
    assert_eq!(finished.status, Some(finished.status_of_verdict()));
}
