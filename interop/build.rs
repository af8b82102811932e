//! Generates the interfaces that both sides share from their IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/deckwatch");
    // Each is included in a Rust module of its own.
    for file in ["echo", "types", "omniorb_examples", "values", "witness"] {
        deckwatch_idl::build::Builder::new()
            .ami()
            .file(format!("{idl}/{file}.idl"))
            .compile();
    }
}
