//! Prints generated tokens as Rust text, some items at a time: their tokens are dropped once they are printed, so that the
//! memory of the generator is that of its text.
//!
//! Lines end after `;`, `{`, `}`, after the commas of a block, and after attributes. What stands in brackets is broken
//! at its commas if it does not fit its line.

use proc_macro2::{Delimiter, Spacing, TokenStream};

use super::flat::{Flat, Site, Slice, Tree};

/// The text so far, and the state at its end.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    text: String,
    /// The tokens that are being printed; kept for its room.
    flat: Flat,
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

    /// Returns the number of a template that is known already.
    pub(super) fn template(&self, site: Site) -> Option<usize> {
        self.flat.template(site)
    }

    /// Adds a template. Returns its number.
    pub(super) fn add_template(&mut self, site: Site, tokens: TokenStream) -> usize {
        self.flat.add_template(site, tokens)
    }

    /// Prints whole items, fields or arms.
    pub(super) fn put(&mut self, tokens: TokenStream) {
        self.block(tokens);
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
        self.block(head);
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

    fn block(&mut self, tokens: TokenStream) {
        let mut flat = std::mem::take(&mut self.flat);
        flat.add(tokens);
        self.list(flat.all(), Form::Block);
        flat.clear();
        self.flat = flat;
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
            self.column = self.indent * 4;
            indent(&mut self.text, self.column);
        }
        self.text.push_str(text);
        self.column += text.len();
        self.last = last;
    }

    fn list(&mut self, mut rest: Slice<'_>, form: Form) {
        let outer = (
            std::mem::take(&mut self.angles),
            std::mem::take(&mut self.in_closure),
        );
        while let Some(token) = rest.take_first() {
            match token {
                Tree::Ident(ident) => self.ident(ident),
                Tree::Literal(literal) => {
                    if !matches!(self.last, Last::Adjoins) {
                        self.space();
                    }
                    self.word(literal, Last::Word);
                }
                Tree::Punct(first, spacing) => match rest.first() {
                    Some(Tree::Group(_, inside)) if first == '#' && form != Form::Flat => {
                        rest.take_first();
                        self.attribute(inside);
                    }
                    Some(Tree::Punct(next, _))
                        if spacing == Spacing::Joint
                            && let Some(pair) = joined(first, next) =>
                    {
                        rest.take_first();
                        self.operator(pair, form);
                    }
                    _ => self.operator(first.encode_utf8(&mut [0; 4]), form),
                },
                Tree::Group(delimiter, inside) => {
                    let ends = form == Form::Block && !rest.first().is_some_and(continues);
                    self.group(delimiter, inside, ends, form);
                }
            }
        }
        (self.angles, self.in_closure) = outer;
    }

    /// Prints an attribute in a line of its own; documentation as `///`.
    fn attribute(&mut self, tokens: Slice<'_>) {
        let mut parts = tokens;
        if let (Some(Tree::Ident("doc")), Some(_), Some(Tree::Literal(text))) =
            (parts.take_first(), parts.take_first(), parts.take_first())
            && is_line(text)
        {
            self.word("///", Last::Close);
            push_line(&mut self.text, text);
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
        let last = if is_keyword(text) || self.text.ends_with('\'') {
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

    fn group(&mut self, delimiter: Delimiter, tokens: Slice<'_>, ends: bool, form: Form) {
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
            form == Form::Flat || tokens.fit(WIDTH.saturating_sub(self.column).max(SHORT))
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

/// Whether a token continues the statement or item whose block ends before it.
fn continues(token: Tree<'_>) -> bool {
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

/// Whether a block is short, and an expression alone.
fn fits_block(mut tokens: Slice<'_>, columns: usize) -> bool {
    if !tokens.fit(columns.min(BLOCK_WIDTH)) {
        return false;
    }
    while let Some(token) = tokens.take_first() {
        let is_statement = match token {
            Tree::Punct(punct, _) => matches!(punct, ';' | '#'),
            Tree::Ident(ident) => matches!(ident, "pub" | "fn" | "match"),
            Tree::Group(delimiter, _) => delimiter == Delimiter::Brace,
            Tree::Literal(_) => false,
        };
        if is_statement {
            return false;
        }
    }
    true
}

/// Returns what stands between the quotes of a string literal.
fn quoted(literal: &str) -> Option<&str> {
    literal.strip_prefix('"')?.strip_suffix('"')
}

/// Whether the text of a string literal stands in one line and needs no escapes but those of quotes.
fn is_line(literal: &str) -> bool {
    let Some(inner) = quoted(literal) else {
        return false;
    };
    let mut parts = inner.split('\\').skip(1);
    while let Some(part) = parts.next() {
        let is_plain = match part.chars().next() {
            // The second of two backslashes divides the text once more.
            None => parts.next().is_some(),
            Some(c) => matches!(c, '"' | '\''),
        };
        if !is_plain {
            return false;
        }
    }
    true
}

/// Appends the text of such a literal.
fn push_line(out: &mut String, literal: &str) {
    let mut rest = quoted(literal).unwrap_or_default();
    while let Some((before, escaped)) = rest.split_once('\\') {
        out.push_str(before);
        let mut characters = escaped.chars();
        out.extend(characters.next());
        rest = characters.as_str();
    }
    out.push_str(rest);
}

/// Appends spaces.
fn indent(out: &mut String, mut count: usize) {
    const SPACES: &str = "                                ";
    while count > 0 {
        let some = count.min(SPACES.len());
        out.push_str(&SPACES[..some]);
        count -= some;
    }
}

/// The lints that generated code may violate.
const ALLOW: &str =
    "#[allow(dead_code, unreachable_pub, missing_docs, unused_imports, elided_lifetimes_in_paths)]
#[allow(clippy::all, clippy::pedantic)]
";

/// Whether a name is a keyword that a type or an expression follows.
fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "as" | "dyn"
            | "else"
            | "for"
            | "if"
            | "in"
            | "let"
            | "match"
            | "move"
            | "mut"
            | "return"
            | "use"
            | "where"
    )
}
