//! The message of a request, with all that travels beside its arguments.

use deckwatch_cdr::{EncodeError, Unwritten};
use deckwatch_giop::context_id;
use deckwatch_giop::invocation::TIMES_SIZE_MAX;

use super::Client;
use super::call::{Call, CallKind};
use super::priority::RealTimeContexts;
use crate::reference::Target;
use crate::wire::{self, Contexts};

/// What a request owes to the connection that it goes over.
#[derive(Clone, Copy)]
pub(super) struct RequestExtras<'p> {
    pub(super) id: u32,
    /// The server does not know our code sets yet.
    pub(super) sends_code_sets: bool,
    /// Where the server may call back, which it has not been told yet.
    pub(super) listen_points: Option<&'p [u8]>,
}

impl Client {
    /// Writes the whole message of a request, with the service contexts that go with it.
    pub(super) fn write_request(
        &self,
        buffer: &mut Vec<u8>,
        target: &Target,
        call: &Call<'_>,
        extras: &RequestExtras<'_>,
    ) -> Result<(), EncodeError> {
        let rest = self.begin_request(buffer, target, call, extras)?;
        buffer.extend_from_slice(rest.octets());
        Ok(())
    }

    /// As [`Client::write_request`], but for what the arguments leave where it stands.
    pub(super) fn begin_request<'c>(
        &self,
        buffer: &mut Vec<u8>,
        target: &Target,
        call: &Call<'c>,
        extras: &RequestExtras<'_>,
    ) -> Result<Unwritten<'c>, EncodeError> {
        let profile = &target.profile;
        let sends_code_sets = extras.sends_code_sets && profile.code_sets.is_some();
        let is_alone = call.times.is_none()
            && !sends_code_sets
            && extras.listen_points.is_none()
            && call.contexts.is_empty();
        if is_alone && !RealTimeContexts::has_any(target, call) && call.kind != CallKind::Locate {
            let head = wire::RequestHead {
                id: extras.id,
                response: call.response,
                operation: call.operation,
                contexts: &[],
            };
            return wire::write_request(buffer, profile, &head, self.sizes, call.arguments);
        }
        self.begin_request_with(buffer, target, call, extras)
    }

    /// One that has service contexts, or is a question where the object is.
    #[inline(never)]
    fn begin_request_with<'c>(
        &self,
        buffer: &mut Vec<u8>,
        target: &Target,
        call: &Call<'c>,
        extras: &RequestExtras<'_>,
    ) -> Result<Unwritten<'c>, EncodeError> {
        let profile = &target.profile;
        let mut contexts = Contexts::new();
        let mut octets = None;
        if let Some(times) = call.times {
            let octets = octets.insert([0; TIMES_SIZE_MAX]);
            contexts.push(context_id::INVOCATION_POLICIES, times.write(octets));
        }
        if let Some(data) = &profile.code_sets
            && extras.sends_code_sets
        {
            contexts.push(context_id::CODE_SETS, data);
        }
        let real_time = RealTimeContexts::of(target, call);
        real_time.push(&mut contexts);
        if let Some(data) = extras.listen_points {
            contexts.push(context_id::BI_DIR_IIOP, data);
        }
        for (id, data) in call.contexts {
            contexts.push(*id, data);
        }
        let head = wire::RequestHead {
            id: extras.id,
            response: call.response,
            operation: call.operation,
            contexts: contexts.as_slice(),
        };
        match call.kind {
            CallKind::Locate => wire::write_locate_request(buffer, profile, extras.id, self.sizes)
                .map(Unwritten::from),
            _ => wire::write_request(buffer, profile, &head, self.sizes, call.arguments),
        }
    }
}
