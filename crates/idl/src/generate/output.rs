//! The generated text of one file, by Rust modules. Rust opens a module once, so what later files of one Rust module
//! generate for a module moves into the text of the first file that opens it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// A part of the text that was generated for a file. What moves is not copied before the texts are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// The index of the file.
    pub(super) file: usize,
    pub(super) range: Range<usize>,
}

impl Part {
    fn of<'t>(&self, texts: &'t [String]) -> &'t str {
        &texts[self.file][self.range.clone()]
    }
}

/// A part of the text of a module, or of the file.
#[derive(Debug)]
pub(super) enum Piece {
    /// One `use` item.
    Use(Part),
    /// Whole items.
    Text(Part),
    /// A module.
    Module(Module),
}

/// A Rust module.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) name: String,
    /// The text up to the opening brace, with the line end.
    pub(super) head: Part,
    pub(super) body: Vec<Piece>,
    /// The spaces before its closing brace.
    pub(super) indent: usize,
}

/// Returns the texts of all files of one Rust module, each with the pieces that belong to it. A text that keeps its
/// pieces and gets no others stays where it is in memory: it can be large.
pub(super) fn join(files: Vec<(String, Vec<Piece>)>) -> Vec<String> {
    let (mut texts, mut bodies): (Vec<String>, Vec<Vec<Piece>>) = files.into_iter().unzip();
    let changed = merge(&mut bodies, &texts).into_iter();
    let joined = changed.map(|file| {
        let mut text = String::new();
        write(&bodies[file], &texts, &mut text);
        (file, text)
    });
    for (file, text) in joined.collect::<Vec<_>>() {
        texts[file] = text;
    }
    texts
}

/// Moves the contents of each module into the first file that opens it, in the order of the files. Returns the files
/// that have other pieces than before.
fn merge(bodies: &mut [Vec<Piece>], texts: &[String]) -> BTreeSet<usize> {
    let mut changed = BTreeSet::new();
    let mut opened: HashMap<String, (usize, usize)> = HashMap::new();
    for file in 0..bodies.len() {
        let mut kept = Vec::new();
        for piece in std::mem::take(&mut bodies[file]) {
            match piece {
                Piece::Module(module) if opened.contains_key(&module.name) => {
                    let (first, index) = opened[&module.name];
                    if let Piece::Module(open) = &mut bodies[first][index] {
                        extend(&mut open.body, module, texts);
                    }
                    changed.extend([first, file]);
                }
                piece => kept.push(piece),
            }
        }
        for (index, piece) in kept.iter().enumerate() {
            if let Piece::Module(module) = piece {
                opened.insert(module.name.clone(), (file, index));
            }
        }
        bodies[file] = kept;
    }
    changed
}

/// Adds the pieces of a module that are not there yet.
fn extend(contents: &mut Vec<Piece>, module: Module, texts: &[String]) {
    let mut opened: HashMap<String, usize> = HashMap::new();
    for (index, piece) in contents.iter().enumerate() {
        if let Piece::Module(module) = piece {
            opened.insert(module.name.clone(), index);
        }
    }
    let is_there = |contents: &[Piece], part: &Part| {
        let mut uses = contents.iter();
        uses.any(|piece| matches!(piece, Piece::Use(known) if known.of(texts) == part.of(texts)))
    };
    for piece in module.body {
        match piece {
            Piece::Module(module) if opened.contains_key(&module.name) => {
                if let Piece::Module(open) = &mut contents[opened[&module.name]] {
                    extend(&mut open.body, module, texts);
                }
            }
            Piece::Use(part) if is_there(contents, &part) => {}
            piece => contents.push(piece),
        }
    }
}

/// Appends the text of the pieces.
fn write(pieces: &[Piece], texts: &[String], out: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Use(part) | Piece::Text(part) => out.push_str(part.of(texts)),
            Piece::Module(module) => {
                out.push_str(module.head.of(texts));
                write(&module.body, texts, out);
                out.extend(std::iter::repeat_n(' ', module.indent));
                out.push_str("}\n");
            }
        }
    }
}
