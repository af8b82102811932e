//! Calls to other naming services, which the service makes for its callers (ADR 0025).
//!
//! A serving thread makes such a call itself and waits for it. So few of them are under way at the same time that most
//! threads of a lane remain for other callers, and each peer has a share of them. A call beyond that is refused at once.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::cos_naming::NamingContextRef;
use deckwatch_orb::limits::HOPS_MAX;
use deckwatch_orb::peers::{Peer, Place, Places};
use deckwatch_orb::{
    Caller, Completion, LocalProcess, Orb, Origin, PoaCurrent, SystemException,
    SystemExceptionKind as Kind, lane_threads, own_minor,
};

use crate::limits;
use crate::walk::Fault;

/// The calls under way.
pub(crate) struct Outward {
    orb: Orb,
    current: PoaCurrent,
    under_way: AtomicUsize,
    max: usize,
    shares: Arc<Places>,
}

/// A call under way, until it is dropped.
struct UnderWay<'o> {
    count: &'o AtomicUsize,
    _place: Place,
}

impl Outward {
    pub(crate) fn new(orb: &Orb) -> Self {
        // A process with few addresses has fewer threads.
        let max = limits::OUTWARD_MAX.min(lane_threads() / 2);
        let share = limits::OUTWARD_SHARE.min(max / 2);
        Self {
            orb: orb.clone(),
            current: orb.poa_current(),
            under_way: AtomicUsize::new(0),
            max,
            shares: Places::new(share, own_minor::OUTWARD_SHARE_FULL),
        }
    }

    /// Makes a call for the caller of the request that this thread serves. `operation` gets the context with a time
    /// limit, and with the count of the services on the way.
    ///
    /// # Errors
    /// NO_PERMISSION if the context may not be called for the peer that bound it; IMP_LIMIT at the end of a way of
    /// [`HOPS_MAX`] services; TRANSIENT if too many calls are under way; the fault of the call.
    pub(crate) fn call<T>(
        &self,
        context: &NamingContextRef,
        operation: impl FnOnce(&NamingContextRef) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let object = context.object();
        let hops = self.current.hops();
        if hops >= HOPS_MAX {
            let minor = own_minor::TOO_MANY_HOPS;
            return Err(SystemException::new(Kind::ImpLimit, minor, Completion::No).into());
        }
        object.require_reach()?;
        let _under_way = self.begin()?;
        let limited = object
            .with_hops(hops + 1)
            .with_round_trip_timeout(Some(limits::FOREIGN_TIMEOUT));
        let begun = self.orb.transport().now();
        let outcome = operation(&NamingContextRef::unchecked_narrow(limited));
        if matches!(&outcome, Err(Fault::System(_)))
            && matches!(object.origin(), Origin::Network(_))
        {
            // A closed port, a silent one and one that is no naming service fail at the same time: a peer cannot use
            // the service to look which ports are open.
            let end = begun.after(limits::FOREIGN_FAILED_AFTER);
            self.orb.transport().sleep_until(end);
        }
        outcome
    }

    /// Takes a place for a call.
    ///
    /// # Errors
    /// TRANSIENT.
    fn begin(&self) -> Result<UnderWay<'_>, SystemException> {
        let peer = self.current.peer().unwrap_or(Peer::Unknown);
        let full = |minor| SystemException::new(Kind::Transient, minor, Completion::No);
        let place = self.shares.take(peer);
        let place = place.map_err(|refused| full(refused.minor))?;
        let one_more = |count| (count < self.max).then_some(count + 1);
        let counted = self.under_way.fetch_update(Relaxed, Relaxed, one_more);
        counted.map_err(|_| full(own_minor::OUTWARD_FULL))?;
        Ok(UnderWay {
            count: &self.under_way,
            _place: place,
        })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
    }
}

/// Whether an exception says that a call was refused before it went anywhere, or that it goes nowhere: its caller
/// cannot continue with the rest of the name.
pub(crate) fn is_refusal(exception: SystemException) -> bool {
    let refusals = [
        (Kind::NoPermission, own_minor::OUT_OF_REACH),
        (Kind::ImpLimit, own_minor::TOO_MANY_HOPS),
        (Kind::Transient, own_minor::OUTWARD_FULL),
        (Kind::Transient, own_minor::OUTWARD_SHARE_FULL),
    ];
    refusals.contains(&(exception.kind, exception.minor))
}

/// Says in words of the store who sent a request over the network: its address, and the name in its certificate.
pub(crate) fn maker_over_network(address: IpAddr, name: Option<&str>) -> String {
    name.map_or_else(
        || address.to_string(),
        |name| format!("{address}{CERTIFICATE}{name}"),
    )
}

/// What stands between the address of a maker and the name in its certificate.
pub(crate) const CERTIFICATE: &str = " cert:";

fn address_of(maker: &str) -> &str {
    maker
        .split_once(CERTIFICATE)
        .map_or(maker, |(address, _)| address)
}

/// Where a context leads that a peer has bound, by the words of the store for that peer.
pub(crate) fn origin_of(maker: &str) -> Origin {
    let user = |uid| Caller::Unix(LocalProcess { uid, pid: 0 });
    let caller = if maker.is_empty() {
        Caller::ThisProcess
    } else if let Some(Ok(uid)) = maker.strip_prefix("uid ").map(str::parse) {
        user(uid)
    } else if let Ok(address) = address_of(maker).parse::<IpAddr>() {
        Caller::Tcp(SocketAddr::new(address, 0))
    } else {
        Caller::Unknown
    };
    caller.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maker_of_a_binding_says_where_its_context_leads() {
        let own = deckwatch_os::process::effective_user();
        assert_eq!(origin_of(""), Origin::Own);
        assert_eq!(origin_of(&format!("uid {own}")), Origin::Own);
        assert_eq!(origin_of("uid 4294967294"), Origin::Host);
        assert_eq!(origin_of("127.0.0.1"), Origin::Host);
        assert_eq!(origin_of("::1"), Origin::Host);
        assert!(matches!(
            origin_of("198.51.100.7"),
            Origin::Network(Peer::Address(_))
        ));
        let named = maker_over_network(IpAddr::from([127, 0, 0, 1]), Some("nav.ship"));
        assert_eq!(named, "127.0.0.1 cert:nav.ship");
        assert_eq!(origin_of(&named), Origin::Host, "by its address");
        for unknown in ["unknown", "uid", "uid x", "somebody", "127.0.0.1 "] {
            assert_eq!(
                origin_of(unknown),
                Origin::Network(Peer::Unknown),
                "{unknown}"
            );
        }
    }
}
