//! Turns the files of a compilation into one sequence of tokens: runs `#include`, `#define` of names, and conditions.
//! A `#pragma` becomes a token. So do the start and end of an included file, which limit the scope of `#pragma prefix`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deckwatch_os::regular;
use logos::Logos;

use crate::limits::{
    CONDITION_DEPTH_MAX, FILE_SIZE_MAX, FILES_MAX, INCLUDE_DEPTH_MAX, MACRO_DEPTH_MAX,
    SOURCE_SIZE_MAX, TOKENS_MAX,
};
use crate::text::condition::Condition;
use crate::text::diagnostic::{self, Diagnostic, Reporter};
use crate::text::lexer::Kind;
use crate::text::source::{FileId, Sources, Span, decode};

/// A token and its location. A token from a macro has its location in the macro's definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// The folders in which included files are searched, and the predefined macro names.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders in which `#include`d files are searched. For `#include "..."`, the folder of the including file is
    /// searched first.
    pub include_paths: Vec<PathBuf>,
    /// Names to define, as `#define NAME VALUE` does.
    pub defines: Vec<(String, String)>,
}

/// Reads the files and runs the directives. Errors go to the reporter. The tokens always end with [`Kind::End`].
pub(crate) struct Preprocessor<'a> {
    options: &'a Options,
    /// Whether `#include` may read files; false if the main text is not from a file.
    disk: bool,
    sources: Sources,
    reporter: &'a mut Reporter,
    macros: HashMap<String, Arc<[Token]>>,
    tokens: Vec<Token>,
    /// Names that were replaced. Counted as tokens, since a macro's replacement can be empty.
    replaced: usize,
    size: usize,
    /// Set once a limit is exceeded; nothing more is read then.
    stopped: bool,
}

/// One `#if` that is not yet closed.
struct Branch {
    opened: Span,
    /// Whether the lines of the current branch are used.
    active: bool,
    /// Whether a branch has been used already, or none can be because the enclosing branch is inactive.
    decided: bool,
    in_else: bool,
}

impl<'a> Preprocessor<'a> {
    pub(crate) fn new(options: &'a Options, disk: bool, reporter: &'a mut Reporter) -> Self {
        Self {
            options,
            disk,
            sources: Sources::default(),
            reporter,
            macros: HashMap::new(),
            tokens: Vec::new(),
            replaced: 0,
            size: 0,
            stopped: false,
        }
    }

    /// Processes the main file and all files that it includes.
    pub(crate) fn run(mut self, path: PathBuf, text: Arc<str>) -> (Sources, Vec<Token>) {
        let main = self.sources.add(path, text);
        self.size = self.sources.file(main).text.len();
        if self.size > FILE_SIZE_MAX {
            self.stop(Diagnostic::without_place(format!(
                "the file is larger than {FILE_SIZE_MAX} octets"
            )));
        } else {
            self.define_options();
            self.file(main, 0);
        }
        let end = self.sources.file(main).text.len() as u32;
        self.tokens.push(Token {
            kind: Kind::End,
            span: Span {
                file: main,
                start: end,
                end,
            },
        });
        (self.sources, self.tokens)
    }

    fn define_options(&mut self) {
        for (name, value) in &self.options.defines {
            let file = self
                .sources
                .add("<definitions>".into(), value.as_str().into());
            let body = Kind::lexer(value)
                .spanned()
                .filter_map(|(kind, range)| {
                    let span = Span {
                        file,
                        start: range.start as u32,
                        end: range.end as u32,
                    };
                    kind.ok().map(|kind| Token { kind, span })
                })
                .collect();
            self.macros.insert(name.clone(), body);
        }
    }

    fn stop(&mut self, error: Diagnostic) {
        if !self.stopped {
            self.reporter.report(error);
        }
        self.stopped = true;
    }

