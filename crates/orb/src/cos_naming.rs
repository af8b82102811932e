//! The naming service's types, references and skeletons, generated from `idl/omg/CosNaming.idl`.

// The generated file contains a module with the name of the IDL module. Its contents are re-exported under the ORB's
// path.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosNaming.rs"));
}

pub use idl::cos_naming::*;
