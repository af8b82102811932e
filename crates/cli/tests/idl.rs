//! `deckwatch idl` as a user sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deckwatch(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("idl")
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn several_files_go_into_a_folder_and_refer_to_each_other() {
    let folder = scratch("idl-folder");
    let files = [
        "idl/omg/CosEventComm.idl",
        "idl/omg/CosEventChannelAdmin.idl",
    ];
    let output = deckwatch(&[files[0], files[1], "-o", folder.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let admin =
        std::fs::read_to_string(folder.join("CosEventChannelAdmin.rs")).expect("it is there");
    assert!(admin.contains("super::cos_event_comm::PushConsumer"));
    assert!(folder.join("CosEventComm.rs").is_file());
    let alone = deckwatch(&[files[1]]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("it is not known where its Rust is"));
    let without_folder = deckwatch(&[files[0], files[1]]);
    assert!(text(&without_folder.stderr).contains("several files go into a folder"));
}

#[test]
fn a_check_tells_of_every_file_and_makes_nothing() {
    let folder = scratch("idl-check");
    let broken = folder.join("broken.idl");
    std::fs::write(&broken, "struct S {\n  long a\n};\n").expect("a file");
    let good = deckwatch(&["--check", "idl/omg/CosNaming.idl", "idl/deckwatch/echo.idl"]);
    assert!(good.status.success() && good.stdout.is_empty() && good.stderr.is_empty());
    let bad = deckwatch(&["--check", broken.to_str().expect("UTF-8"), "none.idl"]);
    assert_eq!(bad.status.code(), Some(2));
    let told = text(&bad.stderr);
    assert!(
        told.contains(
            "broken.idl:2:9: error: expected `;`, found `}`\n  |\n2 |   long a\n  |         ^\n"
        ),
        "{told}"
    );
    assert!(told.contains("`none.idl`: "), "{told}");
}

/// The book states that no file of the project needs an include path.
#[test]
fn every_file_of_the_project_passes_the_check() {
    let idl = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../idl");
    for folder in ["omg", "deckwatch"] {
        let files = std::fs::read_dir(idl.join(folder)).expect("a folder");
        let files = files.map(|file| file.expect("a file").path());
        let files: Vec<PathBuf> = files.collect();
        let mut arguments = vec!["--check"];
        arguments.extend(files.iter().map(|file| file.to_str().expect("UTF-8")));
        let checked = deckwatch(&arguments);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
    }
}

#[test]
fn names_are_listed_for_people_and_for_programs() {
    let nav = "idl/deckwatch/nav.idl";
    let listed = text(&deckwatch(&["--list", nav]).stdout);
    assert!(
        listed.contains("struct    Nav::NavData  IDL:Nav/NavData:1.0  384 octets\n"),
        "{listed}"
    );
    let json: serde_json::Value =
        serde_json::from_slice(&deckwatch(&["--list", "--json", nav]).stdout).expect("JSON");
    let rows = json.as_array().expect("an array");
    assert!(
        rows.iter()
            .any(|row| row["name"] == "Nav::NavData" && row["size_bytes"] == 384)
    );
}

/// A hundred thousand members, or types, may take 500 MB. Memory grows as the text does, so a fifth of each may take a
/// fifth of that.
#[test]
fn many_members_and_many_types_compile_within_their_memory() {
    const COUNT: u32 = 20_000;
    const KILOBYTES: u32 = 100_000;
    let folder = scratch("idl-memory");
    let each = |part: &dyn Fn(u32) -> String| (0..COUNT).map(part).collect::<String>();
    let members = each(&|number| format!("string<300> a{number}; "));
    let types = each(&|number| format!("struct S{number} {{ long a; }}; "));
    for (name, idl) in [
        ("members", format!("struct S {{ {members} }};\n")),
        ("types", types),
    ] {
        let file = folder.join(name).with_extension("idl");
        std::fs::write(&file, idl).expect("a file");
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -d {KILOBYTES}; exec \"$@\""), "sh"])
            .args([env!("CARGO_BIN_EXE_deckwatch"), "idl", "-o"])
            .arg(file.with_extension("rs"))
            .arg(&file)
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let rust = std::fs::read_to_string(file.with_extension("rs")).expect("it is there");
        assert!(rust.contains(&(COUNT - 1).to_string()), "{name}");
    }
}
