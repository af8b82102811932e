//! What the kernel holds of this process: whose it is, and how much it may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The user whose rights this process has.
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Lets this process, and those that it starts, have as many files open as it may let itself: the soft RLIMIT_NOFILE of most systems is 1024,
/// for the sake of programs that use `select`. Tells how many that are; `None` for no limit.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        // Not reached: up to the hard limit everybody may go.
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
