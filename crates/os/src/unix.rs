//! Unix stream sockets at a path of the file system: connecting with a deadline, and listening where an earlier process
//! may have left its socket file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{self, FileType, FlockOperation, Mode};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::stream::{StreamOptions, StreamSocket, monotonic_ns};

/// Octets of the longest path of a socket: the kernel's address has space for these and a null.
pub const PATH_SIZE_MAX: usize = 107;

/// How long a start waits for another process that creates a socket in the same folder.
const FOLDER_WAIT: Duration = Duration::from_secs(2);

/// Connects to the socket at `path`. Waits until `deadline_ns` if its backlog is full.
///
/// # Errors
/// `TimedOut` at the deadline, `InvalidFilename` for a path above [`PATH_SIZE_MAX`], else the kernel's error.
pub fn connect(path: &Path, deadline_ns: Option<u64>) -> io::Result<StreamSocket> {
    connect_with(path, deadline_ns, &StreamOptions::default())
}

/// As [`connect`], with the buffer sizes of these options; the other options do not apply to a unix socket.
///
/// # Errors
/// As [`connect`].
pub fn connect_with(
    path: &Path,
    deadline_ns: Option<u64>,
    options: &StreamOptions,
) -> io::Result<StreamSocket> {
    let address = address(path)?;
    let fd = socket(SocketFlags::CLOEXEC)?;
    options.set_buffers(&fd)?;
    loop {
        if let Some(deadline_ns) = deadline_ns {
            let remaining_ns = deadline_ns.saturating_sub(monotonic_ns());
            if remaining_ns < 1_000 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let remaining = Duration::from_nanos(remaining_ns);
            sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(remaining))?;
        }
        match net::connect(&fd, &address) {
            Ok(()) => return Ok(StreamSocket::adopt(fd)),
            // The send timeout has passed, or a signal has interrupted the call.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the name of this host (or of its namespace). Other processes compare it to find out whether a socket path is
/// on their host.
#[must_use]
pub fn host_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// The process at the other end of a unix socket, as it was when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// Its effective user.
    pub uid: u32,
    /// Its process id.
    pub pid: u32,
}

/// Returns the process at the other end of a connected unix socket (`SO_PEERCRED`). The process id is 0 if the process
/// is in no namespace that this one sees.
///
/// # Errors
/// The kernel's error; `PermissionDenied` for a user that this process's user namespace does not have: the kernel gives
/// all of those the same number, which may be that of a user of the namespace.
pub fn peer_process(socket: impl AsFd) -> io::Result<PeerProcess> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` and `len` are live, and `len` is the size of `peer`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    if peer.uid == *OVERFLOW_USER {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if !has_all_users(&map) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }
    Ok(PeerProcess {
        uid: peer.uid,
        pid: peer.pid.unsigned_abs(),
    })
}

/// The number that the kernel gives users which a namespace does not have.
static OVERFLOW_USER: LazyLock<u32> = LazyLock::new(|| {
    let text = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap_or_default();
    text.trim().parse().unwrap_or(65_534)
});

/// Whether a user namespace has every user, as the first one has. `map`: the lines of its `uid_map`.
fn has_all_users(map: &str) -> bool {
    let counts = map
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let counts = counts.filter_map(|count| count.parse::<u64>().ok());
    counts.sum::<u64>() >= u64::from(u32::MAX)
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    if path.as_os_str().len() > PATH_SIZE_MAX {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    Ok(SocketAddrUnix::new(path)?)
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let made = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(made)
}

/// A listening, non-blocking unix socket. Its file is removed on drop.
#[derive(Debug)]
pub struct UnixListener {
    fd: OwnedFd,
    options: Mutex<StreamOptions>,
    path: PathBuf,
    /// Device and inode number of the file that it created: the path may later have another process's file.
    file: (u64, u64),
}

impl UnixListener {
    /// Listens at `path` with room for `backlog` pending connections. A socket file at which no process listens any
    /// more is replaced; any other file stays. `permissions` are those of the file; by default they follow the
    /// process's umask.
    ///
    /// # Errors
    /// `AddrInUse` if a process listens there or the path has another file, `InvalidFilename` for a path above
    /// [`PATH_SIZE_MAX`], else the kernel's error.
    pub fn listen(path: &Path, backlog: i32, permissions: Option<u32>) -> io::Result<Self> {
        let address = address(path)?;
        let fd = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        // Without the lock, two processes that start at once could both find the old file unused, and one could remove
        // the other's new file.
        let _alone = lock_folder(path)?;
        match net::bind(&fd, &address) {
            Err(Errno::ADDRINUSE) if is_left_behind(path, &address) => {
                fs::unlink(path)?;
                net::bind(&fd, &address)?;
            }
            bound => bound?,
        }
        let made = fs::stat(path)?;
        let listener = Self {
            fd,
            options: Mutex::default(),
            path: path.to_owned(),
            file: (made.st_dev, made.st_ino),
        };
        if let Some(permissions) = permissions {
            fs::chmod(path, Mode::from_raw_mode(permissions))?;
        }
        // No client can connect before this call, so the permissions are set first.
        net::listen(&listener.fd, backlog)?;
        Ok(listener)
    }

    /// Sets the buffer sizes of the connections that are accepted from now on.
    pub fn set_options(&self, options: StreamOptions) {
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = options;
    }

    /// Accepts one pending connection. Returns `None` if none is pending (or the client has closed it again).
    ///
    /// # Errors
    /// The kernel's error; see [`crate::stream::is_exhaustion`].
    pub fn accept(&self) -> io::Result<Option<StreamSocket>> {
        match net::accept_with(&self.fd, SocketFlags::CLOEXEC) {
            Ok(fd) => {
                let options = *self.options.lock().unwrap_or_else(PoisonError::into_inner);
                options.set_buffers(&fd)?;
                Ok(Some(StreamSocket::adopt(fd)))
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The path at which it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        let stands = fs::stat(&self.path).map(|file| (file.st_dev, file.st_ino));
        if stands == Ok(self.file) {
            let _ = fs::unlink(&self.path); // Another process may have removed it.
        }
    }
}

/// Returns true if `path` is a socket file at which no process listens.
fn is_left_behind(path: &Path, address: &SocketAddrUnix) -> bool {
    let is_socket =
        fs::lstat(path).is_ok_and(|file| FileType::from_raw_mode(file.st_mode) == FileType::Socket);
    let refused = || {
        let probe = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let answer = net::connect(&probe, address);
        Ok::<_, io::Error>(answer == Err(Errno::CONNREFUSED))
    };
    is_socket && refused().unwrap_or(false)
}

/// Locks the folder of `path` until the result is dropped. Returns `None` if the folder cannot be opened for reading.
fn lock_folder(path: &Path) -> io::Result<Option<File>> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let Ok(folder) = File::open(parent.unwrap_or(Path::new("."))) else {
        return Ok(None);
    };
    let give_up_ns = monotonic_ns() + FOLDER_WAIT.as_nanos() as u64;
    loop {
        match fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(folder)),
            Err(Errno::AGAIN | Errno::INTR) if monotonic_ns() < give_up_ns => {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            Err(Errno::AGAIN | Errno::INTR) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Returns a path for this test only, in the folder for temporary files.
    fn place(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("deckwatch-os-{test}-{}", std::process::id()))
    }

    fn accept(listener: &UnixListener) -> StreamSocket {
        loop {
            if let Some(stream) = listener.accept().unwrap() {
                return stream;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn user_of_another_namespace_is_told_from_one_with_its_number() {
        assert!(has_all_users("         0          0 4294967295\n"));
        assert!(!has_all_users("         0       1000          1\n"));
        assert!(!has_all_users("0 100000 65536\n") && !has_all_users(""));
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let peer = peer_process(&one).unwrap();
        let own = (crate::process::effective_user(), std::process::id());
        assert_eq!((peer.uid, peer.pid), own);
        drop(other);
    }

    #[test]
    fn octets_go_both_ways_and_the_file_goes_with_the_listener() {
        let path = place("both-ways");
        let listener = UnixListener::listen(&path, 8, Some(0o600)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let near = connect(&path, Some(monotonic_ns() + 5_000_000_000)).unwrap();
        let far = accept(&listener);
        let mut octets = [0; 8];
        for (from, to) in [(&near, &far), (&far, &near)] {
            from.write_all(b"abc", None).unwrap();
            assert_eq!(to.read(&mut octets, None).unwrap(), 3);
        }
        near.shutdown();
        assert_eq!(far.read(&mut octets, None).unwrap(), 0);
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_left_behind_is_replaced_and_one_in_use_is_not() {
        let path = place("left-behind");
        let left = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let in_use = UnixListener::listen(&path, 8, None).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(left);
        assert!(path.exists());
        let listener = UnixListener::listen(&path, 8, None).unwrap();
        connect(&path, None).unwrap();
        let in_use = UnixListener::listen(&path, 8, None).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(listener);
    }

    #[test]
    fn a_file_that_is_no_socket_or_another_s_stays() {
        let path = place("stays");
        std::fs::write(&path, "precious").unwrap();
        let in_use = UnixListener::listen(&path, 8, None).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        std::fs::remove_file(&path).unwrap();
        let listener = UnixListener::listen(&path, 8, None).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        drop(listener);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_at_either_end() {
        let path = PathBuf::from("/").join("x".repeat(PATH_SIZE_MAX));
        assert_eq!(
            connect(&path, None).unwrap_err().kind(),
            io::ErrorKind::InvalidFilename
        );
        assert_eq!(
            UnixListener::listen(&path, 8, None).unwrap_err().kind(),
            io::ErrorKind::InvalidFilename
        );
    }

    #[test]
    fn a_full_backlog_is_waited_for_until_the_deadline() {
        let path = place("backlog");
        let listener = UnixListener::listen(&path, 0, None).unwrap();
        let _waits = connect(&path, None).unwrap();
        let deadline_ns = monotonic_ns() + 5_000_000;
        let error = connect(&path, Some(deadline_ns)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(monotonic_ns() >= deadline_ns - 1_000);
        drop(listener);
    }
}
