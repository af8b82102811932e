//! What `deckwatch channel` serves: a channel, a typed channel or a factory.

use deckwatch_event::{
    ChannelCounts, EventChannel, EventChannelFactory, Refusal, TypedEventChannel,
};
use deckwatch_orb::ObjectRef;

use super::federation::Federation;
use super::group::Member;
use super::real_time::{self, RealTime};
use super::scheduled::Scheduled;
use crate::output::errln;

/// What is served.
pub(super) enum Served {
    Channel(EventChannel),
    Factory(EventChannelFactory),
    Typed(TypedEventChannel),
    RealTime(RealTime, Federation),
    Member(Member, Option<Scheduled>),
}

impl Served {
    pub(super) fn reference(&self) -> &ObjectRef {
        match self {
            Self::Channel(channel) => channel.reference().object(),
            Self::Factory(factory) => factory.reference().object(),
            Self::Typed(channel) => channel.reference().object(),
            Self::RealTime(it, _) => it.channel.reference().object(),
            Self::Member(member, _) => member.reference(),
        }
    }

    fn scheduled(&self) -> Option<&Scheduled> {
        match self {
            Self::RealTime(it, _) => it.scheduled.as_ref(),
            Self::Member(_, scheduled) => scheduled.as_ref(),
            _ => None,
        }
    }

    /// Returns true once a client has destroyed it. Prints what its gateways have met, and refused connects.
    pub(super) fn has_ended(&self) -> bool {
        if let Some(scheduled) = self.scheduled() {
            scheduled.look();
        }
        match self {
            Self::Channel(channel) => channel.has_ended(),
            Self::Factory(_) => false,
            Self::Typed(channel) => channel.has_ended(),
            Self::RealTime(it, federation) => {
                federation.print_changes();
                real_time::print_unadmitted(&it.channel);
                it.channel.has_ended()
            }
            Self::Member(member, _) => member.has_ended(),
        }
    }

    /// Ends what calls other processes. The ORB still serves.
    pub(super) fn close(&mut self) {
        if let Self::RealTime(_, federation) = self {
            federation.close();
        }
    }

    /// What the access table has refused since the last call, and the count of all refusals.
    pub(super) fn take_refusals(&self) -> (Vec<Refusal>, u64) {
        let mut taken = match self {
            Self::Channel(channel) => channel.take_refusals(),
            Self::Factory(factory) => factory.take_refusals(),
            Self::Typed(channel) => channel.take_refusals(),
            Self::RealTime(it, _) => it.channel.take_refusals(),
            Self::Member(member, _) => member
                .channel()
                .map_or_else(Vec::new, |it| it.take_refusals()),
        };
        let of_schedule = self.scheduled().map(Scheduled::take_refusals);
        let (of_schedule, denied) = of_schedule.unwrap_or_default();
        taken.extend(of_schedule);
        (taken, self.denied() + denied)
    }

    /// Requests that the access table has refused.
    fn denied(&self) -> u64 {
        match self {
            Self::Channel(channel) => channel.counts().denied,
            Self::Factory(factory) => factory.counts().denied,
            Self::Typed(channel) => channel.counts().denied,
            Self::RealTime(it, _) => it.channel.counts().denied,
            Self::Member(member, _) => member.channel().map_or(0, |it| it.counts().denied),
        }
    }

    /// Prints the counters.
    pub(super) fn print_counts(&self) {
        match self {
            Self::Channel(channel) => {
                print_counts(&channel.counts());
                print_store_failures(channel.store_failures());
            }
            Self::Factory(factory) => print_counts(&factory.counts()),
            Self::Typed(channel) => print_counts(&channel.counts()),
            Self::RealTime(it, federation) => {
                real_time::print_counts(&it.channel);
                federation.print_counts();
                print_store_failures(it.channel.store_failures());
            }
            Self::Member(member, _) => member.print_counts(),
        }
        if let Some(scheduled) = self.scheduled() {
            scheduled.print_overruns();
        }
    }

    /// # Errors
    /// If the member of a group has ended because it had to.
    pub(super) fn check_end(&self) -> anyhow::Result<()> {
        match self {
            Self::Member(member, _) => member.check_end(),
            _ => Ok(()),
        }
    }
}

fn print_store_failures(failures: u64) {
    if failures > 0 {
        errln!("changes that the store did not take: {failures}");
    }
}

fn print_counts(counts: &ChannelCounts) {
    errln!(
        "events received {}, delivered {}, displaced {}; failed pushes {}, pulls refused {}, \
         consumers lost {}, suppliers lost {}, connects refused {}, requests denied {}",
        counts.received,
        counts.delivered,
        counts.displaced,
        counts.failed,
        counts.pulls_refused,
        counts.consumers_lost,
        counts.suppliers_lost,
        counts.refused,
        counts.denied
    );
}
