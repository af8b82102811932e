//! References, object adapter, lanes, connections; the CosNaming client stubs.

#![forbid(unsafe_code)]
