//! Files of at most 600 lines and functions of at most 70, tests apart (a table of cases is long and harmless);
//! `xtask/exempt.toml` lists the rest and may only shrink.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::Visit;

use super::{Breach, Source};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

#[derive(Deserialize)]
struct Exemptions {
    /// `path::function` to the lines it has now.
    #[serde(default)]
    functions: BTreeMap<String, usize>,
}

pub(super) fn check(root: &Path, sources: &[Source]) -> Result<Vec<Breach>> {
    let text = std::fs::read_to_string(root.join("xtask/exempt.toml"))
        .context("xtask/exempt.toml is missing")?;
    let exemptions: Exemptions = toml::from_str(&text)?;
    let mut breaches = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_leaf())
    {
        let Ok(file) = syn::parse_file(&source.text) else {
            breaches.push(Breach::new(&source.path, 1, "does not parse as Rust"));
            continue;
        };
        let lines = source.text.lines().count() - test_lines(&file);
        if lines > FILE_LINES_MAX {
            breaches.push(Breach::new(
                &source.path,
                1,
                format!("{lines} lines without tests; at most {FILE_LINES_MAX}: split it"),
            ));
        }
        let mut functions = Functions::default();
        functions.visit_file(&file);
        for (name, line, lines) in functions.long {
            let key = format!("{}::{name}", source.path.display());
            if lines
                > exemptions
                    .functions
                    .get(&key)
                    .copied()
                    .unwrap_or(FUNCTION_LINES_MAX)
            {
                breaches.push(Breach::new(
                    &source.path,
                    line,
                    format!("fn {name} has {lines} lines; at most {FUNCTION_LINES_MAX}"),
                ));
            }
        }
    }
    Ok(breaches)
}

/// Lines of the file's `#[cfg(test)]` modules.
fn test_lines(file: &syn::File) -> usize {
    file.items
        .iter()
        .filter_map(|item| match item {
            syn::Item::Mod(module) if is_test(&module.attrs) => Some(lines_of(module)),
            _ => None,
        })
        .sum()
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Ident>()
                    .is_ok_and(|ident| ident == "test"))
    })
}

fn lines_of(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

/// Collects the functions that are longer than the house allows.
#[derive(Default)]
struct Functions {
    long: Vec<(String, usize, usize)>,
}

impl Functions {
    fn note(&mut self, name: &syn::Ident, block: &syn::Block) {
        let lines = lines_of(block);
        if lines > FUNCTION_LINES_MAX {
            self.long
                .push((name.to_string(), name.span().start().line, lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.note(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig.ident, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_function_is_found_with_its_line() {
        let body = "    let _ = 0;\n".repeat(80);
        let file =
            syn::parse_file(&format!("\nfn long() {{\n{body}}}\nfn short() {{}}\n")).unwrap();
        let mut functions = Functions::default();
        functions.visit_file(&file);
        assert_eq!(functions.long, [("long".to_owned(), 2, 82)]);
    }

    #[test]
    fn lines_of_test_modules_do_not_count() {
        let file =
            syn::parse_file("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n").unwrap();
        assert_eq!(test_lines(&file), 4);
    }
}
