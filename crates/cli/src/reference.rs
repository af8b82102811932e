//! References as arguments. An argument is the reference itself, a file that contains it, or `-` for standard input.

use std::io::Read;
use std::path::Path;

use anyhow::{Context as _, bail};
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_os::regular;
use deckwatch_text::escaped;

/// Returns the object of a reference, of a file that contains one, or of standard input (`-`).
pub(crate) fn target(orb: &Orb, text: &str) -> anyhow::Result<ObjectRef> {
    let text = read(text)?;
    let shown: String = text.chars().take(60).collect();
    let shown = escaped(&shown);
    let object = orb
        .string_to_object(&text)
        .with_context(|| format!("`{shown}` does not lead to an object"))?;
    object.with_context(|| format!("`{shown}` is nil: it leads to no object"))
}

/// Returns the text of a reference.
pub(crate) fn read(text: &str) -> anyhow::Result<String> {
    let mut found = String::new();
    let file = text.strip_prefix('@').unwrap_or(text);
    if file == "-" {
        read_all(std::io::stdin(), &mut found).context("cannot read standard input")?;
    } else if is_reference(text) {
        found = text.to_owned();
    } else {
        let read = regular::read_text(Path::new(file), REFERENCE_SIZE_MAX);
        found = read.with_context(|| {
            format!(
                "`{text}` is neither IOR:, corbaloc: nor corbaname:, and no file that holds one \
                 (`-` reads standard input)"
            )
        })?;
    }
    let found = found.trim();
    if !is_reference(found) {
        let held = match found.lines().next() {
            None => "it is empty".to_owned(),
            Some(line) => {
                let shown: String = line.chars().take(60).collect();
                format!("it begins with `{}`", escaped(&shown))
            }
        };
        let place = if file == "-" { "standard input" } else { file };
        bail!("{place} holds no reference (IOR:, corbaloc: or corbaname:): {held}");
    }
    Ok(found.to_owned())
}

/// Reads all text, up to the maximum size of a reference.
fn read_all(from: impl Read, text: &mut String) -> std::io::Result<()> {
    from.take(REFERENCE_SIZE_MAX + 1).read_to_string(text)?;
    if text.len() as u64 > REFERENCE_SIZE_MAX {
        let words = format!("it holds more than {REFERENCE_SIZE_MAX} octets");
        return Err(std::io::Error::other(words));
    }
    Ok(())
}

/// Maximum size of a file that contains a reference, in octets. A reference with many profiles, each with many
/// components, has some kilobytes.
const REFERENCE_SIZE_MAX: u64 = 1 << 20;

fn is_reference(text: &str) -> bool {
    let text = text.trim_start().to_ascii_lowercase();
    ["ior:", "corbaloc:", "corbaname:"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
}
