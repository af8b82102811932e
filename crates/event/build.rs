//! Generates the event service's types, references and skeletons from its IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl/omg");
    deckwatch_idl::build::Builder::new()
        .include(idl)
        .file(format!("{idl}/CosEventComm.idl"))
        .file(format!("{idl}/CosEventChannelAdmin.idl"))
        .compile();
}
