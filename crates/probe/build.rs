//! Generates the interfaces of the bench and the experiments from their IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/deckwatch");
    deckwatch_idl::build::Builder::new()
        .include(idl)
        .file(format!("{idl}/echo.idl"))
        .file(format!("{idl}/bench.idl"))
        .file(format!("{idl}/experiment.idl"))
        .compile();
}
