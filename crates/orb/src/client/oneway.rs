//! One-way calls: those to one endpoint use one connection, in the order they were made.

use deckwatch_sync::PiMutexGuard;

use super::attempt::Attempt;
use super::call::Call;
use super::collocated::may_be_collocated;
use super::connection::ClientConnection;
use super::redirect::trace_raised;
use super::reply::Reply;
use super::retry::{Failure, first_of, may_rebind, may_reconnect, may_return_to_origin};
use super::target::Target;
use super::times::require_end;
use super::{Client, Deadlines};
use crate::counters::Counter;
use crate::interceptor::intercept_oneway;
use crate::limits::ONEWAY_WRITE_TIMEOUT;
use crate::reference::Inner;
use crate::{Completion, SystemException, SystemExceptionKind as Kind, own_minor as own};

/// Hands a one-way to the transport, past the interceptors if there are any (SYNC_WITH_TRANSPORT).
pub(crate) fn send_oneway(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    let sent = match client.interceptors.client() {
        None => send(client, origin, call),
        Some(all) => intercept_oneway(client, all, origin, call, |call| send(client, origin, call)),
    };
    sent.inspect_err(|exception| trace_raised(client, origin, call, *exception))
}

/// Sends a one-way for a caller that does not want to know whether it could be sent. The caller's own faults are
/// returned all the same.
pub(super) fn send_unwatched(
    client: &Client,
    origin: &Inner,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    let is_loss = |exception: &SystemException| {
        matches!(
            exception.kind,
            Kind::Transient | Kind::CommFailure | Kind::Timeout | Kind::NoResources
        )
    };
    let sent = send(client, origin, call)
        .inspect_err(|exception| trace_raised(client, origin, call, *exception));
    match sent {
        Err(exception) if is_loss(&exception) => {
            client.counters.count(Counter::OnewaysLost);
            Ok(())
        }
        sent => sent,
    }
}

/// To the forwarded-to addresses while those can be reached, else to the reference's own.
fn send(client: &Client, origin: &Inner, call: &Call<'_>) -> Result<(), SystemException> {
    let origin = origin.current();
    let is_bound = origin.is_bound();
    if let Some(routes) = origin.forwarded() {
        match send_to_first(client, routes.choose(client, call)?, call, is_bound) {
            Err(exception)
                if may_rebind(call.policies, is_bound) && may_return_to_origin(exception) =>
            {
                origin.remember(None);
            }
            sent => return sent,
        }
    }
    let targets = origin.routes()?.choose(client, call)?;
    send_to_first(client, targets, call, is_bound)?;
    origin.bind();
    Ok(())
}

/// Sends a one-way to the first of `targets` that can be reached, behind those sent there before.
fn send_to_first(
    client: &Client,
    targets: &[Target],
    call: &Call<'_>,
    is_bound: bool,
) -> Result<(), SystemException> {
    let may_reconnect = may_reconnect(call.policies, is_bound);
    first_of(targets, |target| {
        Attempt {
            client,
            target,
            call,
            may_reconnect,
            deadlines: Deadlines::NONE,
        }
        .send_oneway()
    })
}

impl Attempt<'_> {
    /// Sends a one-way and returns as soon as the transport has it.
    fn send_oneway(self) -> Result<(), Failure> {
        let (client, call) = (self.client, self.call);
        if let Some(server) = may_be_collocated(self.target, call) {
            return self.serve_oneway_here(&*server);
        }
        if let Some(found) = self.bidirectional() {
            let over = found?;
            Deadlines::begin(client, call).map_err(Failure::last)?;
            client.counters.count(Counter::OnewaysSent);
            return self.send_bidirectional(&over, over.next_id());
        }
        let mut timed = self;
        if call.needs_time() {
            timed.deadlines = Deadlines::begin(client, call).map_err(Failure::last)?;
        }
        let mut kept = timed.await_turn()?;
        timed.send_over(&mut kept)
    }

    /// Sends a one-way over the connection that is kept for them, or a new one.
    pub(super) fn send_over(&self, kept: &mut Option<ClientConnection>) -> Result<(), Failure> {
        let (client, target, call) = (self.client, self.target, self.call);
        let limit = self.deadlines.request;
        // Checked before the connection is taken, which stays as it is.
        require_end(client, call, limit)?;
        let now = client.transport.now_coarse();
        let deadline = Some(limit.unwrap_or(now.after(ONEWAY_WRITE_TIMEOUT)));
        client.counters.count(Counter::OnewaysSent);
        let cached = kept.take().filter(|cached| cached.is_fresh(client, now));
        if let Some(mut connection) = cached {
            match connection.send(client, target, call, deadline) {
                Err(failure) if failure.may_retry => {
                    client.counters.count(Counter::StaleConnections);
                }
                sent => return self.keep(kept, connection, sent.map(|_id| ((), true))),
            }
        }
        let mut connection = self.connect()?;
        let sent = connection.send(client, target, call, deadline);
        self.keep(kept, connection, sent.map(|_id| ((), true)))
    }

    /// A one-way whose receipt or outcome is waited for: it is sent behind earlier one-ways, and later ones wait for
    /// its reply.
    pub(super) fn in_order(&self) -> Result<Reply, Failure> {
        let client = self.client;
        let mut kept = self.await_turn()?;
        client.counters.count(Counter::OnewaysSent);
        let now = client.transport.now_coarse();
        let cached = kept.take().filter(|cached| cached.is_fresh(client, now));
        if let Some(mut connection) = cached {
            match connection.exchange(self) {
                Err(failure) if failure.may_retry => {
                    client.counters.count(Counter::StaleConnections);
                }
                exchanged => return self.keep(&mut kept, connection, exchanged),
            }
        }
        let mut connection = self.connect()?;
        let exchanged = connection.exchange(self);
        self.keep(&mut kept, connection, exchanged)
    }

    /// Waits until earlier one-ways have been sent, or replied to.
    fn await_turn(&self) -> Result<PiMutexGuard<'_, Option<ClientConnection>>, Failure> {
        let (client, binding) = (self.client, &self.target.binding);
        let taken = client.lock_until(&binding.oneway, "client.oneway", self.deadlines.request);
        let mut kept = taken
            .ok_or_else(|| Failure::timed_out(client, own::TIMED_OUT_SENDING, Completion::No))?;
        binding.send_queued_before(&mut kept);
        Ok(kept)
    }

    /// Keeps the connection for the one-ways that follow, unless a part of a message may have been written to it, or it
    /// has brought octets that were not asked for.
    fn keep<T>(
        &self,
        kept: &mut Option<ClientConnection>,
        mut connection: ClientConnection,
        done: Result<(T, bool), Failure>,
    ) -> Result<T, Failure> {
        connection.last_used = self.client.transport.now_coarse();
        let is_sound = match &done {
            Ok((_, is_clean)) => *is_clean,
            Err(failure) => failure.keeps_connection,
        };
        *kept = is_sound.then_some(connection);
        done.map(|(value, _)| value)
    }
}
