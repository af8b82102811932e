//! Generates the Rust of every example's interface.

fn main() {
    let asynchronous = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/asynchronous.idl");
    deckwatch_idl::build::Builder::new()
        .ami()
        .file(asynchronous)
        .compile();
    for example in [
        "any",
        "callback",
        "counter",
        "echo",
        "exceptions",
        "factory",
        "helm",
        "ledger",
        "log",
        "logbook",
        "pump",
    ] {
        deckwatch_idl::build::Builder::new()
            .file(format!("{}/idl/{example}.idl", env!("CARGO_MANIFEST_DIR")))
            .compile();
    }
}
