//! What the kernel tells of another process: class, processors and processor time of its threads, and the options of
//! its TCP connections. The process need not cooperate, so that a foreign program is examined as one of our own.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::net::sockopt;
use rustix::process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::option::words;
use crate::schedule::{self, Class};
use crate::stream::SO_BUF_LOCK;

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// The kernel's id.
    pub thread: u32,
    /// Its scheduling class.
    pub class: Class,
    /// The processors that it may run on.
    pub processors: Vec<u32>,
    /// The processor time that it has used, in nanoseconds.
    pub cpu_ns: u64,
}

/// A TCP connection of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionState {
    /// The kernel's number of the socket.
    pub inode: u64,
    /// SO_SNDBUF, in the kernel's own count.
    pub send_buffer: u32,
    /// The size of the send buffer was requested: the kernel does not change it.
    pub is_send_buffer_fixed: bool,
    /// SO_RCVBUF, in the kernel's own count.
    pub receive_buffer: u32,
    /// The size of the receive buffer was requested.
    pub is_receive_buffer_fixed: bool,
    /// A read without octets waits.
    pub is_blocking: bool,
}

/// Returns the threads of `process`. A thread that ends meanwhile is left out.
///
/// # Errors
/// The kernel's error: `NotFound` without such a process.
pub fn threads(process: u32) -> io::Result<Vec<ThreadState>> {
    let folder = PathBuf::from(format!("/proc/{process}/task"));
    let numbers = numbers_in(&folder)?.into_iter();
    Ok(numbers.filter_map(|it| thread(&folder, it).ok()).collect())
}

fn thread(folder: &Path, number: u32) -> io::Result<ThreadState> {
    // The first of its numbers is the processor time.
    let statistics = std::fs::read_to_string(folder.join(format!("{number}/schedstat")))?;
    let cpu_ns = statistics.split_whitespace().next();
    let cpu_ns = cpu_ns.and_then(|text| text.parse().ok());
    Ok(ThreadState {
        thread: number,
        class: schedule::class_of(number)?,
        processors: schedule::affinity_of(number)?,
        cpu_ns: cpu_ns.ok_or(io::ErrorKind::InvalidData)?,
    })
}

/// Returns the TCP connections of `process`. A socket that is closed meanwhile is left out.
///
/// # Errors
/// The kernel's error: `PermissionDenied` if this process may not trace the other.
pub fn connections(process: u32) -> io::Result<Vec<ConnectionState>> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let handle = pidfd_open(id.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
    let folder = PathBuf::from(format!("/proc/{process}/fd"));
    let mut found = Vec::new();
    for number in numbers_in(&folder)? {
        let target = std::fs::read_link(folder.join(number.to_string()));
        let Some(inode) = target.ok().and_then(|target| socket_inode(&target)) else {
            continue;
        };
        match pidfd_getfd(&handle, number as ForeignRawFd, PidfdGetfdFlags::empty()) {
            Ok(socket) => found.extend(connection(&socket, inode)),
            Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The number in a link such as `socket:[1234]`.
fn socket_inode(target: &Path) -> Option<u64> {
    let text = target.to_str()?.strip_prefix("socket:[")?;
    text.strip_suffix(']')?.parse().ok()
}

/// Returns `None` for a socket that is no connected TCP socket.
fn connection(socket: &OwnedFd, inode: u64) -> Option<ConnectionState> {
    let is_stream = sockopt::socket_type(socket).ok()? == rustix::net::SocketType::STREAM;
    let peer = rustix::net::getpeername(socket).ok()??;
    if !is_stream || SocketAddr::try_from(peer).is_err() {
        return None;
    }
    let size = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    // A kernel before 5.16 does not tell.
    let fixed = words::<1>(socket.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK);
    let [fixed] = fixed.unwrap_or_default();
    let flags = rustix::fs::fcntl_getfl(socket).ok()?;
    Some(ConnectionState {
        inode,
        send_buffer: size(sockopt::socket_send_buffer_size(socket).ok()?),
        is_send_buffer_fixed: fixed & SEND_BUFFER_FIXED != 0,
        receive_buffer: size(sockopt::socket_recv_buffer_size(socket).ok()?),
        is_receive_buffer_fixed: fixed & RECEIVE_BUFFER_FIXED != 0,
        is_blocking: !flags.contains(OFlags::NONBLOCK),
    })
}

// linux/socket.h
const SEND_BUFFER_FIXED: u32 = 1;
const RECEIVE_BUFFER_FIXED: u32 = 2;

/// The names in `folder` that are numbers.
fn numbers_in(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use super::*;
    use crate::socket::set_send_buffer;

    #[test]
    fn class_processor_and_time_of_a_thread_are_those_that_it_has() {
        let (here, arrived) = std::sync::mpsc::channel();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let bound = std::thread::spawn(move || {
            let last = schedule::affinity().unwrap().pop().unwrap();
            schedule::set_affinity(&[last]).unwrap();
            // Without the permission the class stays as it is; it is read below.
            let _ = schedule::set_class(Class::Fifo(2));
            let state = (schedule::thread_number(), last, schedule::class().unwrap());
            here.send(state).unwrap();
            let _ = gate.recv();
        });
        let (number, processor, class) = arrived.recv().unwrap();
        let all = threads(std::process::id()).unwrap();
        let state = all.iter().find(|it| it.thread == number).unwrap();
        assert_eq!(
            (state.class, &state.processors[..]),
            (class, &[processor][..])
        );
        assert!(state.cpu_ns > 0);
        go.send(()).unwrap();
        bound.join().unwrap();
        assert_eq!(
            threads(u32::MAX >> 1).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_requested_send_buffer_and_a_socket_that_does_not_block_are_seen_from_outside() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode_of = |stream: &TcpStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd()));
            socket_inode(&link.unwrap()).unwrap()
        };
        let of = |inode: u64| {
            let all = connections(std::process::id()).unwrap();
            *all.iter().find(|it| it.inode == inode).unwrap()
        };
        let inode = inode_of(&near);
        let before = of(inode);
        assert!(before.is_blocking && !before.is_send_buffer_fixed);
        let size = set_send_buffer(&near, 100_000).unwrap();
        near.set_nonblocking(true).unwrap();
        let after = of(inode);
        assert_eq!(
            (after.send_buffer, after.is_send_buffer_fixed),
            (size, true)
        );
        assert!(!after.is_blocking && !after.is_receive_buffer_fixed);
        assert_eq!(after.receive_buffer, before.receive_buffer);
        // A listening socket is no connection.
        let all = connections(std::process::id()).unwrap();
        let listening = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd()));
        let listening = socket_inode(&listening.unwrap()).unwrap();
        assert!(all.iter().all(|it| it.inode != listening));
    }
}
