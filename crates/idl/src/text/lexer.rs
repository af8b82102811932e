//! Tokens of one file (CORBA 3.3 part 1, clause 7.2), without preprocessing.

use logos::Logos;

/// The kind of a token. Its text is in the source.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\x0b\x0c\u{feff}]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
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
    String,
    #[regex(r#"L"([^"\\\n]|\\[^\n])*""#, priority = 20)]
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

/// Extends the token to the end of its line.
fn directive(lexer: &mut logos::Lexer<'_, Kind>) {
    lexer.bump(directive_len(lexer.remainder()));
}

/// Returns the number of octets of a directive, up to the first line end that is neither in a comment nor after a
/// backslash.
fn directive_len(text: &str) -> usize {
    let octets = text.as_bytes();
    let mut at = 0;
    while at < octets.len() {
        match &octets[at..] {
            [b'\n', ..] => return at,
            [b'\\', b'\r', b'\n', ..] => at += 3,
            [b'\\', b'\n', ..] => at += 2,
            [b'/', b'*', rest @ ..] => {
                // An unterminated comment ends with its line. The lexer continues with the next line.
                let Some(end) = rest.windows(2).position(|pair| pair == b"*/") else {
                    return octets[at..]
                        .iter()
                        .position(|&o| o == b'\n')
                        .map_or(octets.len(), |end| at + end);
                };
                at += end + 4;
            }
            [b'/', b'/', ..] => {
                return octets[at..]
                    .iter()
                    .position(|&o| o == b'\n')
                    .map_or(octets.len(), |end| at + end);
            }
            _ => at += 1,
        }
    }
    octets.len()
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
    fn an_unfinished_comment_or_string_is_an_error_not_a_hang() {
        assert!(
            Kind::lexer("/* a").any(|token| token.is_err()) || kinds("/* a").contains(&Kind::Slash)
        );
        assert!(Kind::lexer("\"abc\n").any(|token| token.is_err()));
    }
}
