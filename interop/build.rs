//! Generates the interfaces that both sides share from their IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/deckwatch");
    deckwatch_idl::build::Builder::new()
        .ami()
        .file(format!("{idl}/echo.idl"))
        .file(format!("{idl}/types.idl"))
        .file(format!("{idl}/omniorb_examples.idl"))
        .file(format!("{idl}/witness.idl"))
        .compile();
}
