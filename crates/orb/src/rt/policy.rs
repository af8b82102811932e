//! The policies of real-time CORBA (RTCORBA 1.2). Lists in them are kept for the life of the process. So a policy is a
//! number that is copied, compared and read without a lock.

mod lists;

use std::ops::Deref;

use lists::Lists;

use super::Priority;
use crate::{Completion, SystemException, minor, raise};

/// The side that determines the priority at which a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PriorityModel {
    /// The caller: its priority is sent with the request.
    ClientPropagated = 0,
    /// The server.
    ServerDeclared = 1,
}

/// RTCORBA::PriorityModelPolicy (number 40): a policy of object adapters, contained in their references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PriorityModelPolicy {
    /// The side that determines the priority.
    pub priority_model: PriorityModel,
    /// The priority that the server declares, or at which it serves callers that have none.
    pub server_priority: Priority,
}

/// The number of a threadpool of an ORB, 0 for the default pool. RTCORBA::ThreadpoolPolicy (number 41) of an object
/// adapter contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadpoolId(pub u32);

/// A range of priorities whose requests share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PriorityBand {
    /// The lowest priority.
    pub low: Priority,
    /// The highest priority.
    pub high: Priority,
}

impl PriorityBand {
    /// Returns whether the band contains a priority.
    #[must_use]
    pub fn holds(&self, priority: Priority) -> bool {
        (self.low..=self.high).contains(&priority)
    }
}

/// RTCORBA::PriorityBandedConnectionPolicy (number 45): one connection per band. Dereferences to the slice of bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PriorityBands(u16);

impl PriorityBands {
    /// Returns the policy of these bands. A priority belongs to the first band that contains it.
    ///
    /// # Errors
    /// BAD_PARAM for a band whose lowest priority is above its highest; NO_RESOURCES at
    /// [`crate::limits::POLICY_LISTS_MAX`] different lists in the process.
    pub fn new(bands: &[PriorityBand]) -> Result<Self, SystemException> {
        if bands.iter().any(|band| band.low > band.high) {
            return Err(raise::bad_param(minor::NONE, Completion::No));
        }
        BANDS.keep(bands).map(Self)
    }

    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// Returns the policy of this number; one without bands if the number is unknown.
    pub(crate) const fn of(number: u16) -> Self {
        Self(number)
    }

    pub(crate) fn slice(self) -> &'static [PriorityBand] {
        BANDS.get(self.0)
    }
}

impl Deref for PriorityBands {
    type Target = [PriorityBand];

    fn deref(&self) -> &[PriorityBand] {
        self.slice()
    }
}

/// Protocol numbers, equal to the tags of the protocols' profiles.
pub mod protocol_type {
    /// IIOP over TCP.
    pub const TCP: u32 = 0;
    /// GIOP over unix sockets; TAO's number.
    pub const UNIX_DOMAIN: u32 = 0x5441_4F00;
    /// GIOP over shared memory; TAO's number.
    pub const SHARED_MEMORY: u32 = 0x5441_4F02;
}

/// RTCORBA::Protocol: a protocol and the properties of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// The number of the protocol: one of [`protocol_type`], or another ORB's.
    pub protocol_type: u32,
    /// The properties of its connections; with `None` they have the defaults. (GIOP itself has no properties.)
    pub properties: Option<ProtocolProperties>,
}

/// RTCORBA::ProtocolProperties of the transport under GIOP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolProperties {
    /// TCP.
    Tcp(TcpProtocolProperties),
    /// Unix sockets.
    UnixDomain(UnixDomainProtocolProperties),
    /// Shared memory.
    SharedMemory(SharedMemoryProtocolProperties),
}

/// RTCORBA::TCPProtocolProperties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpProtocolProperties {
    /// SO_SNDBUF in octets; 0 keeps the system's default.
    pub send_buffer_size: i32,
    /// SO_RCVBUF in octets; 0 keeps the system's default.
    pub recv_buffer_size: i32,
    /// SO_KEEPALIVE: detects a peer that has vanished.
    pub keep_alive: bool,
    /// SO_DONTROUTE: reaches only hosts in the networks of this host.
    pub dont_route: bool,
    /// TCP_NODELAY: sends small messages without delay.
    pub no_delay: bool,
    /// Packets have the network priority mapped to the CORBA priority of the call, of the lane or of the delivery; to
    /// priority 0 without one. Not in the standard, and not contained in references.
    pub enable_network_priority: bool,
}

impl Default for TcpProtocolProperties {
    fn default() -> Self {
        Self {
            send_buffer_size: 0,
            recv_buffer_size: 0,
            keep_alive: true,
            dont_route: false,
            no_delay: true,
            enable_network_priority: false,
        }
    }
}

/// RTCORBA::UnixDomainProtocolProperties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnixDomainProtocolProperties {
    /// SO_SNDBUF in octets; 0 keeps the system's default.
    pub send_buffer_size: i32,
    /// SO_RCVBUF in octets; 0 keeps the system's default.
    pub recv_buffer_size: i32,
}

/// RTCORBA::SharedMemoryProtocolProperties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SharedMemoryProtocolProperties {
    /// Octets of shared memory per connection; 0 keeps the transport's default.
    pub preallocate_buffer_size: i32,
    /// The file that is mapped; if empty, the transport chooses its name.
    pub mmap_filename: String,
    /// The lock of that file; if empty, the transport chooses its name.
    pub mmap_lockname: String,
}

/// A list of protocols, most preferred first: RTCORBA::ServerProtocolPolicy (number 42) of an object adapter, and
/// RTCORBA::ClientProtocolPolicy (number 43) of a caller. Dereferences to the slice of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocols(u16);

