//! Attributes of this process in the kernel: its user, and its limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the effective user id of this process.
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Raises the limit of open files to its maximum, for this process and those that it starts. The soft RLIMIT_NOFILE of
/// most systems is 1024, for the sake of programs that use `select`. Returns the new limit; `None` for no limit.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        // Not reached: every process may raise the soft limit up to the hard one.
        Err(_) => limit.current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
        let may_open = raise_open_files();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(may_open, limit.current);
    }
}
