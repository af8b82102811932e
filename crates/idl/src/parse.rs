//! The parser's token cursor: the current token, expected tokens, recovery after errors, and names.

pub(crate) mod ast;
mod definition;
mod types;

use crate::limits::{NAME_SIZE_MAX, NESTING_MAX};
use crate::parse::ast::{Item, ItemKind, Name, ScopedName};
use crate::parse::definition::Place;
use crate::text::diagnostic::{Diagnostic, Reporter, quoted};
use crate::text::lexer::{Kind, describe};
use crate::text::preprocess::Token;
use crate::text::source::{FileId, Sources, Span};
use crate::text::words::{self, Word};

/// The error has been reported.
pub(crate) struct Reported;

pub(crate) type Parsed<T> = Result<T, Reported>;

pub(crate) struct Parser<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) reporter: &'a mut Reporter,
    pub(crate) tokens: &'a [Token],
    /// The current token, never a pragma nor the start or end of an included file.
    pub(crate) token: Token,
    /// The location of the previous token.
    pub(crate) previous: Span,
    pub(crate) at: usize,
    /// Pragmas and starts and ends of included files that were skipped since the last definition.
    pub(crate) passed: Vec<Item>,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Creates a parser. `tokens` must end with [`Kind::End`].
    pub(crate) fn new(
        sources: &'a Sources,
        tokens: &'a [Token],
        reporter: &'a mut Reporter,
    ) -> Self {
        let start = Span {
            file: FileId::MAIN,
            start: 0,
            end: 0,
        };
        let token = Token {
            kind: Kind::End,
            span: start,
        };
        let mut parser = Self {
            sources,
            reporter,
            tokens,
            token,
            previous: start,
            at: 0,
            passed: Vec::new(),
            depth: 0,
        };
        parser.advance();
        parser
    }

    /// Parses all definitions.
    pub(crate) fn specification(mut self) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            self.items(&mut items, Place::Module);
            if self.token.kind == Kind::End {
                items.append(&mut self.passed);
                return items;
            }
            self.report("a definition");
            self.advance();
        }
    }

    // Tokens.

    pub(crate) fn text(&self) -> &'a str {
        self.sources.text(self.token.span)
    }

    pub(crate) fn advance(&mut self) -> Span {
        let span = self.token.span;
        self.previous = span;
        while let Some(&token) = self.tokens.get(self.at) {
            self.token = token;
            if token.kind == Kind::End {
                break;
            }
            self.at += 1;
            let kind = match token.kind {
                Kind::Pragma => ItemKind::Pragma,
                Kind::FileStart => ItemKind::FileStart,
                Kind::FileEnd => ItemKind::FileEnd,
                _ => break,
            };
            self.passed.push(Item {
                kind,
                span: token.span,
            });
        }
        span
    }

    /// Splits `>>` where a single `>` is expected, as in `sequence<sequence<long>>`.
    pub(crate) fn split_shift(&mut self) {
        if self.token.kind == Kind::ShiftRight {
            let span = self.token.span;
            self.previous = Span {
                end: span.start + 1,
                ..span
            };
            self.token = Token {
                kind: Kind::AngleClose,
                span: Span {
                    start: span.start + 1,
                    ..span
                },
            };
        } else {
            self.advance();
        }
    }

    pub(crate) fn eat(&mut self, kind: Kind) -> bool {
        let there = self.token.kind == kind;
        if there {
            self.advance();
        }
        there
    }

    pub(crate) fn at_word(&self, word: Word) -> bool {
        self.token.kind == Kind::Word && words::keyword(self.text()) == Some(word)
    }

    pub(crate) fn eat_word(&mut self, word: Word) -> bool {
        let there = self.at_word(word);
        if there {
            self.advance();
        }
        there
    }

    pub(crate) fn expect(&mut self, kind: Kind) -> Parsed<Span> {
        if self.token.kind == kind {
            Ok(self.advance())
        } else {
            Err(self.report(describe(kind)))
        }
    }

    /// Reports that `expected` was expected instead of the current token.
    pub(crate) fn report(&mut self, expected: &str) -> Reported {
        let found = match self.token.kind {
            Kind::End => "the end of the file".to_owned(),
            _ => quoted(self.text()),
        };
        // A missing separator or closing bracket is reported just after the previous token.
        let missing = matches!(
            expected,
            "`;`" | "`)`" | "`}`" | "`,` or `)`" | "`,` or `}`"
        );
        let span = if missing {
            self.previous.after()
        } else {
            self.token.span
        };
        self.error(Diagnostic::new(
            span,
            format!("expected {expected}, found {found}"),
        ))
    }

    pub(crate) fn error(&mut self, error: Diagnostic) -> Reported {
        self.reporter.report(error);
        Reported
    }

    /// Runs a parser one nesting level deeper.
    pub(crate) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_MAX {
            let span = self.token.span;
            // The parser stops here: it would take inner definitions for outer ones.
            self.at = self.tokens.len() - 1;
            self.advance();
            return Err(self.error(Diagnostic::new(
                span,
                format!("this nests deeper than {NESTING_MAX} levels"),
            )));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Skips past the next `;` of this level, or up to the closing brace of the level.
    pub(crate) fn recover(&mut self) {
        let mut braces = 0_usize;
        loop {
            match self.token.kind {
                Kind::End => return,
                Kind::BraceOpen => braces += 1,
                Kind::BraceClose if braces == 0 => return,
                Kind::BraceClose => braces -= 1,
                Kind::Semicolon if braces == 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    // Names.

    /// Parses a name in a definition. A name that equals a keyword except for case is refused.
    pub(crate) fn name(&mut self) -> Parsed<Name> {
        self.any_name(words::same_letters)
    }

    fn any_name(&mut self, refused: impl Fn(&str) -> Option<&'static str>) -> Parsed<Name> {
        if self.token.kind != Kind::Word {
            return Err(self.report("a name"));
        }
        let (text, span) = (self.text(), self.token.span);
        let name = text.strip_prefix('_').unwrap_or(text);
        if !name.starts_with(|c: char| c.is_alphabetic()) {
            return Err(self.error(Diagnostic::new(
                span,
                format!("`{text}` is not a name: a name starts with a letter"),
            )));
        }
        if name == text
            && let Some(keyword) = refused(text)
        {
            let error = Diagnostic::new(
                span,
                format!("expected a name, found the keyword `{keyword}`"),
            );
            return Err(
                self.error(error.help(format!("write `_{text}` for a name with these letters")))
            );
        }
        if name.len() > NAME_SIZE_MAX {
            let text = format!("a name has at most {NAME_SIZE_MAX} octets");
            return Err(self.error(Diagnostic::new(span, text)));
        }
        self.advance();
        Ok(Name {
            text: name.to_owned(),
            escaped: name != text,
            span,
        })
    }

    pub(crate) fn scoped_name(&mut self) -> Parsed<ScopedName> {
        let start = self.token.span;
        let absolute = self.eat(Kind::Scope);
        let mut parts = vec![self.any_name(words::reserved)?];
        while self.eat(Kind::Scope) {
            parts.push(self.any_name(words::reserved)?);
        }
        Ok(ScopedName {
            absolute,
            parts,
            span: start.to(self.previous),
        })
    }

    pub(crate) fn scoped_names(&mut self) -> Parsed<Vec<ScopedName>> {
        let mut names = vec![self.scoped_name()?];
        while self.eat(Kind::Comma) {
            names.push(self.scoped_name()?);
        }
        Ok(names)
    }

    pub(crate) fn since(&self, start: Span) -> Span {
        start.to(self.previous)
    }
}
