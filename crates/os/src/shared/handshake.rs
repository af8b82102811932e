//! The set-up of a connection through shared memory: over a unix socket, the client sends one greeting with the memory
//! and the second socket. Neither end waits for the other.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use super::memory::Memory;
use super::stream::{Shared, SharedStream};
use crate::unix::{self, UnixListener};

/// The client's greeting. The last octet is the version of the memory layout.
const GREETING: [u8; 8] = *b"DWRING\0\x01";

/// Descriptors sent with the greeting: the memory, and the socket that notifies of room.
const DESCRIPTORS: usize = 2;

/// The listener for connections through shared memory: a unix socket.
#[derive(Debug)]
pub struct SharedListener {
    listener: UnixListener,
}

impl SharedListener {
    /// Listens at `path`, as [`UnixListener::listen`] does. Each connection holds memory, so the caller bounds their
    /// number. The client of a stream that is dropped before its first read gets the error when it reads.
    ///
    /// # Errors
    /// As [`UnixListener::listen`].
    pub fn listen(path: &Path, backlog: i32, permissions: Option<u32>) -> io::Result<Self> {
        Ok(Self {
            listener: UnixListener::listen(path, backlog, permissions)?,
        })
    }

    /// Accepts one pending connection. Returns `None` if none is pending, or the client has closed it again.
    ///
    /// # Errors
    /// The kernel's error; see [`crate::stream::is_exhaustion`].
    pub fn accept(&self) -> io::Result<Option<SharedStream>> {
        let Some(socket) = self.listener.accept()? else {
            return Ok(None);
        };
        Ok(Some(SharedStream::accepted(socket.into_descriptor())))
    }

    /// The path at which it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.listener.path()
    }
}

impl AsFd for SharedListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Connects to the server that listens at `path`, giving up at `deadline_ns`. Octets that are written reach the server
/// once it has accepted the connection.
///
/// # Errors
/// As [`unix::connect`]; or descriptors or memory have run out.
pub fn connect(path: &Path, deadline_ns: Option<u64>) -> io::Result<SharedStream> {
    let arrival = unix::connect(path, deadline_ns)?.into_descriptor();
    let (memory, descriptor) = Memory::create()?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (room, theirs) = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    greet(&arrival, [descriptor.as_fd(), theirs.as_fd()])?;
    Ok(SharedStream::connected(arrival, Shared { memory, room }))
}

fn greet(socket: &OwnedFd, descriptors: [BorrowedFd<'_>; DESCRIPTORS]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    debug_assert!(fits);
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    net::sendmsg(socket, &[IoSlice::new(&GREETING)], &mut control, flags)?;
    Ok(())
}

/// Reads a client's greeting: it has not arrived yet, the client has closed the socket, or it has arrived.
///
/// # Errors
/// `InvalidData` for a greeting that is not of this protocol, else the kernel's error.
pub(super) fn hear_greeting(socket: &OwnedFd) -> io::Result<Greeting> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut greeting = GREETING.map(|_| 0);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut octets = [IoSliceMut::new(&mut greeting)];
    let received = match net::recvmsg(socket, &mut octets, &mut control, flags) {
        Ok(received) if received.bytes == 0 => return Ok(Greeting::Ended),
        Ok(received) => received,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Greeting::NotYet),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::with_capacity(DESCRIPTORS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let is_ours = received.bytes == GREETING.len() && greeting == GREETING;
    let [memory, room] = <[OwnedFd; DESCRIPTORS]>::try_from(descriptors)
        .ok()
        .filter(|_| is_ours)
        .ok_or(io::ErrorKind::InvalidData)?;
    let memory = Memory::of_client(&memory)?;
    Ok(Greeting::Heard(Shared { memory, room }))
}

/// The result of reading a client's greeting.
pub(super) enum Greeting {
    NotYet,
    Ended,
    Heard(Shared),
}
