//! The kernel's packet filter of a tap: classic BPF that keeps TCP and UDP packets from or to some ports.

use std::io;
use std::os::fd::BorrowedFd;

use crate::option;

/// Keeps IPv4 and IPv6 packets whose TCP or UDP source or destination port is one of a set. Also keeps all later
/// fragments of datagrams, which have no port.
#[derive(Clone, Debug)]
pub struct PortFilter {
    program: Vec<libc::sock_filter>,
}

impl PortFilter {
    /// Creates a filter for these ports. Without any, or with more than [`PORTS_MAX`], the filter keeps everything.
    #[must_use]
    pub fn new(ports: &[u16]) -> Self {
        let program = if ports.is_empty() || ports.len() > PORTS_MAX {
            vec![statement(RETURN, KEEP)]
        } else {
            program(ports)
        };
        Self { program }
    }

    /// Attaches the filter to a packet socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn attach(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).unwrap_or(u16::MAX),
            filter: self.program.as_ptr().cast_mut(),
        };
        // The kernel only reads the instructions, and copies them during the call.
        option::set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }
}

/// Maximum of ports of one filter: four instructions each, of the 4096 that the kernel accepts.
pub const PORTS_MAX: usize = 1000;

/// Offsets are from the Ethernet header, which `lo` and `veth` both have. The two ports are in A and in scratch word 0;
/// both are compared with the list.
fn program(ports: &[u16]) -> Vec<libc::sock_filter> {
    let mut program = vec![
        statement(LOAD_HALF, 12),
        jump(EQUAL, 0x0800, 0, 12), // not IPv4: to the test for IPv6
        statement(LOAD_BYTE, 23),
        jump(EQUAL, 6, 1, 0),
        jump(EQUAL, 17, 0, 8), // neither TCP nor UDP: drop
        statement(LOAD_HALF, 20),
        jump(ANY_BIT, 0x1FFF, 5, 0), // a later fragment: keep
        statement(LOAD_X_IP_HEADER_LEN, 14),
        statement(LOAD_HALF_X, 16),
        statement(STORE, 0),
        statement(LOAD_HALF_X, 14),
        statement(JUMP, 13), // to the list
        statement(RETURN, KEEP),
        statement(RETURN, DROP),
        // 14: the test for IPv6
        jump(EQUAL, 0x86DD, 0, 6),
        statement(LOAD_BYTE, 20),
        jump(EQUAL, 44, 3, 0), // a fragment: keep
        jump(EQUAL, 6, 1, 0),
        jump(EQUAL, 17, 0, 2),
        statement(JUMP, 2),
        statement(RETURN, KEEP),
        statement(RETURN, DROP),
        statement(LOAD_HALF, 56),
        // The list follows without a jump, because the kernel's checker treats a scratch word as unset after any
        // return.
        statement(STORE, 0),
        statement(LOAD_HALF, 54),
    ];
    for _end in 0..2 {
        for &port in ports {
            program.push(jump(EQUAL, u32::from(port), 0, 1));
            program.push(statement(RETURN, KEEP));
        }
        program.push(statement(LOAD_SCRATCH, 0));
    }
    program.push(statement(RETURN, DROP));
    program
}

const fn statement(code: u16, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

// linux/bpf_common.h: class, size or source, mode.
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_X: u16 = 0x48;
const LOAD_X_IP_HEADER_LEN: u16 = 0xB1;
const LOAD_SCRATCH: u16 = 0x60;
const STORE: u16 = 0x02;
const JUMP: u16 = 0x05;
const EQUAL: u16 = 0x15;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
/// The number of octets of a packet that are kept: all.
const KEEP: u32 = u32::MAX;
const DROP: u32 = 0;

#[cfg(test)]
mod tests;
