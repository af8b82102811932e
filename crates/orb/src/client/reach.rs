//! Connections to addresses that peers gave: each address is checked once its name is resolved, and that very address
//! is connected to (ADR 0025).

use std::sync::Weak;

use super::Client;
use crate::call_side::WholeOrb;
use crate::origin::{Origin, Place, Reach};
use crate::transport::{Endpoint, Instant64, Stream, StreamOptions, TransportError};
use crate::wire::Address;

impl Client {
    /// Restricts where references of peers lead.
    pub(crate) fn with_reach(self, reach: Option<Reach>) -> Self {
        Self { reach, ..self }
    }

    /// Sets the ORB whose endpoints are looked up; called once, when the ORB is made.
    pub(crate) fn belong_to(&self, whole: Weak<dyn WholeOrb>) {
        let _ = self.whole.set(whole); // It is not set twice.
    }

    /// Whether references of peers are restricted.
    #[inline]
    pub(crate) const fn is_restricted(&self) -> bool {
        self.reach.is_some()
    }

    /// Whether a reference of this origin may lead to an endpoint. A host name may: it is checked with the connection.
    pub(crate) fn may_reach(&self, origin: Origin, endpoint: &Endpoint) -> bool {
        let place = || {
            let whole = self.whole.get().and_then(Weak::upgrade);
            let listening = whole.map_or_else(Vec::new, |whole| whole.listening());
            Place::new(&self.transport.interfaces(), &listening)
        };
        let reach = self.reach.as_ref();
        reach.is_none_or(|reach| origin.may_reach(endpoint, reach, place))
    }

    /// Removes the addresses that a reference of this origin may not lead to, if others remain.
    pub(crate) fn keep_reachable(&self, origin: Origin, addresses: &mut Vec<Address>) {
        if origin != Origin::Own && self.is_any_reachable(origin, addresses) {
            addresses.retain(|at| self.may_reach(origin, &at.endpoint));
        }
    }

    /// Whether a reference of this origin may lead to one of its addresses.
    pub(crate) fn is_any_reachable(&self, origin: Origin, addresses: &[Address]) -> bool {
        let mut endpoints = addresses.iter().map(|at| &at.endpoint);
        endpoints.any(|endpoint| self.may_reach(origin, endpoint))
    }

    /// Connects to an endpoint in a reference of this origin.
    pub(crate) fn connect(
        &self,
        origin: Origin,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Instant64,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let transport = &self.transport;
        self.connect_within(origin, endpoint, (options, deadline), |at| {
            transport.connect(at, options, Some(deadline))
        })
    }

    /// As [`Client::connect`], without waiting for the peer. A name takes until `deadline`.
    pub(crate) fn begin_connect(
        &self,
        origin: Origin,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Instant64,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let transport = &self.transport;
        self.connect_within(origin, endpoint, (options, deadline), |at| {
            transport.begin_connect(at, options)
        })
    }

    fn connect_within(
        &self,
        origin: Origin,
        endpoint: &Endpoint,
        (options, deadline): (&StreamOptions, Instant64),
        connect: impl Fn(&Endpoint) -> Result<Box<dyn Stream>, TransportError>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let mut failure = TransportError::OutOfReach;
        if origin == Origin::Own {
            return connect(endpoint);
        }
        let Origin::Network(by) = origin else {
            let may_reach = self.may_reach(origin, endpoint);
            return may_reach.then(|| connect(endpoint)).ok_or(failure)?;
        };
        // A name without an address fails as one with an address that is out of reach.
        let found = self.transport.resolve(endpoint, by, Some(deadline));
        let found = found.map_err(|error| match error {
            TransportError::UnknownHost => TransportError::OutOfReach,
            error => error,
        })?;
        let is_tls = matches!(endpoint, Endpoint::Tls { .. });
        for at in found.iter().filter(|at| self.may_reach(origin, at)) {
            // The certificate has the name; but that is not resolved again, because it may have another address then.
            let connected = if is_tls {
                self.transport
                    .connect_at(endpoint, at, options, Some(deadline))
            } else {
                connect(at)
            };
            match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
            if failure == TransportError::TimedOut {
                break;
            }
        }
        Err(failure)
    }
}
