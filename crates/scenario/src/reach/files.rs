//! The files that a part on a far host reads and creates.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use deckwatch_carrier::body::BodyPlan;
use deckwatch_carrier::capture::CaptureNote;
use deckwatch_carrier::plan::{PartPlan, StreamPlan};
use deckwatch_carrier::record::{consumer_size_bytes, supplier_size_bytes};
use deckwatch_idl::model::Model;

use super::words::CarriedFile;
pub(crate) use super::words::FarPlan;
use crate::limits::{CARRIED_SIZE_MAX, NOTE_SIZE_MAX, RETURNED_SLACK_BYTES};
use crate::part::ProcessPlan;

/// A file that a far part writes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// Where it is kept here.
    pub(crate) path: PathBuf,
    /// The most octets that it can have.
    pub(crate) size_bytes_max: u64,
}

impl FarPlan {
    /// Makes the plan for a far host from one for this machine. Returns it with the files that will come back.
    ///
    /// # Errors
    /// The reason, in whole sentences: an IDL file cannot be read, or is too large to be carried.
    pub(crate) fn of(
        mut plan: ProcessPlan,
        run: &str,
        processors: &[u32],
    ) -> Result<(Self, Vec<Returned>), String> {
        let mut files = Vec::new();
        let mut returned = Vec::new();
        if let ProcessPlan::Part(part) = &mut plan {
            if let Some(body) = part.body_mut() {
                files = carry(body)?;
            }
            returned = to_return(part);
            if let Some(path) = part.created_mut() {
                *path = PathBuf::from(path.file_name().unwrap_or_default());
            }
        }
        let name = |file: &Returned| {
            let name = file.path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let far = Self {
            run: run.to_owned(),
            processors: processors.to_vec(),
            files,
            returns: returned.iter().map(name).collect(),
            plan,
        };
        Ok((far, returned))
    }
}

/// Returns the files that the part creates and that are needed after the run.
fn to_return(part: &mut PartPlan) -> Vec<Returned> {
    let messages = |stream: &StreamPlan| stream.schedule.dues().count() as u64;
    let records = match part {
        PartPlan::Supplier(plan) => {
            let slots = plan.destinations.len() as u64;
            supplier_size_bytes(slots, messages(&plan.stream))
        }
        PartPlan::Consumer(plan) => consumer_size_bytes(messages(&plan.stream)),
        PartPlan::Tap(plan) => {
            let capture = Returned {
                path: plan.capture.clone(),
                size_bytes_max: plan.size_bytes_max + RETURNED_SLACK_BYTES,
            };
            let note = Returned {
                path: CaptureNote::path(&plan.capture),
                size_bytes_max: NOTE_SIZE_MAX,
            };
            return vec![capture, note];
        }
        PartPlan::Channel(_) | PartPlan::Broker(_) | PartPlan::Names(_) | PartPlan::Clock(_) => {
            return Vec::new();
        }
    };
    let created = part.created_mut().map(|path| Returned {
        path: path.clone(),
        size_bytes_max: records + RETURNED_SLACK_BYTES,
    });
    created.into_iter().collect()
}

/// Reads the IDL files of a body, and makes its paths relative. Paths of this machine are not carried: only those below
/// the folder that all the files have in common.
fn carry(body: &mut BodyPlan) -> Result<Vec<CarriedFile>, String> {
    let BodyPlan::Typed {
        idl_file,
        include_paths,
        ..
    } = body
    else {
        return Ok(Vec::new());
    };
    let model =
        Model::load(&*idl_file, include_paths).map_err(|diagnostics| diagnostics.to_string())?;
    let mut read: Vec<(PathBuf, &str)> = Vec::new();
    for source in model.sources().files() {
        let path = absolute(&source.path)?;
        // Those that this program has built in are in no folder.
        if path.exists() && !read.iter().any(|(known, _)| *known == path) {
            read.push((path, &source.text));
        }
    }
    let size: usize = read.iter().map(|(_, text)| text.len()).sum();
    if size > CARRIED_SIZE_MAX {
        return Err(format!(
            "The IDL files that {} includes have {} KiB, and at most {} KiB are carried to a far host. Include less.",
            idl_file.display(),
            size >> 10,
            CARRIED_SIZE_MAX >> 10
        ));
    }
    let includes = include_paths
        .iter()
        .map(|path| absolute(path))
        .collect::<Result<Vec<_>, _>>()?;
    let folders = read.iter().filter_map(|(path, _)| path.parent());
    let common = folders
        .chain(includes.iter().map(PathBuf::as_path))
        .map(Path::to_owned)
        .reduce(|a, b| common_folder(&a, &b))
        .unwrap_or_default();
    let relative = |path: &Path| Path::new(IDL).join(path.strip_prefix(&common).unwrap_or(path));
    *idl_file = relative(&absolute(idl_file)?);
    *include_paths = includes.iter().map(|path| relative(path)).collect();
    let file = |(path, text): &(PathBuf, &str)| CarriedFile {
        path: relative(path).to_string_lossy().into_owned(),
        text: (*text).to_owned(),
    };
    Ok(read.iter().map(file).collect())
}

/// Returns a path from the root, without `.` and `..`.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(path)
        .map_err(|error| format!("The path {} cannot be used: {error}.", path.display()))?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        if matches!(part, Component::ParentDir) {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    Ok(plain)
}

fn common_folder(a: &Path, b: &Path) -> PathBuf {
    let pairs = a.components().zip(b.components());
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
}

/// Writes octets as digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// The folder of the IDL files in a part's folder.
const IDL: &str = "idl";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idl_file_is_carried_with_what_it_includes_and_reads_the_same_elsewhere() {
        let folder = std::env::temp_dir().join(format!("deckwatch-carry-{}", std::process::id()));
        let (near, far) = (folder.join("near"), folder.join("far"));
        for path in [near.join("a/b"), near.join("c"), far.clone()] {
            std::fs::create_dir_all(path).expect("writable");
        }
        let text =
            "#include \"../c/d.idl\"\n#include <e.idl>\nstruct Top { D first; E second; };\n";
        std::fs::write(near.join("a/top.idl"), text).expect("writable");
        std::fs::write(near.join("c/d.idl"), "struct D { long n; };\n").expect("writable");
        std::fs::write(near.join("a/b/e.idl"), "struct E { long m; };\n").expect("writable");
        let mut body = BodyPlan::Typed {
            idl_file: near.join("c/../a/top.idl"),
            include_paths: vec![near.join("a/b")],
            type_name: "Top".to_owned(),
            sequence_member: "first.n".to_owned(),
        };
        let files = carry(&mut body).expect("readable");
        let mut names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["idl/a/b/e.idl", "idl/a/top.idl", "idl/c/d.idl"]);
        for file in &files {
            let path = far.join(&file.path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            std::fs::write(path, &file.text).expect("writable");
        }
        let BodyPlan::Typed {
            idl_file,
            include_paths,
            ..
        } = &body
        else {
            panic!("{body:?}")
        };
        assert_eq!(idl_file, Path::new("idl/a/top.idl"));
        let includes: Vec<PathBuf> = include_paths.iter().map(|path| far.join(path)).collect();
        let model = Model::load(far.join(idl_file), &includes).expect("whole");
        assert!(model.type_code("Top").is_some());
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}
