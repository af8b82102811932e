//! What the book quotes stands in the examples: a block of code that begins with "```LANGUAGE FILE" is a part of that
//! file.

mod first;

use std::path::Path;

/// Lines without the white space around them, so that a quotation may be indented as it reads best.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

struct Quotation<'b> {
    line: usize,
    file: &'b str,
    /// The lines, as they are.
    text: Vec<&'b str>,
}

/// The folder of the blocks that are whole files of the first program.
const FIRST: &str = "first/";

fn quotations(book: &str) -> Vec<Quotation<'_>> {
    let mut found: Vec<Quotation<'_>> = Vec::new();
    let mut inside = false;
    for (number, line) in book.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(info) if !inside => {
                inside = true;
                let file = info.split_once(' ').map_or("", |(_, file)| file);
                found.push(Quotation {
                    line: number + 1,
                    file,
                    text: Vec::new(),
                });
            }
            Some(_) => inside = false,
            None if inside => found.last_mut().unwrap().text.push(line),
            None => {}
        }
    }
    found.retain(|quotation| !quotation.file.is_empty());
    found
}

#[test]
fn the_book_quotes_the_examples_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for chapter in ["corba-in-rust.md", "real-time.md"] {
        let chapter = format!("docs/book/{chapter}");
        let book = std::fs::read_to_string(root.join(&chapter)).unwrap();
        let quotations = quotations(&book);
        assert!(quotations.len() >= 3, "{} quotations", quotations.len());
        let of_examples = quotations.iter().filter(|one| !one.file.starts_with(FIRST));
        for Quotation { line, file, text } in of_examples {
            let text: Vec<&str> = text.iter().map(|line| line.trim()).collect();
            let source = std::fs::read_to_string(root.join(file)).unwrap();
            let source = lines(&source);
            assert!(
                source.windows(text.len()).any(|window| window == text),
                "{chapter}:{line}: {file} does not say so any more"
            );
        }
    }
}

#[test]
fn every_example_stands_in_the_books_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = std::fs::read_to_string(root.join("../docs/book/corba-in-rust.md")).unwrap();
    for program in std::fs::read_dir(root.join("src/bin")).unwrap() {
        let program = program.unwrap().path();
        let name = program.file_stem().unwrap().to_str().unwrap();
        assert!(book.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// The first table whose heading begins with `head`.
fn rows<'b>(text: &'b str, head: &str) -> Vec<&'b str> {
    let from_head = text.lines().skip_while(|line| !line.starts_with(head));
    from_head.take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn the_books_page_of_types_is_the_specifications() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let (book, spec) = (read("docs/book/corba-in-rust.md"), read("spec/mapping.md"));
    let head = "| IDL | owned |";
    assert!(rows(&spec, head).len() > 20);
    assert_eq!(rows(&book, head), rows(&spec, head));
}