impl Protocols {
    /// Returns the policy of these protocols.
    ///
    /// # Errors
    /// BAD_PARAM if the properties belong to another protocol, a size is negative, a file name contains NUL, or a
    /// protocol is listed twice; NO_RESOURCES at [`crate::limits::POLICY_LISTS_MAX`] different lists in the process.
    pub fn new(protocols: &[Protocol]) -> Result<Self, SystemException> {
        let is_sound = |(index, protocol): (usize, &Protocol)| {
            let is_first = |before: &Protocol| before.protocol_type != protocol.protocol_type;
            protocol.is_sound() && protocols[..index].iter().all(is_first)
        };
        if !protocols.iter().enumerate().all(is_sound) {
            return Err(raise::bad_param(minor::NONE, Completion::No));
        }
        PROTOCOLS.keep(protocols).map(Self)
    }

    /// Returns the policy of all protocols with their defaults, those within a host first, but for packets that have a
    /// network priority.
    ///
    /// # Errors
    /// As [`Protocols::new`].
    pub fn with_network_priority() -> Result<Self, SystemException> {
        let tcp = TcpProtocolProperties {
            enable_network_priority: true,
            ..TcpProtocolProperties::default()
        };
        Self::new(&[
            Protocol::shared_memory(SharedMemoryProtocolProperties::default()),
            Protocol::unix_domain(UnixDomainProtocolProperties::default()),
            Protocol::tcp(tcp),
        ])
    }

    pub(crate) const fn number(self) -> u16 {
        self.0
    }

    /// Returns the policy of this number; one without protocols if the number is unknown.
    pub(crate) const fn of(number: u16) -> Self {
        Self(number)
    }

    pub(crate) fn slice(self) -> &'static [Protocol] {
        PROTOCOLS.get(self.0)
    }
}

impl Deref for Protocols {
    type Target = [Protocol];

    fn deref(&self) -> &[Protocol] {
        self.slice()
    }
}

impl Protocol {
    /// TCP with these properties.
    #[must_use]
    pub const fn tcp(properties: TcpProtocolProperties) -> Self {
        Self {
            protocol_type: protocol_type::TCP,
            properties: Some(ProtocolProperties::Tcp(properties)),
        }
    }

    /// Unix sockets with these properties.
    #[must_use]
    pub const fn unix_domain(properties: UnixDomainProtocolProperties) -> Self {
        Self {
            protocol_type: protocol_type::UNIX_DOMAIN,
            properties: Some(ProtocolProperties::UnixDomain(properties)),
        }
    }

    /// Shared memory with these properties.
    #[must_use]
    pub const fn shared_memory(properties: SharedMemoryProtocolProperties) -> Self {
        Self {
            protocol_type: protocol_type::SHARED_MEMORY,
            properties: Some(ProtocolProperties::SharedMemory(properties)),
        }
    }

    fn is_sound(&self) -> bool {
        match (&self.properties, self.protocol_type) {
            (None, _) => true,
            (Some(ProtocolProperties::Tcp(tcp)), protocol_type::TCP) => {
                tcp.send_buffer_size >= 0 && tcp.recv_buffer_size >= 0
            }
            (Some(ProtocolProperties::UnixDomain(unix)), protocol_type::UNIX_DOMAIN) => {
                unix.send_buffer_size >= 0 && unix.recv_buffer_size >= 0
            }
            (Some(ProtocolProperties::SharedMemory(memory)), protocol_type::SHARED_MEMORY) => {
                let names = [&memory.mmap_filename, &memory.mmap_lockname];
                memory.preallocate_buffer_size >= 0 && !names.iter().any(|name| name.contains('\0'))
            }
            _ => false,
        }
    }
}

static BANDS: Lists<PriorityBand> = Lists::new();
static PROTOCOLS: Lists<Protocol> = Lists::new();

#[cfg(test)]
mod tests {
    use super::*;

    fn band(low: i16, high: i16) -> PriorityBand {
        let priority = |number| Priority::new(number).expect("not negative");
        PriorityBand {
            low: priority(low),
            high: priority(high),
        }
    }

    #[test]
    fn a_policy_is_its_list_and_the_same_list_is_the_same_policy() {
        let lists = [vec![], vec![band(0, 9)], vec![band(0, 9), band(10, 10)]];
        let made: Vec<_> = lists
            .iter()
            .map(|list| PriorityBands::new(list).expect("in order"))
            .collect();
        for (policy, list) in made.iter().zip(&lists) {
            assert_eq!(**policy, **list);
            assert_eq!(PriorityBands::new(list), Ok(*policy));
            assert_eq!(PriorityBands::of(policy.number()), *policy);
        }
        assert_ne!(made[1], made[2]);
        assert!(band(3, 5).holds(band(5, 5).low) && !band(3, 5).holds(band(6, 6).low));
    }

    #[test]
    fn what_cannot_be_meant_is_bad_param() {
        let refused = raise::bad_param(minor::NONE, Completion::No);
        assert_eq!(PriorityBands::new(&[band(0, 1), band(5, 4)]), Err(refused));
        let tcp = Protocol::tcp(TcpProtocolProperties::default());
        let crossed = Protocol {
            protocol_type: protocol_type::UNIX_DOMAIN,
            ..tcp.clone()
        };
        let negative = Protocol::unix_domain(UnixDomainProtocolProperties {
            send_buffer_size: -1,
            recv_buffer_size: 0,
        });
        for wrong in [
            vec![crossed],
            vec![negative],
            vec![tcp.clone(), tcp.clone()],
        ] {
            assert_eq!(Protocols::new(&wrong), Err(refused));
        }
        let one = std::slice::from_ref(&tcp);
        assert_eq!(*Protocols::new(one).expect("sound"), *one);
    }
}
