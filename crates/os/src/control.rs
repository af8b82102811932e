//! `recvmsg` with its control messages: the only code that parses them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// The result of a receive, except the octets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Control {
    /// Octets of the message; with `MSG_TRUNC` including those that did not fit.
    pub(crate) len: usize,
    /// Whether the message did not fit.
    pub(crate) truncated: bool,
    /// The software stamp, nanoseconds of CLOCK_REALTIME.
    pub(crate) stamp_ns: Option<i64>,
    /// Messages that the socket has dropped so far.
    pub(crate) dropped: Option<u32>,
    /// The error, if the message is from the error queue.
    pub(crate) error: Option<ExtendedError>,
}

/// The used fields of the kernel's `sock_extended_err`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtendedError {
    pub(crate) errno: u32,
    pub(crate) origin: u8,
    pub(crate) info: u32,
    pub(crate) data: u32,
}

/// Where the sender's address is stored.
pub(crate) enum From<'f> {
    /// Of a packet socket.
    Link(&'f mut libc::sockaddr_ll),
    /// Of an IP socket.
    Ip(&'f mut libc::sockaddr_storage),
}

/// Receives one message and parses its control messages. The sender's address is stored in `from`, if given.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
    from: Option<From<'_>>,
    flags: i32,
) -> io::Result<Control> {
    let mut control = MaybeUninit::<ControlBuffer>::uninit();
    let mut octets = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    // SAFETY: a msghdr of zeros is a valid one: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut octets;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<ControlBuffer>() as _;
    let (name, name_len) = match from {
        Some(From::Link(name)) => (std::ptr::from_mut(name).cast(), size_of_val(name)),
        Some(From::Ip(name)) => (std::ptr::from_mut(name).cast(), size_of_val(name)),
        None => (std::ptr::null_mut(), 0),
    };
    message.msg_name = name;
    message.msg_namelen = name_len as libc::socklen_t;
    // SAFETY: all pointers of `message` point to live memory of the lengths given, and outlive the call.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    let Ok(len) = usize::try_from(len) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: recvmsg has filled `message.msg_control` with control messages.
    Ok(unsafe { Control::of(&message, len) })
}

impl Control {
    /// Parses the control messages of a received message of `len` octets.
    ///
    /// # Safety
    /// The kernel has filled `message.msg_control` with `msg_controllen` octets of control messages, which are still
    /// readable.
    pub(crate) unsafe fn of(message: &libc::msghdr, len: usize) -> Self {
        let mut found = Self {
            len,
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
            ..Self::default()
        };
        // SAFETY: by the contract the control messages are well-formed; CMSG_FIRSTHDR and CMSG_NXTHDR stay within them.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(message);
            while !header.is_null() {
                found.take(header);
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
        found
    }

    /// # Safety
    /// `header` points to a whole control message.
    unsafe fn take(&mut self, header: *const libc::cmsghdr) {
        // SAFETY: by the contract the header is readable and `cmsg_len` octets from it are; each read below is of
        // a plain structure no larger than the data that remains, and need not be aligned.
        unsafe {
            let data = libc::CMSG_DATA(header);
            // Not every C library gives the length the same type.
            let len: usize = (*header).cmsg_len as _;
            let size = len.saturating_sub(data as usize - header as usize);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING | libc::SCM_TIMESTAMPNS)
                    if size >= size_of::<libc::timespec>() =>
                {
                    let stamp = data.cast::<libc::timespec>().read_unaligned();
                    let ns = stamp.tv_sec * 1_000_000_000 + stamp.tv_nsec;
                    self.stamp_ns = (ns != 0).then_some(ns);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) if size >= size_of::<u32>() => {
                    self.dropped = Some(data.cast::<u32>().read_unaligned());
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
                    if size >= size_of::<libc::sock_extended_err>() =>
                {
                    let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                    self.error = Some(ExtendedError {
                        errno: error.ee_errno,
                        origin: error.ee_origin,
                        info: error.ee_info,
                        data: error.ee_data,
                    });
                }
                _ => {}
            }
        }
    }
}

/// Space for a stamp (48 octets), a drop counter, and an extended error with an IPv6 address, each with its header.
/// Aligned as a header is.
#[repr(C, align(8))]
pub(crate) struct ControlBuffer([u8; 256]);
