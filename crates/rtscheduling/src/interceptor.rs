//! The scheduling points of calls: the request, its service, and the reply. The service context SchedulingInfo carries
//! the distributable thread.

use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::interceptor::{
    ClientRequestInfo, ClientRequestInterceptor, InterceptorError, ReplyStatus, RequestOrder,
    ServerRequestInfo, ServerRequestInterceptor,
};
use deckwatch_orb::{
    Completion, ServiceContexts, SystemException, SystemExceptionKind as Kind, context_id,
};

use crate::parameter::SchedulingInfo;
use crate::table::Threads;
use crate::{IdType, SchedulingParameter, raise, segments};

/// Calls the scheduler of an ORB at each scheduling point of its requests.
pub(crate) struct Interceptor(pub(crate) Arc<Threads>);

const NAME: &str = "RTScheduler";

impl Interceptor {
    /// Returns the context for a request of the calling thread; `None` if the thread is no distributable thread of this
    /// ORB.
    fn departing(
        &self,
        info: &ClientRequestInfo,
    ) -> Result<Option<SchedulingInfo>, SystemException> {
        let scheduler = &self.0.scheduler;
        segments::with(|slot| {
            if !slot.as_ref().is_some_and(|active| active.is_of(&self.0)) {
                return Ok(None);
            }
            segments::require_active(slot, Completion::No)?;
            Ok(slot.as_ref().map(|active| {
                if info.is_synchronous() {
                    let (id, mut parameter) = (active.id, active.remaining());
                    scheduler.send_request(&id, &mut parameter);
                    return SchedulingInfo { id, parameter };
                }
                let (id, mut parameter) = (IdType::fresh(), active.implicit_parameter());
                scheduler.send_oneway(&id, &mut parameter);
                SchedulingInfo { id, parameter }
            }))
        })
    }

    /// Returns the distributable thread that continues at the end of a request, if the request carried one. Charges the
    /// processor time that the server has used.
    fn returning(&self, info: &ClientRequestInfo) -> Option<SchedulingInfo> {
        if !info.is_synchronous() {
            return None;
        }
        let context = info.request_service_context(context_id::SCHEDULING_INFO);
        let SchedulingInfo { id, parameter } = SchedulingInfo::parse(context.ok()?.data).ok()??;
        let parameter = segments::with(|active| {
            let active = active.as_mut().filter(|active| active.id == id)?;
            if let Some(used) = used_by_server(info, id) {
                active.charge(used);
            }
            Some(active.remaining())
        })
        .unwrap_or(parameter);
        Some(SchedulingInfo { id, parameter })
    }
}

/// Returns the processor time that the server states to have used for this request of the distributable thread `id`.
fn used_by_server(info: &ClientRequestInfo, id: IdType) -> Option<Duration> {
    let context = info.reply_service_context(context_id::SCHEDULING_INFO);
    // A reply that cannot be read this way is a foreign server's: the call itself is sound.
    let stated = SchedulingInfo::parse(context.ok()?.data).ok()??;
    stated.parameter.execution_time.filter(|_| stated.id == id)
}

/// A scheduling point after the reply: the thread may have been cancelled in this ORB meanwhile.
fn require_active_again() -> Result<(), SystemException> {
    segments::with(|slot| segments::require_active(slot, Completion::Yes))
}

impl ClientRequestInterceptor for Interceptor {
    fn name(&self) -> &str {
        NAME
    }

    /// The request that starts a distributable thread is one request however often it is sent: another attempt carries
    /// the same thread, and the scheduler is not called again. A call of a distributable thread passes this scheduling
    /// point at each attempt, as `receive_other` after the one before.
    fn send_request(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        if info.is_repeated() {
            let earlier = info.earlier_service_context(context_id::SCHEDULING_INFO);
            let Ok(data) = earlier.map(|context| context.data.to_vec()) else {
                return Ok(()); // It started none.
            };
            info.add_request_service_context(context_id::SCHEDULING_INFO, &data, true)?;
            return Ok(());
        }
        if let Some(departing) = self.departing(info)? {
            let data = departing.to_octets();
            info.add_request_service_context(context_id::SCHEDULING_INFO, &data, true)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        let Some(SchedulingInfo { id, parameter }) = self.returning(info) else {
            return Ok(());
        };
        self.0.scheduler.receive_reply(&id, &parameter);
        require_active_again()
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        let Some(SchedulingInfo { id, parameter }) = self.returning(info) else {
            return Ok(());
        };
        if info.reply_status()? == ReplyStatus::UserException {
            self.0.scheduler.receive_reply(&id, &parameter);
            return Ok(require_active_again()?);
        }
        self.0.scheduler.receive_exception(&id, &parameter);
        if info.received_exception_id()? == Kind::ThreadCancelled.repository_id() {
            // The thread was cancelled at the server. This ORB may have forgotten it already.
            let _ = self.0.cancel(id);
            segments::with(segments::end_here);
        }
        Ok(())
    }

    fn receive_other(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        if let Some(SchedulingInfo { id, parameter }) = self.returning(info) {
            self.0.scheduler.receive_other(&id, &parameter);
        }
        Ok(())
    }
}

impl ServerRequestInterceptor for Interceptor {
    fn name(&self) -> &str {
        NAME
    }

    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError> {
        let Ok(context) = info.request_service_context(context_id::SCHEDULING_INFO) else {
            return Ok(());
        };
        let parsed = SchedulingInfo::parse(context.data).map_err(SystemException::from)?;
        let Some(SchedulingInfo { id, parameter }) = parsed else {
            return Ok(());
        };
        self.0.enter(id)?;
        let received = self.0.scheduler.receive_request(&id, &parameter);
        received.inspect_err(|_| self.0.leave(id))?;
        segments::enter_request(&self.0, id, parameter, info.request_id());
        Ok(())
    }

    fn servant_returned(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), SystemException> {
        let Some((id, used)) = segments::of_request(&self.0, info.request_id()) else {
            return Ok(());
        };
        if used.is_some() && info.response_expected() {
            let stated = SchedulingInfo {
                id,
                parameter: SchedulingParameter {
                    execution_time: used,
                    ..SchedulingParameter::default()
                },
            };
            info.add_reply_service_context(context_id::SCHEDULING_INFO, &stated.to_octets(), true)?;
        }
        // Read before the request leaves: the table forgets the thread after its last request here.
        let is_cancelled = self.0.is_cancelled(id);
        segments::leave_request();
        let raised = info.raised();
        match raised {
            Some(_) => self.0.scheduler.send_exception(&id),
            None => self.0.scheduler.send_reply(&id),
        }
        // A servant that passed a scheduling point itself has raised THREAD_CANCELLED with the right completion status.
        let is_known = raised.is_some_and(|raised| raised.kind == Kind::ThreadCancelled);
        if is_cancelled && !is_known {
            return Err(raise::thread_cancelled(Completion::Yes));
        }
        Ok(())
    }
}

impl RequestOrder for Interceptor {
    /// Requests without a distributable thread come last.
    fn order(&self, contexts: &ServiceContexts<'_>) -> u64 {
        let data = contexts.find(context_id::SCHEDULING_INFO);
        let travelled = data.and_then(|data| SchedulingInfo::parse(data).ok().flatten());
        travelled.map_or(u64::MAX, |travelled| {
            self.0.scheduler.order(&travelled.parameter)
        })
    }
}
