//! A user, network and mount namespace of this process's own, in which it may make network namespaces though its user is
//! not root.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::process::effective_user;

/// Moves this process into namespaces of its own. There its user counts as root, the network has only a loopback
/// interface, which is down, and `/run` is empty. Must be called while the process has one thread.
///
/// # Errors
/// The kernel's error: its administrator may forbid this to users (`PermissionDenied`), or the process has several
/// threads (`InvalidInput`). A refusal may come late: ask [`may_isolate`] first.
pub fn isolate() -> io::Result<()> {
    Isolation::prepare()?.enter()
}

/// Tries in a child whether [`isolate`] would succeed.
#[must_use]
pub fn may_isolate() -> bool {
    let Ok(isolation) = Isolation::prepare() else {
        return false;
    };
    let mut child = Command::new("/bin/true");
    child
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: between fork and exec the closure makes system calls on values made before, and allocates nothing.
    unsafe { child.pre_exec(move || isolation.enter()) };
    child.status().is_ok_and(|status| status.success())
}

/// All that is needed, made beforehand.
struct Isolation {
    files: [(CString, Vec<u8>); 3],
    root: CString,
    run: CString,
    tmpfs: CString,
}

impl Isolation {
    fn prepare() -> io::Result<Self> {
        // SAFETY: getegid takes nothing and cannot fail.
        let group = unsafe { libc::getegid() };
        let map = |id: u32| format!("0 {id} 1\n").into_bytes();
        let file = |name: &str| CString::new(format!("/proc/self/{name}"));
        Ok(Self {
            files: [
                (file("setgroups")?, b"deny\n".to_vec()),
                (file("uid_map")?, map(effective_user())),
                (file("gid_map")?, map(group)),
            ],
            root: CString::new("/")?,
            run: CString::new("/run")?,
            tmpfs: CString::new("tmpfs")?,
        })
    }

    /// Makes system calls only.
    fn enter(&self) -> io::Result<()> {
        let spaces = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
        // SAFETY: no memory is involved.
        check(unsafe { libc::unshare(spaces) })?;
        for (path, content) in &self.files {
            // SAFETY: `path` is a C string, and `content` is readable for its length; the descriptor is closed once.
            unsafe {
                let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                check(fd)?;
                let written = libc::write(fd, content.as_ptr().cast(), content.len());
                let error = io::Error::last_os_error();
                libc::close(fd);
                if written < 0 {
                    return Err(error);
                }
            }
        }
        let nothing = std::ptr::null();
        // SAFETY: the paths and the type are C strings; the kernel takes null for what a call does not need.
        unsafe {
            let private = libc::MS_REC | libc::MS_PRIVATE;
            check(libc::mount(
                nothing,
                self.root.as_ptr(),
                nothing,
                private,
                std::ptr::null(),
            ))?;
            check(libc::mount(
                self.tmpfs.as_ptr(),
                self.run.as_ptr(),
                self.tmpfs.as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                std::ptr::null(),
            ))
        }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_may_isolate_itself_where_this_process_has_several_threads() {
        if !may_isolate() {
            deckwatch_testkit::skip("user-namespaces", "the kernel refuses them to this user");
            return;
        }
        let other = std::thread::spawn(std::thread::park);
        let refused = isolate().expect_err("two threads");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        other.thread().unpark();
        other.join().expect("no panic");
    }
}
