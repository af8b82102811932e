//! Tokens of one file (CORBA 3.3 part 1, clause 7.2), without preprocessing.

use logos::Logos;

/// The kind of a token. Its text is in the source.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\x0b\x0c\u{feff}]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip(r"/\*", comment))]
pub(crate) enum Kind {
    /// An identifier or a keyword; the parser distinguishes them.
    #[regex(r"[\p{Alphabetic}_][\p{Alphabetic}0-9_]*")]
    Word,
    #[regex(r"0[xX][0-9a-fA-F]+|[0-9]+")]
    Integer,
    #[regex(r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")]
    Float,
    #[regex(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)[dD]")]
    Fixed,
    #[regex(r"'([^'\\\n]|\\[^\n][0-9a-fA-F]*)'")]
    Char,
    #[regex(r"L'([^'\\\n]|\\[^\n][0-9a-fA-F]*)'", priority = 20)]
    WideChar,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    #[regex(r#""([^"\\\n]|\\[^\n])*"#, |_| false)]
    // without its end: an error of its whole length
    String,
    #[regex(r#"L"([^"\\\n]|\\[^\n])*""#, priority = 20)]
    #[regex(r#"L"([^"\\\n]|\\[^\n])*"#, |_| false, priority = 19)]
    WideString,
    #[token("::")]
    Scope,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("<")]
    AngleOpen,
    #[token(">")]
    AngleClose,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(",")]
    Comma,
    #[token("=")]
    Equals,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("&")]
    Ampersand,
    #[token("|")]
    Bar,
    #[token("^")]
    Caret,
    #[token("~")]
    Tilde,
    #[token("!")]
    Bang,
    #[token("@")]
    At,
    #[token("?")]
    Question,
    #[token(".")]
    Dot,
    #[token("\\")]
    Backslash,
    /// A whole line that starts with `#`, with its continuation lines (joined by backslashes).
    #[token("#", directive)]
    Directive,
    /// A `#pragma` that this compiler knows, inserted by the preprocessor.
    Pragma,
    /// The start of an included file, inserted by the preprocessor.
    FileStart,
    /// The end of an included file, inserted by the preprocessor.
    FileEnd,
    /// The end of the input.
    End,
}

/// Skips a comment to its end. A comment without an end is an error that extends to the end of the text, so that no
/// octet is searched twice.
fn comment(lexer: &mut logos::Lexer<'_, Kind>) -> Result<(), ()> {
    let len = comment_len(lexer.remainder());
    lexer.bump(len.unwrap_or(lexer.remainder().len()));
    len.map(drop).ok_or(())
}

/// Returns the number of octets up to the end of a comment whose start is read.
fn comment_len(text: &str) -> Option<usize> {
    text.find("*/").map(|end| end + 2)
}

/// Extends the token to the end of its line. A comment without an end is an error, as in [`comment`].
fn directive(lexer: &mut logos::Lexer<'_, Kind>) -> bool {
    let len = directive_len(lexer.remainder());
    lexer.bump(len.unwrap_or(lexer.remainder().len()));
    len.is_some()
}

/// Returns the number of octets of a directive, up to the first line end that is neither in a comment nor after a
/// backslash. Returns `None` if a comment in it has no end.
fn directive_len(text: &str) -> Option<usize> {
    let octets = text.as_bytes();
    let mut at = 0;
    while at < octets.len() {
        match &octets[at..] {
            [b'\n', ..] => return Some(at),
            [b'\\', b'\r', b'\n', ..] => at += 3,
            [b'\\', b'\n', ..] => at += 2,
            [b'/', b'*', ..] => at += 2 + comment_len(&text[at + 2..])?,
            [b'/', b'/', ..] => {
                let end = octets[at..].iter().position(|&octet| octet == b'\n');
                return Some(end.map_or(octets.len(), |end| at + end));
            }
            _ => at += 1,
        }
    }
    Some(octets.len())
}

/// Returns the description of a token kind for error messages.
pub(crate) fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Word => "a name",
        Kind::Integer => "an integer",
        Kind::Float => "a floating-point number",
        Kind::Fixed => "a fixed-point number",
        Kind::Char => "a character",
        Kind::WideChar => "a wide character",
        Kind::String => "a string",
        Kind::WideString => "a wide string",
        Kind::Scope => "`::`",
        Kind::ShiftLeft => "`<<`",
        Kind::ShiftRight => "`>>`",
        Kind::BraceOpen => "`{`",
        Kind::BraceClose => "`}`",
        Kind::ParenOpen => "`(`",
        Kind::ParenClose => "`)`",
        Kind::BracketOpen => "`[`",
        Kind::BracketClose => "`]`",
        Kind::AngleOpen => "`<`",
        Kind::AngleClose => "`>`",
        Kind::Semicolon => "`;`",
        Kind::Colon => "`:`",
        Kind::Comma => "`,`",
        Kind::Equals => "`=`",
        Kind::Plus => "`+`",
        Kind::Minus => "`-`",
        Kind::Star => "`*`",
        Kind::Slash => "`/`",
        Kind::Percent => "`%`",
        Kind::Ampersand => "`&`",
        Kind::Bar => "`|`",
        Kind::Caret => "`^`",
        Kind::Tilde => "`~`",
        Kind::Bang => "`!`",
        Kind::At => "`@`",
        Kind::Question => "`?`",
        Kind::Dot => "`.`",
        Kind::Backslash => "`\\`",
        Kind::Directive => "a directive",
        Kind::Pragma => "a pragma",
        Kind::FileStart | Kind::FileEnd => "the edge of a file",
        Kind::End => "the end of the file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        Kind::lexer(text).map(|token| token.unwrap()).collect()
    }

    #[test]
    fn literals_are_told_apart() {
        use Kind::*;
        assert_eq!(
            kinds(r#"12 0x1F 017 1.5 .5e3 1e9 1.5d 3D 'a' '\n' '\x41' L'a' "a\"b" L"x" Long L"#),
            [
                Integer, Integer, Integer, Float, Float, Float, Fixed, Fixed, Char, Char, Char,
                WideChar, String, WideString, Word, Word
            ]
        );
    }

    #[test]
    fn comments_are_skipped_and_directives_are_lines() {
        use Kind::*;
        let text = "a // b\n/* c **/ d #x y \\\n z /* \n */ w\n e #f // \\\ng";
        assert_eq!(kinds(text), [Word, Word, Directive, Word, Directive, Word]);
    }

    #[test]
    fn what_has_no_end_is_one_error_of_its_whole_length() {
        for text in [
            "/* a /* b /*",
            "#define A /* b\n#/*\n#/*",
            r#""a\"b\"c"#,
            r#"L"a\"b\"c"#,
        ] {
            let tokens: Vec<_> = Kind::lexer(text).spanned().collect();
            assert_eq!(tokens, [(Err(()), 0..text.len())], "{text}");
        }
        let tokens: Vec<_> = Kind::lexer("\"abc\nd").spanned().collect();
        assert_eq!(tokens, [(Err(()), 0..4), (Ok(Kind::Word), 5..6)]);
    }
}
