//! A relay that leads back to the attacked server. Each of its connections has another address, as those of the
//! attacker, so that the calls through it are of several peers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deckwatch_os::stream::StreamSocket;

use super::address_of;

/// The relay.
pub(super) struct Detour {
    pub(super) port: u16,
    /// Messages, or parts of them, on their way to the server.
    carried: Arc<AtomicU64>,
}

impl Detour {
    pub(super) fn start(to: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let carried = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&carried);
        std::thread::Builder::new().spawn(move || {
            for (near, step) in listener.incoming().flatten().zip(0..) {
                // A server that refuses the connection closes this one too.
                if let Ok(far) = StreamSocket::connect_from(address_of(step), to, None) {
                    let _ = relay(near, far, &count);
                }
            }
        })?;
        Ok(Self { port, carried })
    }

    /// How much it has carried since the last question.
    pub(super) fn take_count(&self) -> u64 {
        self.carried.swap(0, Ordering::Relaxed)
    }
}

/// Carries octets both ways, until one end closes.
fn relay(mut near: TcpStream, far: StreamSocket, count: &Arc<AtomicU64>) -> std::io::Result<()> {
    let mut back = near.try_clone()?;
    let far = Arc::new(far);
    let (there, count) = (Arc::clone(&far), Arc::clone(count));
    std::thread::Builder::new().spawn(move || {
        let mut octets = [0; PART_SIZE];
        while let Ok(size @ 1..) = near.read(&mut octets) {
            count.fetch_add(1, Ordering::Relaxed);
            if there.write_all(&octets[..size], None).is_err() {
                break;
            }
        }
        there.shutdown();
    })?;
    std::thread::Builder::new().spawn(move || {
        let mut octets = [0; PART_SIZE];
        while let Ok(size @ 1..) = far.read(&mut octets, None) {
            if back.write_all(&octets[..size]).is_err() {
                break;
            }
        }
        // The other end may have closed it.
        let _ = back.shutdown(Shutdown::Both);
    })?;
    Ok(())
}

/// Octets that are carried at once.
const PART_SIZE: usize = 4 << 10;
