//! Generates the naming service's types, references and skeletons from its IDL; and, for the example and the tests,
//! the echo interface.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl");
    deckwatch_idl::build::Builder::new()
        .orb_path("crate")
        .file(format!("{idl}/omg/CosNaming.idl"))
        .compile();
    deckwatch_idl::build::Builder::new()
        .ami()
        .file(format!("{idl}/deckwatch/echo.idl"))
        .compile();
}
