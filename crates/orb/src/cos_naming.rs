//! The naming service's types, references and skeletons, generated from `idl/omg/CosNaming.idl`.

// The file holds one module of the IDL's name; it is brought in here under the ORB's own path.
mod idl {
    include!(concat!(env!("OUT_DIR"), "/CosNaming.rs"));
}

pub use idl::cos_naming::*;
