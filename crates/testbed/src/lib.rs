//! Emulated hosts and links: namespaces, shapers; everything undone on drop.

#![forbid(unsafe_code)]
