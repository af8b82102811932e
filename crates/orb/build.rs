//! Generates the naming service's types, references and skeletons from its IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/omg");
    deckwatch_idl::build::Builder::new()
        .orb_path("crate")
        .file(format!("{idl}/CosNaming.idl"))
        .compile();
}
