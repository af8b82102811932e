//! Modules that several files of one Rust module open. Rust opens a module once, so the items of later files move into
//! the module that the first file opens.

use quote::ToTokens;
use syn::Item;

/// Moves the items of each module into the first file that opens it, in the order of the files.
pub(super) fn merge<'f>(files: impl Iterator<Item = &'f mut syn::File>) {
    let mut earlier: Vec<&mut syn::File> = Vec::new();
    for file in files {
        let items = std::mem::take(&mut file.items);
        for item in items {
            let mut opened = earlier.iter_mut().flat_map(|file| &mut file.items);
            match opened.find_map(|open| contents_of_same(open, &item)) {
                Some(contents) => extend(contents, item),
                None => file.items.push(item),
            }
        }
        earlier.push(file);
    }
}

/// Returns the items of a module, if `other` is a module of the same name.
fn contents_of_same<'i>(open: &'i mut Item, other: &Item) -> Option<&'i mut Vec<Item>> {
    match (open, other) {
        (Item::Mod(open), Item::Mod(other)) if open.ident == other.ident => {
            open.content.as_mut().map(|(_, items)| items)
        }
        _ => None,
    }
}

/// Adds the items of a module that are not there yet.
fn extend(contents: &mut Vec<Item>, module: Item) {
    let Item::Mod(module) = module else { return };
    for item in module.content.into_iter().flat_map(|(_, items)| items) {
        let mut open = contents.iter_mut();
        if let Some(inner) = open.find_map(|open| contents_of_same(open, &item)) {
            extend(inner, item);
        } else if !is_there(contents, &item) {
            contents.push(item);
        }
    }
}

/// Whether the module has this `use` already.
fn is_there(contents: &[Item], item: &Item) -> bool {
    let Item::Use(item) = item else { return false };
    let text = item.to_token_stream().to_string();
    let mut uses = contents.iter().filter_map(|open| match open {
        Item::Use(open) => Some(open.to_token_stream().to_string()),
        _ => None,
    });
    uses.any(|open| open == text)
}
