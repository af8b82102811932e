//! The kernel's files, below `/` or below a folder of a test.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use deckwatch_os::namespace::{Capability, effective_capabilities};

use crate::limits::{CONTROL_GROUPS_MAX, KERNEL_FILE_LEN_MAX};

/// The root of the kernel's files.
#[derive(Clone, Debug)]
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// The root of this machine.
    #[must_use]
    pub fn machine() -> Self {
        Self::at(Path::new("/"))
    }

    /// A folder in place of `/`.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// The text of a file, trimmed. Returns `None` if the file is missing or empty.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let mut octets = Vec::new();
        let file = File::open(self.folder.join(path)).ok()?;
        file.take(KERNEL_FILE_LEN_MAX)
            .read_to_end(&mut octets)
            .ok()?;
        let text = String::from_utf8_lossy(&octets).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// A file that holds one number.
    pub(super) fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    /// The word in brackets of a file like `always [madvise] never`.
    pub(super) fn choice(&self, path: &str) -> Option<String> {
        let text = self.read(path)?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// The word in parentheses of a file like `none (voluntary) full`.
    pub(super) fn choice_in_parentheses(&self, path: &str) -> Option<String> {
        let text = self.read(path)?;
        let (_, rest) = text.split_once('(')?;
        Some(rest.split_once(')')?.0.to_owned())
    }

    /// The folders of a control group, of its ancestors and of the root group, from the `path` in `/proc/self/cgroup`. In
    /// a container the root group is often the container's own. `hierarchy` is the controller's folder of version 1, and
    /// empty for version 2.
    pub(super) fn control_groups(
        &self,
        hierarchy: &str,
        path: &str,
    ) -> impl Iterator<Item = String> {
        let own = path.trim_matches('/').to_owned();
        let parent = |group: &String| match group.rsplit_once('/') {
            Some((parent, _)) => Some(parent.to_owned()),
            None => (!group.is_empty()).then(String::new),
        };
        let hierarchy = hierarchy.to_owned();
        std::iter::successors(Some(own), parent)
            .take(CONTROL_GROUPS_MAX)
            .map(move |group| {
                ["sys/fs/cgroup", &hierarchy, &group]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join("/")
            })
    }

    /// Returns the advice that fits this process's user: root cannot gain a privilege by running as root.
    pub(super) fn or_if_root(&self, advice: &'static str, if_root: &'static str) -> &'static str {
        let status = self.read("proc/self/status").unwrap_or_default();
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        // Real, effective, saved, of files.
        let effective = users.and_then(|users| users.split_ascii_whitespace().nth(1));
        if effective == Some("0") {
            if_root
        } else {
            advice
        }
    }

    /// Whether this process has a capability in its effective set.
    pub(super) fn holds(&self, capability: Capability) -> bool {
        let set = self
            .read("proc/self/status")
            .as_deref()
            .and_then(effective_capabilities);
        set.is_some_and(|set| capability.is_in(set))
    }

    /// A soft limit of this process, by its name in `/proc/self/limits`; `u64::MAX` if unlimited.
    pub(super) fn limit(&self, name: &str) -> Option<u64> {
        let limits = self.read("proc/self/limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        match line.split_ascii_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    }
}
