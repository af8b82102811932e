//! The IDL files of Debian's package `omniorb-idl`, as they are: no macro is defined. The test is skipped, with a
//! message, if the package is not installed.

use std::path::{Path, PathBuf};

use deckwatch_idl::generate::{Config, generate_together};
use deckwatch_idl::{Model, Options};

use crate::omniidl::{FOLDER, files, refused};

#[test]
fn every_file_of_the_common_object_services_compiles_but_those_that_no_compiler_accepts() {
    let services = Path::new(FOLDER).join("COS");
    if !services.is_dir() {
        let why = "Debian's package omniorb-idl is not installed";
        return deckwatch_testkit::skip("omniidl", why);
    }
    let options = Options {
        include_paths: vec![services.clone(), PathBuf::from(FOLDER)],
        ..Options::default()
    };
    let (mut models, mut unexpected) = (Vec::new(), Vec::new());
    for file in files(&services) {
        match (Model::load_with(&file, &options), refused(&file)) {
            (Ok(model), None) => models.push(model),
            (Err(_), Some(_)) => {}
            (Ok(_), Some(why)) => unexpected.push(format!("{}: it {why}", file.display())),
            (Err(errors), None) => unexpected.push(errors.to_string()),
        }
    }
    assert!(models.len() > 40, "{} files", models.len());
    // All files of one Rust module, with the files of the other folder that they include.
    let included = ["ir.idl", "corbaidl.idl"].map(|name| Path::new(FOLDER).join(name));
    models.extend(included.map(|file| Model::load_with(file, &options).unwrap()));
    for made in generate_together(&models, &Config::default()) {
        unexpected.extend(made.err().map(|errors| errors.to_string()));
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}
