//! One attempt of a call: which target, over which connection. `retry.rs` decides whether another one follows.

use super::bidirectional::may_be_bidirectional;
use super::binding::Binding;
use super::call::{Call, CallKind};
use super::collocated::may_be_collocated;
use super::connection::ClientConnection;
use super::priority::bind_band;
use super::reply::{Outcome, Reply};
use super::retry::{Failure, first_of, may_reconnect};
use super::target::Target;
use super::{Client, Deadlines};
use crate::SystemException;
use crate::counters::Counter;
use crate::interceptor::intercept;
use crate::limits::CONNECT_TIMEOUT;
use crate::reference::Inner;

/// A call on its way to one target.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) client: &'a Client,
    pub(super) target: &'a Target,
    pub(super) call: &'a Call<'a>,
    /// A closed connection may be replaced.
    pub(super) may_reconnect: bool,
    pub(super) deadlines: Deadlines,
}

impl Client {
    /// Calls the object of `origin` at one of `targets` and waits for the reply, past the interceptors if there are
    /// any. `is_bound`: the reference had reached its server before this call.
    #[inline]
    pub(super) fn attempt(
        &self,
        origin: &Inner,
        targets: &[Target],
        call: &Call<'_>,
        is_bound: bool,
        deadlines: Deadlines,
    ) -> Result<Outcome, SystemException> {
        if let Some(all) = self.interceptors.client()
            && call.kind != CallKind::Locate
        {
            std::hint::cold_path();
            return intercept(self, all, (origin, &targets[0]), call, |call| {
                self.attempt_plain(targets, call, is_bound, deadlines)
            });
        }
        self.attempt_plain(targets, call, is_bound, deadlines)?
            .into_outcome(self)
    }

    #[inline]
    fn attempt_plain(
        &self,
        targets: &[Target],
        call: &Call<'_>,
        is_bound: bool,
        deadlines: Deadlines,
    ) -> Result<Reply, SystemException> {
        let may_reconnect = may_reconnect(call.policies, is_bound);
        first_of(targets, |target| {
            Attempt {
                client: self,
                target,
                call,
                may_reconnect,
                deadlines,
            }
            .run()
        })
    }
}

impl Attempt<'_> {
    /// One request and its reply.
    fn run(&self) -> Result<Reply, Failure> {
        let (target, call) = (self.target, self.call);
        let is_plain = target.here.is_none() && !may_be_bidirectional(target, call);
        if is_plain && call.kind != CallKind::Oneway {
            self.over_idle()
        } else {
            std::hint::cold_path();
            self.run_specially()
        }
    }

    /// The call may have to be served here, share a connection, or keep an order.
    #[inline(never)]
    fn run_specially(&self) -> Result<Reply, Failure> {
        if let Some(server) = may_be_collocated(self.target, self.call) {
            self.serve_here(&*server)
        } else if let Some(found) = self.bidirectional() {
            found.and_then(|over| self.over_bidirectional(&over))
        } else if self.call.kind == CallKind::Oneway {
            self.in_order()
        } else {
            self.over_idle()
        }
    }

    /// Over an idle connection. If that turns out to be closed, over a new one.
    fn over_idle(&self) -> Result<Reply, Failure> {
        let client = self.client;
        let Some(mut connection) = self.target.binding.lend_idle(client) else {
            std::hint::cold_path();
            return self.over_new();
        };
        client.counters.count(Counter::RequestsSent);
        match connection.exchange(self) {
            Ok((reply, true)) => {
                let now = connection.note_use(&*client.transport);
                drop(connection);
                client.bindings.close_idle_at(&client.counters, now);
                Ok(reply)
            }
            exchanged => {
                std::hint::cold_path();
                self.after_idle(connection.into_value(), exchanged)
            }
        }
    }

    /// The exchange over an idle connection failed, or its connection cannot be used again.
    #[inline(never)]
    fn after_idle(
        &self,
        connection: ClientConnection,
        exchanged: Result<(Reply, bool), Failure>,
    ) -> Result<Reply, Failure> {
        match exchanged {
            Err(failure) if failure.may_retry => {
                drop(connection);
                self.client.counters.count(Counter::StaleConnections);
                self.over_new()
            }
            exchanged => self.end(connection, exchanged),
        }
    }

    #[inline(never)]
    fn over_new(&self) -> Result<Reply, Failure> {
        let mut connection = self.connect()?;
        self.client.counters.count(Counter::RequestsSent);
        let exchanged = connection.exchange(self);
        self.end(connection, exchanged)
    }

    /// A new connection beside those that are open; if none is, the policies in force must allow to connect again.
    pub(super) fn connect(&self) -> Result<ClientConnection, Failure> {
        let (client, call) = (self.client, self.call);
        let binding: &Binding = &self.target.binding;
        if !self.may_reconnect && binding.is_closed() {
            return Err(Failure::may_not_reconnect());
        }
        let deadline = self.deadlines.request;
        let within = client
            .transport
            .now()
            .after(call.policies.connection().unwrap_or(CONNECT_TIMEOUT));
        let until = deadline.map_or(within, |deadline| deadline.min(within));
        let connection = binding
            .connect(client, call.number, until)
            .map_err(|error| Failure::connecting(client, binding, error, (deadline, within)))?;
        match binding.quality().band {
            None => Ok(connection),
            Some(_) => bind_band(connection, self, until),
        }
    }

    /// Pools the connection, sets it aside for the reply to an abandoned call, or closes it.
    #[inline(never)]
    fn end(
        &self,
        mut connection: ClientConnection,
        exchanged: Result<(Reply, bool), Failure>,
    ) -> Result<Reply, Failure> {
        let (client, binding) = (self.client, &self.target.binding);
        match exchanged {
            Ok((reply, is_clean)) => {
                if is_clean {
                    let now = connection.note_use(&*client.transport);
                    let _ = binding.idle.put(connection); // A full pool has enough.
                    client.bindings.close_idle_at(&client.counters, now);
                }
                Ok(reply)
            }
            Err(failure) => {
                if failure.keeps_connection && connection.abandoned.is_empty() {
                    connection.note_use(&*client.transport);
                    let _ = binding.idle.put(connection); // A full pool has enough.
                } else if failure.keeps_connection {
                    binding.set_aside(client, connection);
                }
                Err(failure)
            }
        }
    }
}
