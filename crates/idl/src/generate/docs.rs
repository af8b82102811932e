//! Doc comments: the IDL file's comment above or after a definition, otherwise the definition's IDL name.

use crate::limits::DOC_SIZE_MAX;
use crate::text::source::{Sources, Span};

/// Returns the comment just above a definition, or after it on the same line.
pub(crate) fn comment(sources: &Sources, whole: Span) -> Option<String> {
    let text = &sources.file(whole.file).text;
    // Windows: each definition looks at a bounded number of octets.
    let first = text.floor_char_boundary((whole.start as usize).saturating_sub(DOC_SIZE_MAX));
    let last = text.floor_char_boundary((whole.end as usize).saturating_add(DOC_SIZE_MAX));
    let before = &text[first..whole.start as usize];
    let after = &text[whole.end as usize..last];
    above(before).or_else(|| behind(after))
}

fn above(before: &str) -> Option<String> {
    // A text in one line is not searched for the line's start: nothing but space stands before what has a comment.
    let space = &before[before.trim_end().len()..];
    let lines = &before[..before.len() - space.len() + space.rfind('\n')?];
    let lines = lines.trim_end_matches('\r');
    if let Some(block) = lines.strip_suffix("*/") {
        let start = block.rfind("/*")?;
        let body = block[start + 2..]
            .lines()
            .map(|line| line.trim().trim_start_matches('*').trim());
        return finished(body.collect::<Vec<_>>());
    }
    let mut comment: Vec<&str> = lines
        .rsplit('\n')
        .map_while(|line| line.trim().strip_prefix("//"))
        .map(|line| line.trim_start_matches('/').trim())
        .collect();
    comment.reverse();
    finished(comment)
}

fn behind(after: &str) -> Option<String> {
    let line = after.trim_start_matches([';', ',', ' ', '\t']);
    let line = line.strip_prefix("//")?.lines().next()?;
    finished(vec![line.trim_start_matches('/').trim()])
}

/// Returns the comment's text, escaped for documentation.
fn finished(lines: Vec<&str>) -> Option<String> {
    let text = lines.join("\n");
    let text = text.trim();
    if !text.contains(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '[' | ']' | '<' | '>' | '\\' | '*' | '_') {
            out.push('\\');
        }
        out.push(c);
    }
    // Documentation starts with a capital and ends with a full stop, even if the comment does not.
    let mut characters = out.chars();
    let first = characters.next()?;
    let mut out: String = first.to_uppercase().chain(characters).collect();
    if !out.ends_with(['.', ':', '!', '?', ';']) {
        out.push('.');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment_of(text: &str, word: &str) -> Option<String> {
        let mut sources = Sources::default();
        let file = sources.add("t.idl".into(), text.into());
        let start = text.find(word).unwrap() as u32;
        comment(
            &sources,
            Span {
                file,
                start,
                end: start + word.len() as u32,
            },
        )
    }

    #[test]
    fn comments_above_and_behind_become_documentation() {
        assert_eq!(
            comment_of("// one\n// two\n  struct", "struct").unwrap(),
            "One\ntwo."
        );
        assert_eq!(
            comment_of("/** one\n * two */\nstruct", "struct").unwrap(),
            "One\ntwo."
        );
        assert_eq!(
            comment_of("long a; // metres\n", "long a").unwrap(),
            "Metres."
        );
        assert_eq!(comment_of("long b; // other\nlong a;\n", "long a"), None);
        assert_eq!(comment_of("//////\nlong a;\n", "long a"), None);
    }
}
