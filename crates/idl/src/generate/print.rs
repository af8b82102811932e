//! Prints generated tokens as Rust text, some items at a time: their tokens are dropped once they are printed, so that the
//! memory of the generator is that of its text.
//!
//! Lines end after `;`, `{`, `}`, after the commas of a block, and after attributes. What stands in brackets is broken
//! at its commas if it does not fit its line.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The text so far, and the state at its end.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    text: String,
    /// The levels of indentation.
    indent: usize,
    /// Octets of the last line.
    column: usize,
    last: Last,
    /// Open angle brackets in the current list of tokens.
    angles: usize,
    /// Whether the parameters of a closure are being printed.
    in_closure: bool,
}

/// The last printed token, as far as the next one's distance depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// The start of a line.
    #[default]
    Line,
    /// A name or a literal.
    Word,
    /// A keyword that a type or an expression follows.
    Keyword,
    /// A token that the next one adjoins: `&`, `::`, an opening bracket.
    Adjoins,
    /// A token that a space follows.
    Spaced,
    /// A closing bracket.
    Close,
}

/// How a list of tokens is divided into lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All in one line.
    Flat,
    /// One element a line, divided by commas.
    List,
    /// Items, statements, fields or arms.
    Block,
}

/// Columns of a line, unless one token needs more.
const WIDTH: usize = 96;

/// Octets in brackets that are not broken wherever they stand.
const SHORT: usize = 16;

/// Octets of a block that stands in one line.
const BLOCK_WIDTH: usize = 48;

