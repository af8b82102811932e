//! Pressure by `stress-ng`, against the kernel's counters of its processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deckwatch_load::{LoadError, LoadPlan, LoadReport, Stop, StressPlan, Work};

const MIB: u64 = 1 << 20;

fn run(plan: StressPlan) -> Result<LoadReport, LoadError> {
    let plan = LoadPlan {
        work: Work::Stress(plan),
        lifetime: Duration::from_millis(3_300),
    };
    deckwatch_load::run(&plan, &Stop::default(), &mut |_| ())
}

/// An empty folder on a disk, not in memory.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("writable");
    folder
}

#[test]
fn the_memory_that_was_asked_for_is_resident_and_the_program_reports_its_own_figures() {
    if deckwatch_testkit::program("stress-ng").is_none() {
        return;
    }
    let size_bytes = 96 * MIB;
    let report = run(StressPlan::Memory { size_bytes }).expect("enough memory");
    let [held] = &report.held[..] else {
        panic!("one memory: {report}")
    };
    let asked = size_bytes as f64;
    assert_eq!(held.asked, Some(asked));
    assert!(held.max >= asked && held.max < asked * 1.02, "{held}");
    let stressed = report.stressed.as_ref().expect("its figures");
    assert!(stressed.operations > 0 && !stressed.version.is_empty());
    assert_eq!(stressed.written_octets_per_s, None);
    let shown = report.to_string();
    assert!(
        shown.contains("asked 96.0 MiB, achieved mean ") && shown.contains("bogo operations"),
        "{shown}"
    );
}

#[test]
fn a_disk_is_written_and_the_folder_is_left_as_it_was() {
    if deckwatch_testkit::program("stress-ng").is_none() {
        return;
    }
    let path = folder("load-disk");
    // Of a load that was killed: no process has this number.
    std::fs::create_dir(path.join("deckwatch-load-4194999-0")).expect("writable");
    let plan = StressPlan::Disk {
        path: path.clone(),
        size_bytes: 4 * MIB,
    };
    let report = run(plan).expect("enough room");
    assert!(report.held[0].max > 0.0, "{report}");
    assert_eq!(report.held[0].is_held(), None, "no target");
    let stressed = report.stressed.expect("its figures");
    assert!(stressed.written_octets_per_s.is_some_and(|it| it > 0.0));
    let left = std::fs::read_dir(&path).expect("readable").count();
    assert_eq!(left, 0, "files of the load");
}

#[test]
fn more_than_the_machine_has_is_refused_with_what_it_can_give() {
    let size_bytes = 1 << 50;
    let error = run(StressPlan::Memory { size_bytes }).expect_err("too much");
    let said = error.to_string();
    assert!(
        said.contains("512 MiB of them stay for the rest of the machine. Write at most "),
        "{said}"
    );
    let path = folder("load-disk-full");
    let error = run(StressPlan::Disk { path, size_bytes }).expect_err("too much");
    assert!(matches!(error, LoadError::DiskRoom { .. }), "{error}");
    let absent = PathBuf::from("/nonexistent");
    let error = run(StressPlan::Disk {
        path: absent,
        size_bytes: MIB,
    });
    assert!(matches!(error, Err(LoadError::Folder { .. })));
    assert!(matches!(
        run(StressPlan::Memory { size_bytes: MIB }),
        Err(LoadError::MemorySize)
    ));
}
