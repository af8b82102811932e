//! Clients of a channel of either kind, ours or foreign: where the channel reaches them, their proxies, and how they
//! disconnect.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _, UdpSocket};
use std::ops::Deref;
use std::time::Duration;

use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{ObjectRef, Policy, SetOverrideType, SyncScope, SystemException};

use crate::{cos_event_channel_admin as cos, rtec_event_channel_admin as rtec};

/// A proxy in a channel.
pub trait Proxy {
    /// The operation by which its client disconnects.
    const DISCONNECT: &'static str;

    /// The client pushes by one-ways, which a two-way call may overtake: they have another connection.
    const PUSHES_ONEWAY: bool = false;

    /// The proxy's reference.
    fn reference(&self) -> &ObjectRef;
}

/// The proxy of one client. Dropping it disconnects the client, so that no proxy stays in the channel.
///
/// A consumer's events before the end have arrived, or never will. A supplier's pushes before it have reached the
/// channel: those by one-way are [flushed](Connected::flush) before the call that disconnects.
#[derive(Debug)]
pub struct Connected<P: Proxy> {
    proxy: P,
    /// Time limit of the call that disconnects.
    within: Duration,
}

/// Why a channel has returned no proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoProxy {
    /// A nil reference.
    Nil,
    /// An exception.
    Raised(SystemException),
}

impl<P: Proxy> Connected<P> {
    /// Obtains a proxy from an administration of a channel. The caller connects its client to the proxy.
    ///
    /// # Errors
    /// [`NoProxy`].
    pub fn obtain<A>(
        admin: Result<Option<A>, SystemException>,
        obtain: impl FnOnce(&A) -> Result<Option<P>, SystemException>,
        within: Duration,
    ) -> Result<Self, NoProxy> {
        let admin = admin.map_err(NoProxy::Raised)?.ok_or(NoProxy::Nil)?;
        let proxy = obtain(&admin).map_err(NoProxy::Raised)?;
        let proxy = proxy.ok_or(NoProxy::Nil)?;
        Ok(Self { proxy, within })
    }

    /// Waits until the channel has taken the pushes before. Those by one-way are followed by an empty push, which is
    /// sent on the same connection, and the channel replies to it. Those by two-way have been taken already.
    ///
    /// # Errors
    /// The exception of the empty push: the channel may not have taken the pushes before.
    pub fn flush(&self) -> Result<(), SystemException> {
        if !P::PUSHES_ONEWAY {
            return Ok(());
        }
        let served = [Policy::SyncScope(SyncScope::WithTarget)];
        self.hurried()
            .set_policy_overrides(&served, SetOverrideType::AddOverride)?
            .invoke_oneway("push", |w| w.write_u32(0))
    }

    /// The proxy's reference, with the time limit of the end.
    fn hurried(&self) -> ObjectRef {
        let reference = self.proxy.reference();
        reference.with_round_trip_timeout(Some(self.within))
    }
}

impl<P: Proxy> Deref for Connected<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.proxy
    }
}

impl<P: Proxy> Drop for Connected<P> {
    fn drop(&mut self) {
        // If the channel has ended, there is nothing to disconnect.
        let _ = self.flush();
        let _ = self.hurried().invoke(
            P::DISCONNECT,
            |_| Ok(()),
            |_| Ok(()),
            |_, _| Ok(None::<SystemException>),
        );
    }
}

impl std::fmt::Display for NoProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nil => f.write_str("it returned a nil reference"),
            Self::Raised(exception) => deckwatch_orb::generated::write_exception(exception, f),
        }
    }
}

impl std::error::Error for NoProxy {}

/// Returns the address of this host from which packets to an object's host leave. A consumer that listens there can be
/// reached by a channel there. An object that only a socket of this host leads to gets the loopback address.
#[must_use]
pub fn address_towards(object: &ObjectRef) -> IpAddr {
    let profile = object.ior().iiop_profiles().flatten().next();
    // A server over TLS alone has port 0 in its profile.
    let plain =
        |profile: &IiopProfile| (profile.port != 0).then(|| (profile.host.clone(), profile.port));
    let towards = profile
        .and_then(|profile| plain(&profile).or_else(|| profile.tls_addresses().into_iter().next()))
        .and_then(|address| address.to_socket_addrs().ok())
        .and_then(|mut addresses| addresses.next());
    let own = towards.and_then(|towards| {
        let any: IpAddr = if towards.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        // Connecting a datagram socket sends nothing; the kernel chooses the route.
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(towards).ok()?;
        socket.local_addr().ok()
    });
    own.map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip())
}

macro_rules! proxies {
    ($($proxy:ty: $disconnect:literal $(, pushes_oneway = $oneway:literal)?;)*) => {$(
        impl Proxy for $proxy {
            const DISCONNECT: &'static str = $disconnect;
            $(const PUSHES_ONEWAY: bool = $oneway;)?

            fn reference(&self) -> &ObjectRef {
                self.object()
            }
        }
    )*};
}

proxies! {
    cos::ProxyPushConsumerRef: "disconnect_push_consumer";
    cos::ProxyPushSupplierRef: "disconnect_push_supplier";
    cos::ProxyPullSupplierRef: "disconnect_pull_supplier";
    rtec::ProxyPushConsumerRef: "disconnect_push_consumer", pushes_oneway = true;
    rtec::ProxyPushSupplierRef: "disconnect_push_supplier";
}

#[cfg(test)]
mod tests {
    use deckwatch_orb::{Completion, Orb, SystemExceptionKind as Kind};

    use super::*;

    #[test]
    fn address_towards_an_object_is_the_one_its_host_sees() {
        let orb = Orb::builder().build().expect("an ORB");
        let of = |url: &str| {
            let object = orb.string_to_object(url).expect("sound");
            address_towards(&object.expect("not nil"))
        };
        assert_eq!(
            of("corbaloc::127.0.0.3:9/x"),
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        );
        assert_eq!(of("corbaloc::[::1]:9/x"), IpAddr::V6(Ipv6Addr::LOCALHOST));
    }

    #[test]
    fn object_without_a_plain_port_is_reached_by_its_tls_address() {
        let tls = deckwatch_giop::ior::IiopProfile::new("::1", 0, b"x");
        let ior = deckwatch_giop::Ior::with_iiop("IDL:X:1.0", &tls).expect("a reference");
        let orb = Orb::builder().build().expect("an ORB");
        let object = orb.string_to_object(&ior.to_string()).expect("sound");
        // It has none: no address leads to it.
        let own = address_towards(&object.expect("not nil"));
        assert_eq!(own, IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn why_there_is_no_proxy_is_said_in_words() {
        assert_eq!(NoProxy::Nil.to_string(), "it returned a nil reference");
        let raised = SystemException::new(Kind::NoPermission, 0, Completion::No);
        let words = NoProxy::Raised(raised).to_string();
        assert!(words.contains("NO_PERMISSION"), "{words}");
    }
}
