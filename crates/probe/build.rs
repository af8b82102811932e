//! Generates the echo interface that the bench calls from its IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/deckwatch");
    deckwatch_idl::build::Builder::new()
        .file(format!("{idl}/echo.idl"))
        .compile();
}