    fn file(&mut self, file: FileId, depth: usize) {
        let text = Arc::clone(&self.sources.file(file).text);
        let mut branches: Vec<Branch> = Vec::new();
        for (kind, range) in Kind::lexer(&text).spanned() {
            if self.stopped || self.reporter.is_full() {
                return;
            }
            let span = Span {
                file,
                start: range.start as u32,
                end: range.end as u32,
            };
            let active = branches.last().is_none_or(|branch| branch.active);
            match kind {
                Ok(Kind::Directive) => self.directive(span, &text, &mut branches, depth),
                Ok(kind) if active => self.push(Token { kind, span }, 0),
                Err(()) if active || is_unclosed(&text[range.clone()]) => {
                    self.reporter.report(bad_text(span, &text[range]));
                }
                _ => {}
            }
        }
        if let Some(open) = branches.last() {
            self.reporter.report(Diagnostic::new(
                open.opened,
                "this condition has no `#endif`",
            ));
        }
    }

    /// Appends a token; a macro's name is replaced by the macro's tokens.
    fn push(&mut self, token: Token, depth: usize) {
        if self.tokens.len() + self.replaced >= TOKENS_MAX {
            return self.stop(Diagnostic::new(
                token.span,
                format!("there are more than {TOKENS_MAX} tokens"),
            ));
        }
        if token.kind == Kind::Word
            && !self.macros.is_empty()
            && let Some(body) = self.macros.get(self.sources.text(token.span))
        {
            if depth >= MACRO_DEPTH_MAX {
                return self.stop(Diagnostic::new(
                    token.span,
                    "this macro is defined by itself",
                ));
            }
            self.replaced += 1;
            for &inner in &*Arc::clone(body) {
                if self.stopped {
                    return;
                }
                self.push(inner, depth + 1);
            }
            return;
        }
        self.tokens.push(token);
    }

    fn directive(&mut self, span: Span, text: &str, branches: &mut Vec<Branch>, depth: usize) {
        let line = &text[span.start as usize..span.end as usize];
        let first = text[..span.start as usize]
            .rsplit('\n')
            .next()
            .unwrap_or("");
        let active = branches.last().is_none_or(|branch| branch.active);
        if !first.trim_start_matches('\u{feff}').trim().is_empty() {
            if active {
                self.reporter.report(Diagnostic::new(
                    span,
                    "a directive stands on a line of its own",
                ));
            }
            return;
        }
        let words = line_tokens(line, span);
        let name = words
            .first()
            .map_or("", |token| self.sources.text(token.span))
            .to_owned();
        let rest = words.get(1..).unwrap_or(&[]);
        match name.as_str() {
            "if" | "ifdef" | "ifndef" => self.open(span, &name, rest, branches),
            "elif" | "else" | "endif" => self.turn(span, &name, rest, branches),
            _ if !active => {}
            "include" => self.include(span, line, depth),
            "define" => self.define(span, rest),
            "undef" => {
                if let Some(name) = self.name(span, rest) {
                    self.macros.remove(&name);
                }
            }
            "pragma" => self.tokens.push(Token { kind: Kind::Pragma, span }),
            "error" => self.reporter.report(Diagnostic::new(span, "the file itself says that this is an error")),
            // A C preprocessor inserts `# 1 "file"`. `#line`, `#warning` and an empty `#` have no meaning here.
            "" | "line" | "warning" | "ident" => {}
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => {}
            _ => self.reporter.report(
                Diagnostic::new(span, format!("there is no directive `#{name}`"))
                    .help("known are include, define, undef, if, ifdef, ifndef, elif, else, endif, pragma and error"),
            ),
        }
    }

    fn open(&mut self, span: Span, name: &str, rest: &[Token], branches: &mut Vec<Branch>) {
        if branches.len() >= CONDITION_DEPTH_MAX {
            return self.stop(Diagnostic::new(
                span,
                format!("conditions nest deeper than {CONDITION_DEPTH_MAX}"),
            ));
        }
        let outside = branches.last().is_none_or(|branch| branch.active);
        let active = outside
            && match name {
                "if" => self.condition(span, rest),
                _ => self
                    .name(span, rest)
                    .is_some_and(|n| self.macros.contains_key(&n) == (name == "ifdef")),
            };
        branches.push(Branch {
            opened: span,
            active,
            decided: active || !outside,
            in_else: false,
        });
    }

