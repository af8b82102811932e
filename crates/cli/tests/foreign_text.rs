//! Text of others in what the commands print: no control character, no line that another forged, nothing invisible.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use deckwatch_giop::Ior;
use deckwatch_giop::ior::TaggedProfile;
use deckwatch_text::is_shown;

/// What forges a line, clears a terminal, reorders text and hides in it. It begins with a name.
pub(crate) const HOSTILE: &str = "x\nFORGED\r\u{1b}[31m\u{9b}2J\u{7f}\u{202e}\u{200b}\u{2066}y";

/// The same, as strings of TOML and JSON write it.
const QUOTED: &str = "x\\nFORGED\\r\\u001b[31m\\u009b2J\\u007f\\u202e\\u200b\\u2066y";

/// Checks what a command printed of a hostile text.
pub(crate) fn check(what: &str, output: &Output) {
    let printed = check_clean(what, output);
    assert!(printed.contains("FORGED"), "{what}: {printed}");
}

/// Checks what a command printed, which may leave a hostile text out. Returns it.
fn check_clean(what: &str, output: &Output) -> String {
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let printed = String::from_utf8(printed).expect("UTF-8");
    let odd = |c: &char| *c != '\n' && !is_shown(*c);
    assert_eq!(printed.chars().find(odd), None, "{what}: {printed:?}");
    let forged = printed
        .lines()
        .find(|line| line.trim().starts_with("FORGED"));
    assert_eq!(forged, None, "{what}: {printed}");
    printed
}

pub(crate) fn deckwatch(words: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.args(words).current_dir(root).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).output().expect("it starts")
}

/// A reference to nobody, whose type and host are hostile.
pub(crate) fn reference() -> String {
    let mut octets = vec![0, 1, 2, 0];
    let text = |octets: &mut Vec<u8>, text: &str| {
        octets.resize(octets.len().next_multiple_of(4), 0);
        let length = u32::try_from(text.len() + 1).expect("short");
        octets.extend(length.to_be_bytes());
        octets.extend(text.as_bytes());
        octets.push(0);
    };
    // Other characters are in no code set of an IOR.
    let hostile = HOSTILE.replace(|c: char| !c.is_ascii(), "");
    text(&mut octets, &hostile);
    octets.resize(octets.len().next_multiple_of(2), 0);
    octets.extend(9_u16.to_be_bytes());
    text(&mut octets, "key");
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets.extend(0_u32.to_be_bytes());
    let ior = Ior {
        type_id: format!("IDL:EventChannel{hostile}:1.0"),
        profiles: vec![TaggedProfile {
            tag: 0,
            data: octets,
        }],
    };
    ior.to_string()
}

/// A file, what it holds with `@` for [`QUOTED`] and `#` for [`HOSTILE`] itself, and a command that reads it as `FILE`.
const FILES: &[(&str, &str, &str)] = &[
    ("key.toml", "\"@\" = 1\n", "check FILE"),
    (
        "name.toml",
        "name = \"@\"\n[[hosts]]\nname = \"@\"\n",
        "check FILE",
    ),
    ("raw.toml", "name = #\n", "check FILE"),
    (
        "schedule.toml",
        "name = \"@\"\n\"@\" = 1\n[[operations]]\nname = \"@\"\n",
        "schedule FILE",
    ),
    (
        "good.toml",
        "name = \"@\"\n[[operations]]\nname = \"@\"\nworst_case = \"3ms\"\nperiod = \"7ms\"\n",
        "schedule FILE",
    ),
    (
        "access.toml",
        "\"@\" = 1\n[[rules]]\nwho = \"@\"\n",
        "names serve --access FILE",
    ),
    (
        "network.toml",
        "\"@\" = 1\n[[links]]\nhosts = [\"@\"]\n",
        "testbed up --network FILE",
    ),
    (
        "odd/carrier.toml",
        "\"@\" = 1\nname = \"odd\"\n",
        "carriers --adapters FOLDER",
    ),
    ("types.idl", "module # { };\n", "idl FILE"),
    ("include.idl", "#include \"#\"\n#error #\n", "idl FILE"),
    (
        "names.jsonl",
        "{\"@\": 1}\n",
        "names import --store FOLDER/new FILE",
    ),
    (
        "corbaname.ior",
        "corbaname::#:9#x/#",
        "names list --names FILE",
    ),
    ("whole.ior", "", "ior FILE"),
    ("far.ior", "", "names list --names FILE"),
    (
        "call.ior",
        "",
        "call FILE echo_string x --idl idl/deckwatch/echo.idl",
    ),
];

#[test]
fn hostile_files_print_no_line_and_no_control_character_of_their_own() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut faults = Vec::new();
    for (index, (name, content, line)) in FILES.iter().enumerate() {
        let folder = scratch.path().join(index.to_string());
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let content = match content.replace('@', QUOTED).replace('#', HOSTILE) {
            empty if empty.is_empty() => reference(),
            content => content,
        };
        std::fs::write(&file, content).expect("written");
        let (file, folder) = (file.display().to_string(), folder.display().to_string());
        let filled = |word: &str| word.replace("FILE", &file).replace("FOLDER", &folder);
        let words: Vec<String> = line.split(' ').map(filled).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = deckwatch(&words);
        let what = format!("{name}: {line}");
        let checked = std::panic::catch_unwind(|| match *name {
            // Who cannot be reached is named by the reference in hexadecimal.
            "far.ior" | "call.ior" => drop(check_clean(&what, &output)),
            _ => check(&what, &output),
        });
        faults.extend(checked.err());
    }
    assert!(faults.is_empty(), "{} commands print it", faults.len());
}
