//! The generated text of one file, by Rust modules. Rust opens a module once, so what later files of one Rust module
//! generate for a module moves into the text of the first file that opens it.

use std::collections::HashMap;

/// A part of the text of a module, or of the file.
#[derive(Debug)]
pub(super) enum Piece {
    /// One `use` item.
    Use(String),
    /// Whole items.
    Text(String),
    /// A module.
    Module(Module),
}

/// A Rust module.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) name: String,
    /// The text up to the opening brace, with the line end.
    pub(super) head: String,
    pub(super) body: Vec<Piece>,
    /// The spaces before its closing brace.
    pub(super) indent: usize,
}

/// Moves the contents of each module into the first file that opens it, in the order of the files.
pub(super) fn merge<'f>(files: impl Iterator<Item = &'f mut Vec<Piece>>) {
    let mut earlier: Vec<&mut Vec<Piece>> = Vec::new();
    let mut opened: HashMap<String, (usize, usize)> = HashMap::new();
    for file in files {
        let mut kept = Vec::new();
        for piece in std::mem::take(file) {
            match piece {
                Piece::Module(module) if opened.contains_key(&module.name) => {
                    let (file, index) = opened[&module.name];
                    if let Piece::Module(open) = &mut earlier[file][index] {
                        extend(&mut open.body, module);
                    }
                }
                piece => kept.push(piece),
            }
        }
        for (index, piece) in kept.iter().enumerate() {
            if let Piece::Module(module) = piece {
                opened.insert(module.name.clone(), (earlier.len(), index));
            }
        }
        *file = kept;
        earlier.push(file);
    }
}

/// Adds the pieces of a module that are not there yet.
fn extend(contents: &mut Vec<Piece>, module: Module) {
    let mut opened: HashMap<String, usize> = HashMap::new();
    for (index, piece) in contents.iter().enumerate() {
        if let Piece::Module(module) = piece {
            opened.insert(module.name.clone(), index);
        }
    }
    let is_there = |contents: &[Piece], text: &str| {
        let mut uses = contents.iter();
        uses.any(|piece| matches!(piece, Piece::Use(known) if known == text))
    };
    for piece in module.body {
        match piece {
            Piece::Module(module) if opened.contains_key(&module.name) => {
                if let Piece::Module(open) = &mut contents[opened[&module.name]] {
                    extend(&mut open.body, module);
                }
            }
            Piece::Use(text) if is_there(contents, &text) => {}
            piece => contents.push(piece),
        }
    }
}

/// Returns the number of octets of the pieces' text.
pub(super) fn len(pieces: &[Piece]) -> usize {
    let len = |piece: &Piece| match piece {
        Piece::Use(text) | Piece::Text(text) => text.len(),
        Piece::Module(module) => module.head.len() + len(&module.body) + module.indent + 2,
    };
    pieces.iter().map(len).sum()
}

/// Appends the text of the pieces.
pub(super) fn write(pieces: Vec<Piece>, out: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Use(text) | Piece::Text(text) => out.push_str(&text),
            Piece::Module(module) => {
                out.push_str(&module.head);
                write(module.body, out);
                out.extend(std::iter::repeat_n(' ', module.indent));
                out.push_str("}\n");
            }
        }
    }
}
