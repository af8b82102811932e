//! Record files that are damaged while a run goes on: the flow that they belong to is INVALID, for a reason with the part
//! and its host, and all other flows are judged.

use std::os::unix::fs::symlink;
use std::path::Path;

use deckwatch_meter::result::VerdictKind;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::watched::WatchedRun;

/// Flow, file of its records, how that is damaged, and the part that it is of.
type Damage = (&'static str, &'static str, fn(&Path), &'static str);

const DAMAGES: [Damage; 5] = [
    ("GARBAGE", "1-0.records", garbage, "consumer on SONAR"),
    ("EMPTY", "2-0.records", empty, "consumer on SONAR"),
    ("GONE", "3-supplier.records", |_| (), "supplier on RTS"),
    ("PIPE", "4-supplier.records", pipe, "supplier on RTS"),
    ("ENDLESS", "5-0.records", endless, "consumer on SONAR"),
];

fn garbage(file: &Path) {
    std::fs::write(file, [0x5a; 9_000]).expect("written");
}

fn empty(file: &Path) {
    std::fs::write(file, "").expect("written");
}

fn pipe(file: &Path) {
    mkfifoat(CWD, file, Mode::RUSR | Mode::WUSR).expect("a FIFO");
}

fn endless(file: &Path) {
    symlink("/dev/zero", file).expect("a link");
}

#[test]
fn damaged_records_of_a_part_invalidate_its_flow_and_no_other() {
    let names = ["WHOLE"].into_iter().chain(DAMAGES.map(|(name, ..)| name));
    let flow = |name: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nfrom = \"RTS\"\nto = [\"SONAR\"]\ncarrier = \"udp\"\noctets = 64\n\
             rate_hz = 50\ndeadline = \"900ms\"\nlate = \"1 in 10\"\nduration = \"2s\"\n"
        )
    };
    let flows: String = names.map(flow).collect();
    let hosts = "hosts = [{ name = \"RTS\" }, { name = \"SONAR\" }]";
    let mission = format!("name = \"damaged\"\n{hosts}\n{flows}");
    let run = WatchedRun::start("damaged", &mission, &[]);
    // The part goes on to write into its file, which has no name any more.
    for (_, file, damage, _) in DAMAGES {
        let file = run.work().join(file);
        std::fs::remove_file(&file).expect("its records");
        damage(&file);
    }
    let finished = run.finish();
    assert!(
        finished.document.deaths.is_empty(),
        "{:?}",
        finished.document.deaths
    );
    for (name, file, _, part) in DAMAGES {
        let flow = finished.flow(name);
        let verdict = &flow.destinations[0].verdict;
        assert_eq!(verdict.kind, VerdictKind::Invalid, "{name}: {verdict:?}");
        assert_eq!(flow.verdict.kind, VerdictKind::Invalid, "{name}");
        let begin = format!("The records of the {part} cannot be used: ");
        assert!(
            verdict.reasons[0].starts_with(&begin),
            "{name}: {verdict:?}"
        );
        assert!(verdict.reasons[0].contains(file), "{name}: {verdict:?}");
        let mut warnings = finished.document.warnings.iter();
        let is_told = warnings.any(|one| one.text.contains(file) && one.text.contains(name));
        assert!(is_told, "{name}: {:?}", finished.document.warnings);
    }
    let whole = finished.flow("WHOLE");
    let counts = whole.destinations[0].counts;
    assert_eq!((counts.due, counts.lost), (100, 0), "{whole:?}");
    let names_records = |reason: &String| reason.contains("The records of");
    let is_touched = whole.verdict.reasons.iter().any(names_records);
    assert!(!is_touched, "{:?}", whole.verdict);
    assert_eq!(finished.status, Some(4));
}
