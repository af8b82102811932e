//! What the proxy of a consumer serves beside the interface of TAO's: the consumer's own counters, and reports of the
//! execution times of its handlers. A consumer needs no other right for both than the right to consume.

use std::sync::Arc;

use deckwatch_orb::{Servant, SystemException, SystemExceptionKind as Kind};

use super::{Consumer, State, SupplierProxy};
use crate::beside::Beside;
use crate::deckwatch;
use crate::deckwatch_scheduling::{
    ExecutionTimes, ReportedTimes, ReportedTimesReportExecutionTimesError as ReportError,
    ReportedTimesSkeleton,
};
use crate::raise::raise;
use crate::rtec_event_channel_admin::ProxyPushSupplierSkeleton;
use crate::rtec_scheduler::UNKNOWNTASK;
use crate::status::{consumer_report, with_consumer_status};

impl SupplierProxy {
    /// Its servant.
    pub(in crate::rt) fn servant(self: &Arc<Self>) -> Arc<dyn Servant> {
        let skeleton = Arc::new(ProxyPushSupplierSkeleton::new(Arc::clone(self)));
        let proxy = Arc::clone(self);
        let counted = with_consumer_status(skeleton, move || Ok(proxy.consumer()?.own_report()));
        let times = Arc::new(ReportedTimesSkeleton::new(Arc::clone(self)));
        let reported = Beside::new(Arc::new(counted), times, &[b"report_execution_times"]);
        Arc::new(reported)
    }

    /// # Errors
    /// OBJECT_NOT_EXIST if none is connected.
    fn consumer(&self) -> Result<Arc<Consumer>, SystemException> {
        match &*self.state.lock("rt.proxy") {
            State::Connected(consumer) => Ok(Arc::clone(consumer)),
            State::Waiting | State::Disconnected => Err(raise(Kind::ObjectNotExist)),
        }
    }
}

impl Consumer {
    /// An event set that was lost on its way to the queue counts as dropped, as in the report of the channel.
    fn own_report(&self) -> deckwatch::ConsumerReport {
        let mut report = consumer_report(&self.outlet);
        report.dropped += self.losses.read().iter().sum::<u64>();
        report
    }
}

impl ReportedTimes for SupplierProxy {
    fn report_execution_times(&self, times: &[ExecutionTimes]) -> Result<(), ReportError> {
        let consumer = self.consumer()?;
        if times.len() > consumer.handles.len() {
            return Err(raise(Kind::BadParam).into());
        }
        // 0 is no RT_Info.
        let is_own = |handle| handle != 0 && consumer.handles.contains(&handle);
        let shared = self.shared()?;
        match &shared.admission {
            Some(admission) if times.iter().all(|one| is_own(one.handle)) => {
                admission.scheduling().report(times)
            }
            _ => Err(UNKNOWNTASK.into()),
        }
    }
}