impl Printer {
    /// Creates a printer that goes on behind whole lines.
    pub(super) fn new(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Returns the number of octets printed.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Prints whole items, fields or arms.
    pub(super) fn put(&mut self, tokens: TokenStream) {
        self.list(&trees(tokens), Form::Block);
        if self.last != Last::Line {
            self.end_line();
        }
    }

    /// Prints what stands before a block, and opens the block.
    pub(super) fn open(&mut self, head: TokenStream) {
        self.enter(head, "{");
    }

    /// Closes the block that [`Printer::open`] opened.
    pub(super) fn close(&mut self) {
        self.leave("}");
    }

    /// Closes a block that stands in that many others.
    pub(super) fn close_to(&mut self, indent: usize) {
        self.indent = indent + 1;
        self.close();
    }

    /// Prints the start of a line, and then the opening bracket of a list that is divided into lines.
    pub(super) fn enter(&mut self, head: TokenStream, bracket: &str) {
        self.list(&trees(head), Form::Block);
        if bracket == "{" {
            self.space();
        }
        self.word(bracket, Last::Adjoins);
        self.indent += 1;
        self.end_line();
    }

    /// Closes the list that [`Printer::enter`] opened, and ends the line; `bracket` can have more text behind it.
    pub(super) fn leave(&mut self, bracket: &str) {
        self.indent -= 1;
        self.word(bracket, Last::Close);
        self.end_line();
    }

    fn end_line(&mut self) {
        self.text.push('\n');
        self.column = 0;
        self.last = Last::Line;
    }

    fn space(&mut self) {
        if self.last != Last::Line {
            self.text.push(' ');
            self.column += 1;
        }
    }

    fn word(&mut self, text: &str, last: Last) {
        if self.last == Last::Line {
            let spaces = self.indent * 4;
            self.text.extend(std::iter::repeat_n(' ', spaces));
            self.column = spaces;
        }
        self.text.push_str(text);
        self.column += text.len();
        self.last = last;
    }

    fn list(&mut self, tokens: &[Tree], form: Form) {
        let outer = (
            std::mem::take(&mut self.angles),
            std::mem::take(&mut self.in_closure),
        );
        let mut rest = tokens.iter().peekable();
        while let Some(token) = rest.next() {
            match token {
                Tree::Ident(ident) => self.ident(ident),
                Tree::Literal(literal) => {
                    if !matches!(self.last, Last::Adjoins) {
                        self.space();
                    }
                    self.word(literal, Last::Word);
                }
                Tree::Punct('#', _) if form != Form::Flat => match rest.next() {
                    Some(Tree::Group(_, attribute)) => self.attribute(attribute),
                    Some(other) => self.list(std::slice::from_ref(other), Form::Flat),
                    None => {}
                },
                Tree::Punct(first, spacing) => {
                    let pair = match rest.peek() {
                        Some(Tree::Punct(next, _)) if *spacing == Spacing::Joint => {
                            joined(*first, *next)
                        }
                        _ => None,
                    };
                    if let Some(pair) = pair {
                        rest.next();
                        self.operator(pair, form);
                    } else {
                        self.operator(first.encode_utf8(&mut [0; 4]), form);
                    }
                }
                Tree::Group(delimiter, inner) => {
                    let next = rest.peek();
                    let ends = form == Form::Block && !next.is_some_and(|next| continues(next));
                    self.group(*delimiter, inner, ends, form);
                }
            }
        }
        (self.angles, self.in_closure) = outer;
    }

    /// Prints an attribute in a line of its own; documentation as `///`.
    fn attribute(&mut self, tokens: &[Tree]) {
        if let [Tree::Ident(name), _, Tree::Literal(text), ..] = tokens
            && name == "doc"
            && let Some(text) = line_of(text)
        {
            self.word(&format!("///{text}"), Last::Close);
            return self.end_line();
        }
        self.word("#[", Last::Adjoins);
        self.list(tokens, Form::List);
        self.word("]", Last::Close);
        self.end_line();
    }

    fn ident(&mut self, text: &str) {
        let starts_item = self.last == Last::Line && matches!(text, "pub" | "impl");
        if starts_item && self.indent == 0 {
            self.text.push_str(ALLOW);
        }
        if matches!(
            self.last,
            Last::Word | Last::Keyword | Last::Spaced | Last::Close
        ) {
            self.space();
        }
        // What follows a lifetime stands apart, as after a keyword.
        let last = if KEYWORDS.contains(&text) || self.text.ends_with('\'') {
            Last::Keyword
        } else {
            Last::Word
        };
        self.word(text, last);
    }

    fn operator(&mut self, operator: &str, form: Form) {
        let is_after_value = matches!(self.last, Last::Word | Last::Close);
        match operator {
            "," | ";" => {
                self.word(operator, Last::Spaced);
                let ends = match form {
                    Form::Flat => false,
                    Form::List => operator == "," && self.angles == 0,
                    Form::Block => operator == ";" || self.angles == 0,
                };
                if ends && !self.in_closure {
                    self.end_line();
                }
            }
            "." | ".." => self.word(operator, Last::Adjoins),
            ":" => self.word(operator, Last::Spaced),
            "::" => {
                if matches!(self.last, Last::Keyword | Last::Spaced) {
                    self.space();
                }
                self.word(operator, Last::Adjoins);
            }
            "<" => {
                if matches!(self.last, Last::Keyword | Last::Spaced) {
                    self.space();
                }
                self.angles += 1;
                self.word(operator, Last::Adjoins);
            }
            ">" if self.angles > 0 => {
                self.angles -= 1;
                self.word(operator, Last::Close);
            }
            "?" if is_after_value => self.word(operator, Last::Close),
            "!" if is_after_value => self.word(operator, Last::Adjoins),
            "|" if self.in_closure => {
                self.in_closure = false;
                self.word(operator, Last::Spaced);
            }
            "|" if !is_after_value => {
                self.in_closure = true;
                self.adjoining(operator);
            }
            "||" if !is_after_value => {
                if self.last != Last::Adjoins {
                    self.space();
                }
                self.word(operator, Last::Spaced);
            }
            "&" | "*" | "-" | "!" | "'" | "?" | "@" | "#" => self.adjoining(operator),
            _ => {
                self.space();
                self.word(operator, Last::Spaced);
            }
        }
    }

    /// Prints an operator that adjoins what follows it.
    fn adjoining(&mut self, operator: &str) {
        if self.last != Last::Adjoins {
            self.space();
        }
        self.word(operator, Last::Adjoins);
    }

    fn group(&mut self, delimiter: Delimiter, tokens: &[Tree], ends: bool, form: Form) {
        let (open, close) = match delimiter {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => return self.list(tokens, Form::Flat),
        };
        let is_path = self.text.ends_with("::");
        let is_block = delimiter == Delimiter::Brace && !is_path;
        if match self.last {
            Last::Keyword | Last::Spaced => true,
            Last::Adjoins => is_block && self.text.ends_with('!'),
            _ => is_block,
        } {
            self.space();
        }
        let is_one_line = if is_block {
            form == Form::Flat
                || tokens.is_empty()
                || fits_block(tokens, WIDTH.saturating_sub(self.column))
        } else {
            form == Form::Flat || fits(tokens, WIDTH.saturating_sub(self.column).max(SHORT))
        };
        self.word(open, Last::Adjoins);
        if is_one_line {
            let inner = if is_block && !tokens.is_empty() {
                " "
            } else {
                ""
            };
            self.text.push_str(inner);
            self.list(tokens, Form::Flat);
            self.text.push_str(inner);
            self.column += 2 * inner.len();
        } else {
            self.indent += 1;
            self.end_line();
            self.list(tokens, if is_block { Form::Block } else { Form::List });
            if self.last != Last::Line {
                self.end_line();
            }
            self.indent -= 1;
        }
        self.word(close, Last::Close);
        if is_block && ends {
            self.end_line();
        }
    }
}

/// A token to be printed. The size of a group is looked at from outside: a list of this kind need not be copied for it.
enum Tree {
    Ident(String),
    Literal(String),
    Punct(char, Spacing),
    Group(Delimiter, Vec<Tree>),
}

fn trees(tokens: TokenStream) -> Vec<Tree> {
    let tree = |token| match token {
        TokenTree::Ident(ident) => Tree::Ident(ident.to_string()),
        TokenTree::Literal(literal) => Tree::Literal(literal.to_string()),
        TokenTree::Punct(punct) => Tree::Punct(punct.as_char(), punct.spacing()),
        TokenTree::Group(group) => {
            let (delimiter, tokens) = (group.delimiter(), group.stream());
            // A list that nothing else holds is not copied.
            drop(group);
            Tree::Group(delimiter, trees(tokens))
        }
    };
    tokens.into_iter().map(tree).collect()
}

/// Whether a token continues the statement or item whose block ends before it.
fn continues(token: &Tree) -> bool {
    match token {
        Tree::Punct(punct, _) => matches!(punct, '.' | '?' | ';' | ',' | '=' | '-'),
        Tree::Ident(ident) => ident == "else",
        _ => false,
    }
}

/// Returns the operator that two joined characters are.
fn joined(first: char, next: char) -> Option<&'static str> {
    Some(match (first, next) {
        (':', ':') => "::",
        ('-', '>') => "->",
        ('=', '>') => "=>",
        ('=', '=') => "==",
        ('!', '=') => "!=",
        ('|', '|') => "||",
        ('.', '.') => "..",
        _ => return None,
    })
}

