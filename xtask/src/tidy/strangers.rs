//! The page "What a stranger can cost", generated from the `limits.rs` of all crates.
//!
//! A bound that a stranger can reach has a paragraph of this form in its doc comment:
//!
//! ```text
//! /// Share: what one peer may hold of it | seen: what a peer at its share gets | test: crates/x/tests/y.rs::name
//! ```
//!
//! Several tests are separated by commas. The page shows the first sentence of the comment, and the total as computed
//! from the constant.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{BinOp, Expr, ItemConst, Lit};

use super::clauses::Tests;
use super::{Breach, Source};

const PAGE: &str = "docs/book/what-a-stranger-can-cost.md";

const HEAD: &str = "\
# What a stranger can cost

<!-- `cargo xtask strangers` writes this page from the `limits.rs` of each crate. -->

A stranger is any process that reaches a server: it need not keep to the protocol, and it may open as many connections
as it likes. Each table, queue and buffer that it can fill has a bound, and one peer may hold only a share of it. A peer
is the name in a certificate over TLS, else an IPv4 address, an IPv6 network of 64 bits, or a user of the server's host,
whatever the number of its processes and connections. At its share a peer is refused, and all others are served as
before.

Each row names the test that takes the whole share as one peer and is served as another. A bound of one message, such as
the profiles of a reference, is the same for each peer: its test reads a message at the bound and has one beyond it
refused.
";

/// The bounds of strangers, as far as their form is right; a breach for each other one, and for a page that is stale.
pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<Breach> {
    let (page, mut breaches) = page(sources);
    let written = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    if written != page {
        let stale = "the page differs from the limits: run cargo xtask strangers";
        breaches.push(Breach::new(Path::new(PAGE), 1, stale));
    }
    breaches
}

/// Writes the page.
pub(super) fn write(root: &Path, sources: &[Source]) -> Result<Vec<Breach>> {
    let (page, breaches) = page(sources);
    std::fs::write(root.join(PAGE), page).context(PAGE)?;
    Ok(breaches)
}

fn page(sources: &[Source]) -> (String, Vec<Breach>) {
    let limits = Limits::read(sources);
    let mut tests = Tests::new(sources);
    let (mut page, mut breaches) = (HEAD.to_owned(), Vec::new());
    for (name, file) in &limits.files {
        let mut rows = Vec::new();
        for (constant, item) in &file.constants {
            let doc = Doc::of(item);
            let Some(stated) = &doc.stranger else {
                continue;
            };
            match row(&limits, name, item, &doc.first, stated, &mut tests) {
                Ok(row) => rows.push(row),
                Err(fault) => {
                    let line = item.ident.span().start().line;
                    let text = format!("{constant}: {fault}");
                    breaches.push(Breach::new(&file.source.path, line, text));
                }
            }
        }
        if !rows.is_empty() {
            page += &format!("\n## `{name}`\n\n");
            page += "| bound | in all | one peer | a peer at its share sees | test |\n";
            page += "| --- | --- | --- | --- | --- |\n";
            page.extend(rows);
        }
    }
    (page, breaches)
}

fn row(
    limits: &Limits<'_>,
    crate_name: &str,
    item: &ItemConst,
    first: &str,
    stated: &str,
    tests: &mut Tests<'_>,
) -> std::result::Result<String, String> {
    const FORM: &str = "write Share: ... | seen: ... | test: path::function";
    let parts: Vec<&str> = stated.split(" | ").collect();
    let [share, seen, named] = parts[..] else {
        return Err(FORM.to_owned());
    };
    let part = |text: &str, word: &str| {
        let rest = text.strip_prefix(word).map(str::trim);
        let rest = rest.filter(|rest| !rest.is_empty());
        rest.map(str::to_owned).ok_or_else(|| FORM.to_owned())
    };
    let (share, seen) = (part(share, "Share:")?, part(seen, "seen:")?);
    let mut links = Vec::new();
    for test in part(named, "test:")?.split(',').map(str::trim) {
        tests.find(test)?;
        let (path, function) = test.rsplit_once("::").unwrap_or_default();
        links.push(format!("[`{function}`](../../{path})"));
    }
    let total = limits.total(crate_name, item)?;
    let (constant, links) = (&item.ident, links.join(", "));
    let plain = |text: &str| text.replace("[`", "`").replace("`]", "`");
    let [first, share, seen] = [first, &share, &seen].map(plain);
    Ok(format!(
        "| {first} `{constant}` | {total} | {share} | {seen} | {links} |\n"
    ))
}