    fn turn(&mut self, span: Span, name: &str, rest: &[Token], branches: &mut Vec<Branch>) {
        let Some(branch) = branches.last_mut() else {
            return self
                .reporter
                .report(Diagnostic::new(span, format!("`#{name}` without `#if`")));
        };
        if name == "endif" {
            branches.pop();
            return;
        }
        if branch.in_else {
            return self.reporter.report(
                Diagnostic::new(span, format!("`#{name}` after `#else`"))
                    .note(branch.opened, "of this condition"),
            );
        }
        branch.in_else = name == "else";
        let decided = branch.decided;
        let active = !decided && (name == "else" || self.condition(span, rest));
        if let Some(branch) = branches.last_mut() {
            branch.active = active;
            branch.decided |= active;
        }
    }

    fn condition(&mut self, span: Span, tokens: &[Token]) -> bool {
        let mut condition = Condition {
            tokens,
            sources: &self.sources,
            macros: &self.macros,
        };
        match condition.value() {
            Ok(value) => value != 0,
            Err(message) => {
                self.reporter.report(Diagnostic::new(span, message));
                false
            }
        }
    }

    fn name(&mut self, span: Span, rest: &[Token]) -> Option<String> {
        match rest.first() {
            Some(token) if token.kind == Kind::Word => {
                Some(self.sources.text(token.span).to_owned())
            }
            _ => {
                self.reporter.report(Diagnostic::new(
                    span,
                    "expected a name after this directive",
                ));
                None
            }
        }
    }

    fn define(&mut self, span: Span, rest: &[Token]) {
        let Some(name) = self.name(span, rest) else {
            return;
        };
        let body = &rest[1..];
        let adjoins = body.first().is_some_and(|token| {
            token.kind == Kind::ParenOpen && token.span.start == rest[0].span.end
        });
        if adjoins {
            let error = Diagnostic::new(
                span,
                format!("the macro `{name}` has parameters, which is not supported"),
            );
            return self
                .reporter
                .report(error.help("use a `const`, or a macro without parameters"));
        }
        self.macros.insert(name, body.into());
    }

    fn include(&mut self, span: Span, line: &str, depth: usize) {
        let Some((name, quoted)) = included_name(line) else {
            let error = Diagnostic::new(span, "expected a file name after `#include`");
            return self
                .reporter
                .report(error.help("write `#include \"file.idl\"` or `#include <file.idl>`"));
        };
        if depth >= INCLUDE_DEPTH_MAX {
            return self.stop(
                Diagnostic::new(
                    span,
                    format!("files include each other deeper than {INCLUDE_DEPTH_MAX}"),
                )
                .help("give the file a guard: `#ifndef NAME`, `#define NAME`, ..., `#endif`"),
            );
        }
        if self.sources.files().len() >= FILES_MAX {
            return self.stop(Diagnostic::new(
                span,
                format!("more than {FILES_MAX} files are included"),
            ));
        }
        let (path, text) = match self.find(span, name, quoted) {
            Ok(found) => found,
            Err(error) => return self.reporter.report(error),
        };
        self.size += text.len();
        if self.size > SOURCE_SIZE_MAX {
            return self.stop(Diagnostic::new(
                span,
                format!("all files together exceed {SOURCE_SIZE_MAX} octets"),
            ));
        }
        let file = self.sources.add(path, text);
        let end = self.sources.file(file).text.len() as u32;
        self.tokens.push(Token {
            kind: Kind::FileStart,
            span: Span {
                file,
                start: 0,
                end: 0,
            },
        });
        self.file(file, depth + 1);
        self.tokens.push(Token {
            kind: Kind::FileEnd,
            span: Span {
                file,
                start: end,
                end,
            },
        });
    }

    fn find(
        &self,
        span: Span,
        name: &str,
        quoted: bool,
    ) -> Result<(PathBuf, Arc<str>), Diagnostic> {
        if !self.disk {
            return builtin(name).ok_or_else(|| {
                Diagnostic::new(span, "a text that is not a file includes no others")
            });
        }
        let own = self
            .sources
            .file(span.file)
            .path
            .parent()
            .filter(|_| quoted);
        for folder in own
            .into_iter()
            .chain(self.options.include_paths.iter().map(PathBuf::as_path))
        {
            let path = folder.join(name);
            if path.is_file() {
                return match read(&path) {
                    Ok(text) => Ok((path, text)),
                    Err(message) => Err(Diagnostic::new(
                        span,
                        format!("`{}`: {message}", path.display()),
                    )),
                };
            }
        }
        builtin(name).ok_or_else(|| {
            let paths = &self.options.include_paths;
            let looked: Vec<String> = own
                .into_iter()
                .chain(paths.iter().map(PathBuf::as_path))
                .map(|p| format!("`{}`", folder_name(p)))
                .collect();
            let help = if looked.is_empty() {
                "no include path is given".into()
            } else {
                format!("looked in {}", looked.join(", "))
            };
            Diagnostic::new(
                span,
                format!("the file {} is not found", diagnostic::quoted(name)),
            )
            .help(help)
        })
    }
}