/// Whether the tokens fit into a line with that many columns left.
fn fits(tokens: &[Tree], columns: usize) -> bool {
    let mut left = columns;
    takes(tokens, &mut left)
}

/// Reduces `left` by the columns of the tokens; returns false if they are too few.
fn takes(tokens: &[Tree], left: &mut usize) -> bool {
    tokens.iter().all(|token| {
        let size = match token {
            Tree::Group(_, inner) => {
                return left.checked_sub(2).is_some_and(|rest| {
                    *left = rest;
                    takes(inner, left)
                });
            }
            Tree::Ident(text) | Tree::Literal(text) => text.len() + 1,
            Tree::Punct(..) => 1,
        };
        left.checked_sub(size).is_some_and(|rest| {
            *left = rest;
            true
        })
    })
}

/// Whether a block is short, and an expression alone.
fn fits_block(tokens: &[Tree], columns: usize) -> bool {
    let is_statement = |token: &Tree| match token {
        Tree::Punct(punct, _) => matches!(punct, ';' | '#'),
        Tree::Ident(ident) => ident == "pub" || ident == "fn" || ident == "match",
        Tree::Group(delimiter, _) => *delimiter == Delimiter::Brace,
        Tree::Literal(_) => false,
    };
    fits(tokens, columns.min(BLOCK_WIDTH)) && !tokens.iter().any(is_statement)
}

/// Returns the text of a string literal, if it stands in one line and needs no escapes but those of quotes.
fn line_of(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => text.push(rest.next().filter(|c| matches!(c, '\\' | '"' | '\''))?),
            _ => text.push(c),
        }
    }
    Some(text)
}

/// The lints that generated code may violate.
const ALLOW: &str =
    "#[allow(dead_code, unreachable_pub, missing_docs, unused_imports, elided_lifetimes_in_paths)]
#[allow(clippy::all, clippy::pedantic)]
";

const KEYWORDS: &[&str] = &[
    "as", "dyn", "else", "for", "if", "in", "let", "match", "move", "mut", "return", "use", "where",
];
