//! Many datagrams in one system call (`sendmmsg`, `recvmmsg`). Each datagram is a message of its own, as with `send` and
//! `recv`: none is cut or joined, and each that is dropped counts.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Datagrams of one call: with 64, the call itself is a few percent of the time that their way through the kernel takes.
pub const DATAGRAMS_MAX: usize = 64;

/// Sends datagrams of `size` octets each, one after the other in `octets`, to the peer of a connected socket. Does not
/// block. Returns how many were sent: at most [`DATAGRAMS_MAX`], and fewer if the next one was refused.
///
/// # Errors
/// The kernel's error about the first datagram: `WouldBlock` when the send buffer is full.
pub fn send(socket: impl AsFd, octets: &[u8], size: usize) -> io::Result<usize> {
    let count = octets.chunks_exact(size).len().min(DATAGRAMS_MAX);
    // SAFETY: a msghdr of zeros is a valid one: null pointers with zero lengths.
    let mut messages: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { std::mem::zeroed() };
    let mut parts = [EMPTY; DATAGRAMS_MAX];
    let datagrams = octets.chunks_exact(size);
    for ((part, message), datagram) in parts.iter_mut().zip(&mut messages).zip(datagrams) {
        part.iov_base = datagram.as_ptr().cast_mut().cast();
        part.iov_len = size;
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the first `count` headers point to live parts, which point to octets that the kernel only reads.
    let sent = unsafe {
        libc::sendmmsg(
            fd,
            messages.as_mut_ptr(),
            count as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

const EMPTY: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Room for the datagrams of one call.
#[derive(Debug)]
pub struct Datagrams {
    octets: Vec<u8>,
    size_max: usize,
    /// Octets of each datagram that the last call received.
    sizes: Vec<usize>,
}

impl Datagrams {
    /// Makes room for [`DATAGRAMS_MAX`] datagrams. Of a longer one than `size_max` octets, the rest is lost.
    #[must_use]
    pub fn new(size_max: usize) -> Self {
        let size_max = size_max.max(1);
        Self {
            // Not zero: zeroed memory is mapped lazily, and the page faults would delay the first messages.
            octets: vec![u8::MAX; size_max * DATAGRAMS_MAX],
            size_max,
            sizes: Vec::with_capacity(DATAGRAMS_MAX),
        }
    }

    /// Waits for a datagram, up to the socket's own timeout, and takes those behind it that are there too.
    ///
    /// # Errors
    /// The kernel's error; `WouldBlock` when the timeout has passed.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<()> {
        self.sizes.clear();
        // SAFETY: a msghdr of zeros is a valid one: null pointers with zero lengths.
        let mut messages: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { std::mem::zeroed() };
        let mut parts = [EMPTY; DATAGRAMS_MAX];
        let places = self.octets.chunks_exact_mut(self.size_max);
        for ((part, message), place) in parts.iter_mut().zip(&mut messages).zip(places) {
            part.iov_base = place.as_mut_ptr().cast();
            part.iov_len = place.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
        }
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: each header points to a live part, and each part to a place of its own in `octets`.
        let count = unsafe {
            libc::recvmmsg(
                fd,
                messages.as_mut_ptr(),
                DATAGRAMS_MAX as libc::c_uint,
                libc::MSG_WAITFORONE as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let sizes = messages[..count].iter().map(|one| one.msg_len as usize);
        self.sizes.extend(sizes);
        Ok(())
    }

    /// Returns the datagrams of the last call, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let places = self.octets.chunks_exact(self.size_max);
        places.zip(&self.sizes).map(|(place, size)| &place[..*size])
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = receiver.local_addr().expect("bound");
        sender.connect(address).expect("connects");
        let timeout = Some(Duration::from_secs(5));
        receiver.set_read_timeout(timeout).expect("set");
        (sender, receiver)
    }

    #[test]
    fn each_of_many_datagrams_arrives_whole_and_in_order() {
        let (sender, receiver) = pair();
        let octets: Vec<u8> = (0..10_u8).flat_map(|number| [number; 7]).collect();
        assert_eq!(send(&sender, &octets, 7).expect("sent"), 10);
        sender.send(b"a longer one").expect("sent");
        let mut datagrams = Datagrams::new(9);
        let mut found = Vec::new();
        while found.len() < 11 {
            datagrams.receive(&receiver).expect("received");
            found.extend(datagrams.iter().map(<[u8]>::to_vec));
        }
        for (number, datagram) in (0..10_u8).zip(&found) {
            assert_eq!(datagram[..], [number; 7]);
        }
        assert_eq!(found[10], b"a longer ");
    }

    #[test]
    fn one_call_sends_at_most_its_bound_and_a_timeout_ends_the_wait() {
        let (sender, receiver) = pair();
        let octets = [1; DATAGRAMS_MAX * 8 + 80];
        assert_eq!(send(&sender, &octets, 8).expect("sent"), DATAGRAMS_MAX);
        let mut datagrams = Datagrams::new(8);
        datagrams.receive(&receiver).expect("received");
        assert_eq!(datagrams.iter().count(), DATAGRAMS_MAX);
        receiver
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("set");
        let error = datagrams.receive(&receiver).expect_err("nothing more");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(datagrams.iter().count(), 0);
    }

    #[test]
    fn datagrams_before_a_full_queue_are_counted_as_sent() {
        let (sender, receiver) = pair();
        crate::socket::set_receive_buffer(&receiver, 4_096).expect("set");
        let octets = [1; DATAGRAMS_MAX * 64];
        let mut sent = 0;
        for _ in 0..8 {
            sent += send(&sender, &octets, 64).expect("loopback takes them");
        }
        let mut datagrams = Datagrams::new(64);
        let mut received = 0;
        receiver
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("set");
        while datagrams.receive(&receiver).is_ok() {
            received += datagrams.iter().count();
        }
        let dropped = crate::socket::dropped(&receiver).expect("read") as usize;
        assert!(dropped > 0);
        assert_eq!(received + dropped, sent);
    }
}
