//! Compiles the C library and the shim.

fn main() {
    let sources = ["src/shim.c", "../c/deckwatch_carrier.c"];
    for source in sources {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-changed=../c/deckwatch_carrier.h");
    cc::Build::new()
        .files(sources)
        .include("../c")
        .std("c11")
        .opt_level(2)
        .compile("deckwatch_carrier");
}
