//! The request that the calling thread serves (`PortableServer::Current`, CORBA 3.3 part 1, 15.3.10). The standard's
//! operations have their names without `get_`.

use std::fmt;
use std::sync::Arc;

use super::objects::Serving;
use super::{Adapter, ObjectId, Poa};
use crate::peers::Peer;
use crate::server::Server;
use crate::{Caller, CallerConnection, Identity, ObjectRef, Servant};

/// The current request of a servant. A default servant learns from it which object it serves.
#[derive(Clone)]
pub struct PoaCurrent(pub(crate) Arc<Adapter>);

/// The calling thread does not serve a request of this ORB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoContext;

impl fmt::Display for NoContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The thread does not serve a request of this ORB.")
    }
}

impl std::error::Error for NoContext {}

impl PoaCurrent {
    /// The adapter of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn poa(&self) -> Result<Poa, NoContext> {
        self.look().map(|serving| Poa(serving.adapter))
    }

    /// The id of the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn object_id(&self) -> Result<ObjectId, NoContext> {
        self.look().map(|serving| serving.id)
    }

    /// A reference to the target object.
    ///
    /// # Errors
    /// [`NoContext`].
    pub fn reference(&self) -> Result<ObjectRef, NoContext> {
        let Serving {
            id,
            adapter,
            servant,
        } = self.look()?;
        let poa = Poa(adapter);
        let interface = servant.map(|servant| servant.primary_interface(&id, &poa));
        let made = poa.reference_to(&id, &interface.unwrap_or_default());
        made.map_err(|_| NoContext)
    }

    /// The servant of the request.
    ///
    /// # Errors
    /// [`NoContext`]; also in a call to a servant manager, before there is a servant.
    pub fn servant(&self) -> Result<Arc<dyn Servant>, NoContext> {
        self.look()?.servant.ok_or(NoContext)
    }

    /// The process that sent the request. Looks the connection up: a service that asks for it in each request keeps the
    /// [`CallerConnection`] that it has checked.
    ///
    /// # Errors
    /// [`NoContext`]; also if the innermost request that the thread serves belongs to another ORB.
    pub fn caller(&self) -> Result<Caller, NoContext> {
        Ok(self.caller_at_connection()?.0)
    }

    /// The name in the certificate of the process that sent the request: the first DNS name, else the first URI, else
    /// the common name. `None` over a transport without certificates. Looks the connection up.
    ///
    /// # Errors
    /// As [`PoaCurrent::caller`].
    pub fn caller_name(&self) -> Result<Option<Arc<str>>, NoContext> {
        Ok(self.caller_at_connection()?.1)
    }

    /// The holder of the shares that the request counts in: the process that sent it, by the name in its certificate, else
    /// by its address or user. Looks the connection up.
    ///
    /// # Errors
    /// As [`PoaCurrent::caller`].
    pub fn peer(&self) -> Result<Peer, NoContext> {
        let (caller, name, _) = self.caller_at_connection()?;
        Ok(Peer::of(caller, name.as_deref()))
    }

    /// Who sent the request, as tables know it: unknown outside of a request. Looks the connection up.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let known = self.caller_at_connection();
        known.map_or(Identity::UNKNOWN, |(caller, name, is_this_host)| Identity {
            caller,
            name,
            is_this_host,
        })
    }

    /// The caller, its name, and whether it connected from the address that it connected to.
    pub(crate) fn caller_at_connection(
        &self,
    ) -> Result<(Caller, Option<Arc<str>>, bool), NoContext> {
        let pools = self.0.pools().ok_or(NoContext)?;
        let lane = pools.find_lane(|lane| lane.server.is_served_here());
        let lane = lane.ok_or(NoContext)?;
        Ok(lane.caller(Server::connection_served_here()))
    }

    /// The connection that brought the request that the calling thread serves, of whichever ORB. Neither locks nor
    /// looks anything up. Outside of a request it is that of collocated calls.
    #[must_use]
    pub fn caller_connection(&self) -> CallerConnection {
        Server::connection_served_here()
    }

    /// How many services have passed on the request that the calling thread serves: 0 outside of a request, and for one
    /// that its first caller sent. A service that calls others for its callers passes on one more
    /// ([`ObjectRef::with_hops`]), up to [`crate::limits::HOPS_MAX`].
    #[must_use]
    pub fn hops(&self) -> u8 {
        Server::hops_served_here()
    }

    /// The connections of the ORB that are open now, and that of collocated calls. A service finds out by it which of
    /// its clients are gone. Takes time in proportion to their number.
    #[must_use]
    pub fn open_connections(&self) -> Vec<CallerConnection> {
        let mut open = vec![CallerConnection::THIS_PROCESS];
        for pool in self.0.pools().iter().flat_map(|pools| pools.all()) {
            for at in &pool.lanes {
                at.lane.for_each_caller(|connection| open.push(connection));
            }
        }
        open
    }

    fn look(&self) -> Result<Serving, NoContext> {
        self.0.current().ok_or(NoContext)
    }
}

impl fmt::Debug for PoaCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaCurrent")
            .field("object_id", &self.object_id())
            .finish()
    }
}
