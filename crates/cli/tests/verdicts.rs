//! `deckwatch verdicts` in its short form, and its table in the book.

use std::path::PathBuf;
use std::process::Command;

fn deckwatch(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn no_verdict_at_the_edge_is_wrong_more_often_than_in_5_percent_of_runs() {
    let printed = deckwatch(&["verdicts", "--quick", "--runs", "40", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let missions = document["missions"].as_array().expect("missions");
    assert_eq!(missions.len(), 120);
    let mut plain = 0;
    for mission in missions {
        let number = |key: &str| mission[key].as_u64().expect("a number");
        let limit = number("limit");
        assert!(limit < 12, "{mission}");
        assert!(
            number("pass") <= limit && number("fail") <= limit,
            "{mission}"
        );
        plain = plain.max(number("pass_if_independent"));
    }
    assert!(plain > 20, "the uncorrected rule is not wrong: {plain}");
}

#[test]
fn the_book_has_the_numbers_of_the_table() {
    let book =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/how-sure-a-verdict-is.md");
    let book = std::fs::read_to_string(book).expect("the chapter");
    // A fifth of the whole work is enough to notice another rule: rows of 10,000 messages take minutes here.
    let table = deckwatch(&["verdicts", "--messages", "1000"]);
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let of = |text: &str| -> Vec<Vec<String>> {
        text.lines()
            .filter(|line| line.starts_with('|') && !line.starts_with("|-"))
            .map(cells)
            .collect()
    };
    let (printed, mut kept) = (of(&table), of(&book));
    kept.retain(|row| ["messages", "1,000"].contains(&&*row[3]));
    assert_eq!(printed.len(), 1 + 4 * 3);
    assert_eq!(printed, kept);
    let below: Vec<&str> = table
        .lines()
        .filter(|line| line.contains('.') && !line.starts_with('|'))
        .collect();
    assert_eq!(below.len(), 2, "{table}");
    assert!(below.iter().all(|line| book.contains(line)), "{below:?}");
}
