//! The orders to a relay, as JSON in datagrams on the loopback interface of the switch's namespace: whoever may enter
//! the namespace may change the network.

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::time::Duration;

use deckwatch_os::namespace::Namespace;
use serde::{Deserialize, Serialize};

use super::Counts;
use super::driver::RelayState;
use crate::TestbedError;

/// An order to a relay. Hosts are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Hold back the frames to a host.
    Hold { host: usize },
    /// Release them.
    Release { host: usize },
    /// Lose the first frame to a host and every n-th after it.
    Lose {
        host: usize,
        every: Option<NonZeroU32>,
    },
    /// Tell the counts of the line to a host.
    Count { host: usize },
    /// Tell everything.
    State,
}

/// An answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The order is in effect.
    Done,
    /// As ordered.
    Count(Counts),
    /// As ordered.
    State(RelayState),
    /// The order is not one.
    Refused(String),
}

/// A line to the relay of a switch.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UdpSocket,
}

impl Control {
    /// Opens a socket in the switch.
    pub(crate) fn open(switch: &Namespace) -> Result<Self, TestbedError> {
        let connect = || {
            let socket = UdpSocket::bind(("127.0.0.1", 0))?;
            socket.connect(("127.0.0.1", CONTROL_PORT))?;
            socket.set_read_timeout(Some(ANSWER_WAIT))?;
            io::Result::Ok(socket)
        };
        let socket = switch
            .run_inside(connect)
            .and_then(|connected| connected)
            .map_err(TestbedError::system("Opening a socket in the switch"))?;
        Ok(Self { socket })
    }

    /// Sends an order and returns the answer. The order is in effect when this returns.
    pub(crate) fn ask(&self, order: &Order) -> Result<Answer, TestbedError> {
        let failed = || TestbedError::system("Asking the relay of the switch");
        let text = serde_json::to_vec(order).map_err(|error| failed()(error.into()))?;
        self.socket.send(&text).map_err(failed())?;
        let mut octets = [0; ANSWER_BYTES_MAX];
        let len = self.socket.recv(&mut octets).map_err(failed())?;
        match serde_json::from_slice(&octets[..len]) {
            Ok(Answer::Refused(fact)) => Err(failed()(io::Error::other(fact))),
            Ok(answer) => Ok(answer),
            Err(error) => Err(failed()(error.into())),
        }
    }
}

/// The port of the relay on the loopback interface of its namespace, which no other program uses.
pub(crate) const CONTROL_PORT: u16 = 4457;
/// A relay answers at once; a machine that does not run it for so long has no network.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Longest answer, octets of JSON.
const ANSWER_BYTES_MAX: usize = 2048;
