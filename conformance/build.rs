//! Generates the interfaces that the tests call from their IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/deckwatch");
    deckwatch_idl::build::Builder::new()
        .ami()
        .file(format!("{idl}/asynchronous.idl"))
        .file(format!("{idl}/echo.idl"))
        .file(format!("{idl}/odd_names.idl"))
        .compile();
    // Its Rust stands in a module of its own.
    deckwatch_idl::build::Builder::new()
        .ami()
        .file(format!("{idl}/values.idl"))
        .compile();
}
