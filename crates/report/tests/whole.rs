//! Files that are written whole or not at all.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{PermissionsExt, symlink};

use deckwatch_report::{write_private, write_whole};

#[test]
fn a_pipe_is_written_to_and_not_replaced_and_a_link_stays_one() {
    let folder = std::env::temp_dir().join(format!("deckwatch-whole-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let (file, link, pipe) = (folder.join("f"), folder.join("l"), folder.join("p"));
    symlink(&file, &link).expect("writable");
    std::fs::write(&file, "old").expect("writable");
    write_whole(&link, "new").expect("writable");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "new");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo is there").success());
    let options = || File::options().read(true).write(true).open(&pipe);
    let mut reader = options().expect("a pipe that has a writer, too");
    write_whole(&pipe, "new").expect("writable");
    let mut heard = [0; 3];
    reader.read_exact(&mut heard).expect("readable");
    assert_eq!(&heard, b"new");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 3);
    std::fs::remove_dir_all(&folder).expect("removable");
}

/// As `/dev/stdout` leads to a pipe.
#[test]
fn what_leads_to_an_open_pipe_is_written_through() {
    let name = format!("deckwatch-through-{}", std::process::id());
    let link = std::env::temp_dir().join(name);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    symlink(format!("/proc/self/fd/{}", writer.as_raw_fd()), &link).expect("writable");
    write_whole(&link, "new").expect("writable");
    drop(writer);
    assert!(link.is_symlink());
    std::fs::remove_file(&link).expect("removable");
    let mut heard = String::new();
    reader.read_to_string(&mut heard).expect("readable");
    assert_eq!(heard, "new");
}

#[test]
fn a_file_is_replaced_and_keeps_its_permissions_and_nothing_is_left_beside() {
    let folder = std::env::temp_dir().join(format!("deckwatch-replaced-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("f");
    write_whole(&file, "old").expect("writable");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("ours");
    write_whole(&file, "new").expect("writable");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "new");
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(write_whole(&folder.join("none/f"), "new").is_err());
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1);
    std::fs::remove_dir_all(&folder).expect("removable");
}

#[test]
fn a_private_file_is_its_users_also_if_one_was_there() {
    let folder = std::env::temp_dir().join(format!("deckwatch-private-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let (new, old) = (folder.join("new"), folder.join("old"));
    write_whole(&old, "old").expect("writable");
    for file in [&new, &old] {
        write_private(file, "new").expect("writable");
        assert_eq!(std::fs::read_to_string(file).expect("a file"), "new");
        let permissions = std::fs::metadata(file).expect("a file").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600, "{file:?}");
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 2);
    std::fs::remove_dir_all(&folder).expect("removable");
}
