//! The plan of an external carrier's program: lines of `KEY VALUE`, and the files that they name.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use deckwatch_cdr::ByteOrder;

use super::program::ProgramFault;
use crate::body::{Body, BodyPlan};
use crate::carrier::NetworkPriority;
use crate::external::PROTOCOL;
use crate::plan::{History, Reliability, StreamPlan, TopicPlan};
use crate::record::HEADER_SIZE;
use crate::talk::Setting;

/// The files of a program beside its records. They are removed when this is dropped.
pub(super) struct Files {
    body: PathBuf,
    pub(super) dues: PathBuf,
}

impl Files {
    pub(super) fn of(records: &Path) -> Self {
        Self {
            body: records.with_extension("body"),
            dues: records.with_extension("dues"),
        }
    }

    /// Writes the body, and for a supplier the due times of a stream.
    pub(super) fn write(
        &self,
        body: &Body,
        stream: Option<&StreamPlan>,
    ) -> Result<(), ProgramFault> {
        let failed = |path: &Path, error: std::io::Error| ProgramFault::File {
            path: path.display().to_string(),
            error: error.to_string(),
        };
        std::fs::write(&self.body, body.octets()).map_err(|error| failed(&self.body, error))?;
        let Some(stream) = stream else { return Ok(()) };
        let write = || {
            let mut file = std::io::BufWriter::new(std::fs::File::create(&self.dues)?);
            // The schedule of a plan starts at 0.
            for due in stream.schedule.dues() {
                file.write_all(&due.due_ns.to_ne_bytes())?;
            }
            file.flush()
        };
        write().map_err(|error| failed(&self.dues, error))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Those of a consumer have no due times. The folder is removed after the run.
        let _ = std::fs::remove_file(&self.body);
        let _ = std::fs::remove_file(&self.dues);
    }
}

/// The lines of a program's plan.
pub(super) struct PlanText {
    text: Vec<u8>,
    /// Settings that the program takes over or ignores.
    pub(super) asked: BTreeSet<Setting>,
}

impl PlanText {
    pub(super) fn begin(
        role: &str,
        stream: &StreamPlan,
        address: IpAddr,
        topic: Option<&TopicPlan>,
    ) -> Self {
        let mut text = Self {
            text: Vec::new(),
            asked: BTreeSet::new(),
        };
        text.line("deckwatch-carrier", PROTOCOL);
        text.line("role", role);
        text.line("flow", &stream.name);
        text.line("topic", topic.map_or("", |topic| &topic.name));
        text.line("address", address);
        if let Some(broker) = topic.and_then(|topic| topic.broker.as_ref()) {
            text.line("broker", broker);
        }
        text
    }

    pub(super) fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        // A line break in a value would begin another key.
        let value = value.to_string().replace(['\n', '\r'], " ");
        self.text.extend_from_slice(key.as_bytes());
        self.text.push(b' ');
        self.text.extend_from_slice(value.as_bytes());
        self.text.push(b'\n');
    }

    /// Writes a path as absolute, because the program may change its folder.
    pub(super) fn path(&mut self, key: &str, path: &Path) {
        let absolute = std::path::absolute(path);
        let path = absolute.as_deref().unwrap_or(path);
        self.line(key, path.display());
    }

    pub(super) fn setting(&mut self, setting: Setting, key: &str, value: impl std::fmt::Display) {
        self.asked.insert(setting);
        self.line(key, value);
    }

    pub(super) fn body(&mut self, body: &Body, files: &Files) {
        self.line("size-bytes", body.octets().len());
        self.path("body", &files.body);
    }

    pub(super) fn message(
        &mut self,
        stream: &StreamPlan,
        body: &Body,
        files: &Files,
        records: &Path,
    ) {
        self.body(body, files);
        let place = body.sequence_place();
        let order = match place.order {
            ByteOrder::Big => "big",
            ByteOrder::Little => "little",
        };
        self.line("sequence-at", place.at);
        self.line("sequence-size", place.size);
        self.line("sequence-order", order);
        self.path("records", records);
        self.line("records-at", HEADER_SIZE);
        let (mut messages, mut gap_ns, mut last_ns) = (0_u64, 0, None);
        for due in stream.schedule.dues() {
            gap_ns = gap_ns.max(due.due_ns - last_ns.unwrap_or(due.due_ns));
            last_ns = Some(due.due_ns);
            messages += 1;
        }
        self.line("messages", messages);
        self.line("gap-ns", gap_ns);
    }

    pub(super) fn settings(
        &mut self,
        stream: &StreamPlan,
        topic: Option<&TopicPlan>,
        priority: Option<u16>,
        network: NetworkPriority,
    ) {
        self.setting(Setting::Deadline, "deadline-ns", stream.deadline.as_nanos());
        if let Some(priority) = priority {
            self.setting(Setting::Priority, "priority", priority);
        }
        if let Some(dscp) = network.dscp {
            self.setting(Setting::Dscp, "dscp", dscp);
        }
        if let Some(priority) = network.socket_priority {
            self.setting(Setting::SocketPriority, "socket-priority", priority);
        }
        if let Some(reliability) = topic.and_then(|topic| topic.reliability) {
            let word = match reliability {
                Reliability::Reliable => "reliable",
                Reliability::BestEffort => "best-effort",
            };
            self.setting(Setting::Reliability, "reliability", word);
        }
        match topic.and_then(|topic| topic.history) {
            Some(History::KeepAll) => self.setting(Setting::History, "history", "keep-all"),
            Some(History::KeepLast(count)) => {
                let value = format_args!("keep-last {count}");
                self.setting(Setting::History, "history", value);
            }
            None => {}
        }
        if let BodyPlan::Typed {
            idl_file,
            include_paths,
            type_name,
            sequence_member,
        } = &stream.body
        {
            self.path("idl-file", idl_file);
            for path in include_paths {
                self.path("idl-include", path);
            }
            self.setting(Setting::IdlType, "idl-type", type_name);
            self.line("idl-sequence-member", sequence_member);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text.push(b'\n');
        self.text
    }
}
