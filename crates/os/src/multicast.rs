//! UDP sockets of IPv4 multicast groups.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Returns a socket that receives what is sent to this group alone, on this interface (`UNSPECIFIED`: the one that the
/// routes choose). Several sockets of one host may receive one group.
///
/// # Errors
/// `InvalidInput` for an address that is no group; else the kernel's error, `NoSuchDevice` for an interface that does
/// not exist.
pub fn receiver(group: SocketAddrV4, interface: Ipv4Addr) -> io::Result<UdpSocket> {
    check(group)?;
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    // Else the socket receives every group that any socket of the host has joined on this port.
    socket.set_multicast_all_v4(false)?;
    socket.bind(&SocketAddr::V4(group).into())?;
    socket.join_multicast_v4(group.ip(), &interface)?;
    Ok(socket.into())
}

/// Returns a socket that sends to this group, from this interface, over at most `ttl` - 1 routers. Its local address is
/// the one that receivers see. Receivers on this host get its datagrams too.
///
/// # Errors
/// As [`receiver`].
pub fn sender(group: SocketAddrV4, interface: Ipv4Addr, ttl: u8) -> io::Result<UdpSocket> {
    check(group)?;
    let socket = UdpSocket::bind((interface, 0))?;
    let options = SockRef::from(&socket);
    if !interface.is_unspecified() {
        options.set_multicast_if_v4(&interface)?;
    }
    options.set_multicast_ttl_v4(ttl.into())?;
    options.set_multicast_loop_v4(true)?;
    // The kernel chooses the source address when a socket is connected.
    socket.connect(group)?;
    Ok(socket)
}

fn check(group: SocketAddrV4) -> io::Result<()> {
    if group.ip().is_multicast() && group.port() != 0 {
        Ok(())
    } else {
        let words = "no multicast group and port: groups are 224.0.0.0 to 239.255.255.255";
        Err(io::Error::new(io::ErrorKind::InvalidInput, words))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 1);

    /// A port that no other socket of this host has.
    fn group() -> SocketAddrV4 {
        let free = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        SocketAddrV4::new(GROUP, free.local_addr().expect("bound").port())
    }

    #[test]
    fn every_receiver_of_a_group_gets_what_is_sent_and_sees_the_sender() {
        let (group, home) = (group(), Ipv4Addr::LOCALHOST);
        let receivers = [receiver(group, home), receiver(group, home)];
        let sender = sender(group, home, 1).expect("a socket");
        assert_eq!(sender.send(b"to all").expect("sent"), 6);
        for receiver in receivers {
            let receiver = receiver.expect("loopback has multicast");
            receiver
                .set_read_timeout(Some(Duration::from_secs(60)))
                .expect("a limit");
            let mut octets = [0; 16];
            let (size, from) = receiver.recv_from(&mut octets).expect("received");
            assert_eq!(&octets[..size], b"to all");
            assert_eq!(Some(from), sender.local_addr().ok());
        }
    }

    #[test]
    fn address_that_is_no_group_is_refused() {
        let home = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7);
        let refused = receiver(home, Ipv4Addr::LOCALHOST).expect_err("no group");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(sender(SocketAddrV4::new(GROUP, 0), Ipv4Addr::LOCALHOST, 1).is_err());
    }
}