/// The doc comment of a constant.
struct Doc {
    /// Its first sentence.
    first: String,
    /// The paragraph that begins with `Share:`.
    stranger: Option<String>,
}

impl Doc {
    fn of(item: &ItemConst) -> Self {
        let mut paragraphs = vec![String::new()];
        for attribute in &item.attrs {
            let syn::Meta::NameValue(pair) = &attribute.meta else {
                continue;
            };
            let Expr::Lit(literal) = &pair.value else {
                continue;
            };
            let Lit::Str(text) = &literal.lit else {
                continue;
            };
            let line = text.value();
            let line = line.trim();
            if line.is_empty() {
                paragraphs.push(String::new());
            } else if let Some(last) = paragraphs.last_mut() {
                *last += if last.is_empty() { "" } else { " " };
                *last += line;
            }
        }
        let first = paragraphs[0].split_inclusive(". ").next();
        Self {
            first: first.unwrap_or_default().trim().to_owned(),
            stranger: paragraphs
                .into_iter()
                .find(|paragraph| paragraph.starts_with("Share:")),
        }
    }
}

/// The `limits.rs` of one crate.
struct File<'s> {
    source: &'s Source,
    /// In the order of the file.
    constants: Vec<(String, ItemConst)>,
}

struct Limits<'s> {
    files: BTreeMap<String, File<'s>>,
}

/// The value of a constant.
#[derive(Clone, Copy)]
enum Value {
    Count(u128),
    Nanoseconds(u128),
}

impl<'s> Limits<'s> {
    fn read(sources: &'s [Source]) -> Self {
        let mut files = BTreeMap::new();
        for source in sources {
            let Some(name) = source.crate_name() else {
                continue;
            };
            if !source.path.ends_with("src/limits.rs") {
                continue;
            }
            let Ok(file) = syn::parse_file(&source.text) else {
                continue;
            };
            let constants = file.items.into_iter().filter_map(|item| match item {
                syn::Item::Const(item) => Some((item.ident.to_string(), item)),
                _ => None,
            });
            let constants = constants.collect();
            files.insert(name.to_owned(), File { source, constants });
        }
        Self { files }
    }

    /// The value of a constant with its unit.
    fn total(&self, crate_name: &str, item: &ItemConst) -> std::result::Result<String, String> {
        let value = self.value(crate_name, &item.expr);
        let value = value.ok_or("its value is no sum of numbers and of other limits")?;
        let is_size = item.ident.to_string().contains("SIZE");
        let is_percent = item.ident.to_string().contains("PERCENT");
        Ok(match value {
            Value::Nanoseconds(ns) if ns % 1_000_000_000 == 0 => {
                format!("{} s", ns / 1_000_000_000)
            }
            Value::Nanoseconds(ns) => format!("{} ms", ns / 1_000_000),
            Value::Count(count) if is_size => size(count),
            Value::Count(count) if is_percent => format!("{count} %"),
            Value::Count(count) => grouped(count),
        })
    }

    fn value(&self, crate_name: &str, expression: &Expr) -> Option<Value> {
        let count = |expression: &Expr| match self.value(crate_name, expression)? {
            Value::Count(count) => Some(count),
            Value::Nanoseconds(_) => None,
        };
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => number.base10_parse().ok().map(Value::Count),
                _ => None,
            },
            Expr::Paren(inner) => self.value(crate_name, &inner.expr),
            Expr::Cast(inner) => self.value(crate_name, &inner.expr),
            Expr::Binary(both) => {
                let (left, right) = (count(&both.left)?, count(&both.right)?);
                let result = match both.op {
                    BinOp::Add(_) => left.checked_add(right),
                    BinOp::Sub(_) => left.checked_sub(right),
                    BinOp::Mul(_) => left.checked_mul(right),
                    BinOp::Div(_) => left.checked_div(right),
                    BinOp::Shl(_) => left.checked_shl(right.try_into().ok()?),
                    _ => None,
                };
                result.map(Value::Count)
            }
            Expr::Call(call) => {
                let Expr::Path(path) = &*call.func else {
                    return None;
                };
                let unit = match path.path.segments.last()?.ident.to_string().as_str() {
                    "from_secs" => 1_000_000_000,
                    "from_millis" => 1_000_000,
                    "from_micros" => 1_000,
                    _ => return None,
                };
                Some(Value::Nanoseconds(unit * count(call.args.first()?)?))
            }
            Expr::Path(path) => {
                let segments = path.path.segments.iter();
                let names: Vec<String> = segments.map(|part| part.ident.to_string()).collect();
                let other = names[0].strip_prefix("deckwatch_");
                let other = other.filter(|_| names.len() > 1).unwrap_or(crate_name);
                let file = self.files.get(other)?;
                let mut all = file.constants.iter();
                let (_, item) = all.find(|(name, _)| Some(name) == names.last())?;
                self.value(other, &item.expr)
            }
            _ => None,
        }
    }
}

