//! The servers of other instruments.

use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::instrument::{Instrument, Protocol, cannot_start, failed};
use crate::laboratory::LaboratoryError;
use crate::laboratory::program::Place;

/// A server, which is killed when dropped.
pub(super) struct Server {
    child: Child,
    /// Where it listens.
    pub(super) port: u16,
    /// The port of its data, if that is another one.
    pub(super) data_port: u16,
}

impl Server {
    pub(super) fn start(
        instrument: Instrument,
        place: Place,
        Protocol { is_udp, delays }: Protocol,
    ) -> Result<Self, LaboratoryError> {
        // None accepts port 0, so each gets ports that were free a moment ago.
        let cannot = |source| cannot_start(instrument, source);
        let bind = || TcpListener::bind("127.0.0.1:0").map_err(cannot);
        let both = [bind()?, bind()?];
        let port = |of: &TcpListener| of.local_addr().map(|at| at.port()).map_err(cannot);
        let (port, data_port) = (port(&both[0])?, port(&both[1])?);
        drop(both);
        let mut server = place.command(instrument.name());
        let port_word = port.to_string();
        match instrument {
            Instrument::Sockperf => {
                server.args(["server", "-i", "127.0.0.1", "-p", &port_word]);
                server.args((!is_udp).then_some("--tcp"));
                server.args(delays.then_some("--tcp-avoid-nodelay"));
            }
            Instrument::Iperf3 => {
                server.args(["-s", "-B", "127.0.0.1", "-p", &port_word]);
            }
            Instrument::Irtt => {
                // By default it refuses intervals below 10 ms.
                let address = format!("127.0.0.1:{port}");
                server.args(["server", "-i", "0", "-b", &address]);
            }
            Instrument::Nuttcp => {
                // It would become a daemon otherwise.
                server.args(["-S", "--nofork", "-P", &port_word]);
                server.args(["-p", &data_port.to_string()]);
            }
        }
        server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = server.spawn().map_err(cannot)?;
        let mut started = Self {
            child,
            port,
            data_port,
        };
        let is_udp_port = match instrument {
            Instrument::Sockperf => is_udp,
            Instrument::Irtt => true,
            Instrument::Iperf3 | Instrument::Nuttcp => false,
        };
        started.await_listening(instrument, is_udp_port)?;
        Ok(started)
    }

    /// The port is taken when the server listens.
    fn await_listening(
        &mut self,
        instrument: Instrument,
        is_udp: bool,
    ) -> Result<(), LaboratoryError> {
        let until = Instant::now() + PATIENCE;
        while is_free(self.port, is_udp) {
            if let Ok(Some(status)) = self.child.try_wait() {
                let words = format!("its server has ended ({status})");
                return Err(failed(instrument, &words));
            }
            if Instant::now() > until {
                return Err(failed(instrument, "its server does not listen"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_free(port: u16, is_udp: bool) -> bool {
    if is_udp {
        UdpSocket::bind(("127.0.0.1", port)).is_ok()
    } else {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
    }
}

/// The longest time until a server listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(10);