fn folder_name(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        ".".into()
    } else {
        path.display().to_string()
    }
}

/// Whether a refused text is a comment without an end, or a directive with one.
fn is_unclosed(what: &str) -> bool {
    what.starts_with("/*") || what.starts_with('#')
}

fn bad_text(span: Span, what: &str) -> Diagnostic {
    let first = what.strip_prefix('L').unwrap_or(what).chars().next();
    match first.unwrap_or(' ') {
        _ if is_unclosed(what) => {
            Diagnostic::new(span, "a comment that starts here has no end").help("close it by `*/`")
        }
        '"' => Diagnostic::new(span, "this string has no end on its line"),
        '\'' => Diagnostic::new(span, "this is not a character literal")
            .help("write one character, or an escape such as '\\n'"),
        first => Diagnostic::new(span, format!("the character {first:?} has no place in IDL")),
    }
}

/// Returns the tokens of a directive after its `#`, each with its location in the file.
fn line_tokens(line: &str, span: Span) -> Vec<Token> {
    // Line joints are replaced by as many spaces, so that offsets stay correct.
    let joined = line.replace("\\\r\n", "   ").replace("\\\n", "  ");
    Kind::lexer(&joined[1..])
        .spanned()
        .filter_map(|(kind, range)| {
            let base = span.start + 1;
            let span = Span {
                file: span.file,
                start: base + range.start as u32,
                end: base + range.end as u32,
            };
            kind.ok().map(|kind| Token { kind, span })
        })
        .collect()
}

/// Returns the name in `#include "name"` or `#include <name>`, and whether it is in quotes.
fn included_name(line: &str) -> Option<(&str, bool)> {
    let rest = line[1..].trim_start().strip_prefix("include")?.trim_start();
    let (end, quoted) = match rest.chars().next()? {
        '"' => ('"', true),
        '<' => ('>', false),
        _ => return None,
    };
    let name = &rest[1..];
    let name = &name[..name.find(end)?];
    (!name.is_empty()).then_some((name, quoted))
}

/// Returns the text of a file, if it is a regular file within the size limit.
pub(crate) fn read(path: &Path) -> Result<Arc<str>, String> {
    regular::read(path, FILE_SIZE_MAX as u64)
        .map(decode)
        .map_err(|error| error.to_string())
}

/// Returns the built-in `orb.idl` (CORBA 3.3 part 1, clause 7.19). `CORBA::TypeCode` is known without it.
fn builtin(name: &str) -> Option<(PathBuf, Arc<str>)> {
    (name == "orb.idl").then(|| (PathBuf::from("<orb.idl>"), Arc::from(ORB_IDL)))
}

/// The sequences of basic types that the standard defines in module CORBA.
const ORB_IDL: &str = "#ifndef DECKWATCH_ORB_IDL
#define DECKWATCH_ORB_IDL
#pragma prefix \"omg.org\"
module CORBA {
    typedef sequence<any> AnySeq;
    typedef sequence<boolean> BooleanSeq;
    typedef sequence<char> CharSeq;
    typedef sequence<wchar> WCharSeq;
    typedef sequence<octet> OctetSeq;
    typedef sequence<short> ShortSeq;
    typedef sequence<unsigned short> UShortSeq;
    typedef sequence<long> LongSeq;
    typedef sequence<unsigned long> ULongSeq;
    typedef sequence<long long> LongLongSeq;
    typedef sequence<unsigned long long> ULongLongSeq;
    typedef sequence<float> FloatSeq;
    typedef sequence<double> DoubleSeq;
    typedef sequence<string> StringSeq;
    typedef sequence<wstring> WStringSeq;
};
#endif
";

#[cfg(test)]
mod tests;