/// Octets in the largest unit that divides them.
fn size(octets: u128) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fitting = units
        .iter()
        .find(|(unit, _)| octets != 0 && octets.is_multiple_of(*unit));
    fitting.map_or_else(
        || format!("{} octets", grouped(octets)),
        |(unit, name)| format!("{} {name}", grouped(octets / unit)),
    )
}

/// A number with a comma between each three digits.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn page_of(limits: &str) -> (String, Vec<String>) {
        let source = |path: &str, text: &str| Source {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        let sources = [
            source("crates/cdr/src/limits.rs", "pub const UNIT: usize = 1_000;"),
            source("crates/orb/src/limits.rs", limits),
            source("crates/orb/tests/a.rs", "#[test]\nfn is_held() {}\n"),
        ];
        let (page, breaches) = page(&sources);
        let rows = page.strip_prefix(HEAD).expect("the head").to_owned();
        (rows, breaches.iter().map(ToString::to_string).collect())
    }

    fn bound(stated: &str, constant: &str) -> String {
        format!("/// Octets of [`X`]. More.\n///\n/// {stated}\npub const {constant};\n")
    }

    const HELD: &str = "Share: a half | seen: an\n/// end | test: crates/orb/tests/a.rs::is_held";

    #[test]
    fn bound_is_a_row_with_its_computed_total() {
        for (constant, total) in [
            ("A_SIZE: usize = (4 + 2 * 6) << 20", "16 MiB"),
            ("A_SIZE: usize = 1_025", "1,025 octets"),
            ("A_MAX: usize = 12 * deckwatch_cdr::limits::UNIT", "12,000"),
            ("A_WAIT: Duration = Duration::from_secs(3)", "3 s"),
            ("A_WAIT: Duration = Duration::from_millis(30)", "30 ms"),
            ("A_PERCENT: u8 = 25", "25 %"),
        ] {
            let (rows, breaches) = page_of(&bound(HELD, constant));
            assert_eq!(breaches, [""; 0]);
            let name = constant.split(':').next().unwrap();
            let row = format!(
                "| Octets of `X`. `{name}` | {total} | a half | an end | \
                 [`is_held`](../../crates/orb/tests/a.rs) |\n"
            );
            assert!(rows.starts_with("\n## `orb`\n\n|"), "{rows}");
            assert!(rows.ends_with(&row), "{rows}");
        }
    }

    #[test]
    fn bound_in_another_form_or_without_its_test_is_refused() {
        for (stated, fault) in [
            (
                "Share: a half",
                "write Share: ... | seen: ... | test: path::function",
            ),
            (
                "Share: a half | seen: | test: crates/orb/tests/a.rs::is_held",
                "write Share: ... | seen: ... | test: path::function",
            ),
            (
                "Share: a half | seen: an end | test: crates/orb/tests/a.rs::is_lost",
                "crates/orb/tests/a.rs has no test is_lost",
            ),
            (
                "Share: a half | seen: an end | test: crates/orb/tests/b.rs::is_held",
                "there is no file crates/orb/tests/b.rs",
            ),
        ] {
            let (rows, breaches) = page_of(&bound(stated, "A_MAX: usize = 1"));
            assert_eq!(rows, "");
            let expected = format!("crates/orb/src/limits.rs:4: A_MAX: {fault}");
            assert_eq!(breaches, [expected]);
        }
        let (_, breaches) = page_of(&bound(
            HELD,
            "A_MAX: usize = if cfg!(loom) { 1 } else { 2 }",
        ));
        assert_eq!(breaches.len(), 1);
    }

    #[test]
    fn bound_that_no_stranger_reaches_has_no_row() {
        let (rows, breaches) = page_of("/// Octets. More.\npub const A_SIZE: usize = 1;\n");
        assert_eq!((rows.as_str(), breaches.len()), ("", 0));
    }

    #[test]
    fn page_that_differs_from_the_limits_is_refused() {
        let root = std::env::temp_dir().join(format!("strangers-{}", std::process::id()));
        std::fs::create_dir_all(root.join("docs/book")).unwrap();
        let stale = check(&root, &[]);
        assert_eq!(stale.len(), 1, "there is none");
        assert!(write(&root, &[]).unwrap().is_empty());
        assert!(check(&root, &[]).is_empty());
        std::fs::remove_dir_all(root).unwrap();
    }
}
