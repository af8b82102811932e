//! The scheduling points of calls: the request, its service, and the reply. The service context SchedulingInfo carries
//! the distributable thread.

use std::sync::Arc;

use deckwatch_orb::interceptor::{
    ClientRequestInfo, ClientRequestInterceptor, InterceptorError, ReplyStatus, RequestOrder,
    ServerRequestInfo, ServerRequestInterceptor,
};
use deckwatch_orb::{
    Completion, ServiceContexts, SystemException, SystemExceptionKind as Kind, context_id,
};

use crate::parameter::SchedulingInfo;
use crate::table::Threads;
use crate::{IdType, raise, segments};

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
                    let (id, mut parameter) = (active.id, active.parameter());
                    scheduler.send_request(&id, &mut parameter);
                    return SchedulingInfo { id, parameter };
                }
                let (id, mut parameter) = (IdType::fresh(), active.implicit_parameter());
                scheduler.send_oneway(&id, &mut parameter);
                SchedulingInfo { id, parameter }
            }))
        })
    }

    /// Returns the distributable thread that continues at the end of a request, if the request carried one.
    fn returning(&self, info: &ClientRequestInfo) -> Option<IdType> {
        if !info.is_synchronous() {
            return None;
        }
        let context = info.request_service_context(context_id::SCHEDULING_INFO);
        let travelled = SchedulingInfo::parse(context.ok()?.data).ok()??;
        Some(travelled.id)
    }
}

/// A scheduling point after the reply: the thread may have been cancelled in this ORB meanwhile.
fn require_active_again() -> Result<(), SystemException> {
    segments::with(|slot| segments::require_active(slot, Completion::Yes))
}

impl ClientRequestInterceptor for Interceptor {
    fn name(&self) -> &str {
        NAME
    }

    fn send_request(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        if let Some(departing) = self.departing(info)? {
            let data = departing.to_octets();
            info.add_request_service_context(context_id::SCHEDULING_INFO, &data, true)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo) -> Result<(), SystemException> {
        let Some(id) = self.returning(info) else {
            return Ok(());
        };
        self.0.scheduler.receive_reply(&id);
        require_active_again()
    }

    fn receive_exception(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        let Some(id) = self.returning(info) else {
            return Ok(());
        };
        if info.reply_status()? == ReplyStatus::UserException {
            self.0.scheduler.receive_reply(&id);
            return Ok(require_active_again()?);
        }
        self.0.scheduler.receive_exception(&id);
        if info.received_exception_id()? == Kind::ThreadCancelled.repository_id() {
            // The thread was cancelled at the server. This ORB may have forgotten it already.
            let _ = self.0.cancel(id);
            segments::with(segments::end_here);
        }
        Ok(())
    }

    fn receive_other(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        if let Some(id) = self.returning(info) {
            self.0.scheduler.receive_other(&id);
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
        let Some(id) = segments::id_of_request(&self.0, info.request_id()) else {
            return Ok(());
        };
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
