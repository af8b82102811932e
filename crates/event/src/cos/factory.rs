//! A factory of event channels with the interfaces of omniEvents' (CosLifeCycle::GenericFactory, Life Cycle Service
//! 1.2, clause 2.2).

use std::sync::Arc;

use deckwatch_orb::cos_naming::NameComponent;
use deckwatch_orb::outward::Outward;
use deckwatch_orb::{ObjectRef, Orb, Refusal, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::PiMutex;

use super::criteria::{Requested, invalid, key_criterion};
use super::pullers::PullPermits;
use crate::channel::{Built, EventChannel, outward};
use crate::cos_event_channel_admin::EventChannelRef;
use crate::cos_life_cycle::{
    GenericFactory, GenericFactoryCreateObjectError, NameValuePair, NoFactory,
};
use crate::counters::ChannelCounts;
use crate::gate::Gate;
use crate::home::guarded_poa;
use crate::limits;
use crate::omni_events::{
    EventChannelFactory as OmniEventsFactory, EventChannelFactoryRef, EventChannelFactorySkeleton,
    event, event_channel_admin, ft,
};
use crate::raise::{raise, system};
use crate::shared::ChannelOptions;

/// A factory that serves on an ORB: its clients create channels.
///
/// The factory keeps the ORB until a shutdown.
pub struct EventChannelFactory {
    factory: Arc<Factory>,
    reference: EventChannelFactoryRef,
}

impl EventChannelFactory {
    /// The key of the factory in a `corbaloc` URL, as omniEvents' has it.
    pub const KEY: &'static str = "omniEvents";

    /// Activates a factory in the ORB's root adapter, and registers it under [`EventChannelFactory::KEY`]. Its channels
    /// have these options, except for the criteria of their creators.
    ///
    /// # Errors
    /// BAD_PARAM for options out of bounds; the exceptions of the adapter.
    pub fn start(orb: &Orb, options: ChannelOptions) -> Result<Self, SystemException> {
        options.check()?;
        let factory = Arc::new(Factory {
            orb: orb.clone(),
            gate: Gate::new(orb, options.access.clone(), false),
            options,
            permits: Arc::default(),
            outward: outward(orb),
            channels: PiMutex::default(),
        });
        let poa = guarded_poa(orb, &factory.gate)?;
        let servant = Arc::new(EventChannelFactorySkeleton::new(factory.clone()));
        let id = poa.activate_object(servant).map_err(system)?;
        let reference = poa.id_to_reference(&id).map_err(system)?;
        orb.register_plain_key(Self::KEY.as_bytes(), &reference)?;
        let reference = EventChannelFactoryRef::unchecked_narrow(reference);
        Ok(Self { factory, reference })
    }

    /// The factory's reference.
    #[must_use]
    pub fn reference(&self) -> &EventChannelFactoryRef {
        &self.reference
    }

    /// The sums of the counters of all channels, the destroyed ones included.
    #[must_use]
    pub fn counts(&self) -> ChannelCounts {
        let channels = self.factory.channels.lock("event.factory");
        let live = channels.all.iter().map(|made| made.channel.counts());
        let own = ChannelCounts {
            denied: channels.ended.denied + self.factory.gate.refused(),
            ..channels.ended
        };
        live.fold(own, ChannelCounts::plus)
    }

    /// Takes what the access table has refused since the last call, for the factory and for its channels.
    #[must_use]
    pub fn take_refusals(&self) -> Vec<Refusal> {
        let mut refusals = self.factory.gate.take_refusals();
        let channels = self.factory.channels.lock("event.factory");
        for made in &channels.all {
            refusals.append(&mut made.channel.take_refusals());
        }
        refusals
    }

    /// Number of channels that clients have not destroyed.
    #[must_use]
    pub fn channels(&self) -> usize {
        let mut channels = self.factory.channels.lock("event.factory");
        channels.forget_ended();
        channels.all.len()
    }
}

/// The servant.
struct Factory {
    orb: Orb,
    gate: Arc<Gate>,
    options: ChannelOptions,
    permits: Arc<PullPermits>,
    outward: Arc<Outward>,
    channels: PiMutex<Channels>,
}

#[derive(Default)]
struct Channels {
    all: Vec<Made>,
    /// The counts of destroyed channels.
    ended: ChannelCounts,
}

/// A channel that a client has created.
struct Made {
    key: Option<String>,
    channel: EventChannel,
}

impl Channels {
    fn forget_ended(&mut self) {
        let ended = self.all.extract_if(.., |made| made.channel.is_destroyed());
        self.ended = ended
            .map(|made| made.channel.counts())
            .fold(self.ended, ChannelCounts::plus);
    }

    fn with_key(&self, key: &str) -> Option<&Made> {
        let has_it = |made: &&Made| made.key.as_deref() == Some(key);
        self.all.iter().find(has_it)
    }
}

impl Factory {
    fn create(
        &self,
        criteria: &[NameValuePair],
    ) -> Result<EventChannelRef, GenericFactoryCreateObjectError> {
        let mut requested = Requested::read(criteria, self.options.clone())?;
        let access = requested.options.access.take();
        requested.options.access = access.map(|access| access.named(requested.key.clone()));
        let mut channels = self.channels.lock("event.factory");
        channels.forget_ended();
        if channels.all.len() >= limits::CHANNELS_MAX {
            return Err(raise(Kind::NoResources).into());
        }
        let key = requested.key.as_deref();
        if let Some(key) = key
            && (key == EventChannelFactory::KEY || channels.with_key(key).is_some())
        {
            return Err(invalid(&key_criterion(key)));
        }
        let channel = EventChannel::build(
            &self.orb,
            Built {
                permits: self.permits.clone(),
                pullers_max: requested.pullers_max,
                type_id: requested.type_id,
                is_monitored: true,
                outward: self.outward.clone(),
                ..Built::of(&self.orb, requested.options)
            },
        )?;
        let reference = channel.reference().clone();
        if let Some(key) = key {
            self.orb
                .register_plain_key(key.as_bytes(), reference.object())?;
        }
        channels.all.push(Made {
            key: requested.key,
            channel,
        });
        Ok(reference)
    }
}

/// Returns true for the one key that the factory supports.
fn is_channel(key: &[NameComponent]) -> bool {
    matches!(key, [it] if it.id == "EventChannel" && it.kind == "object interface")
}

impl GenericFactory for Factory {
    fn supports(&self, k: &[NameComponent]) -> Result<bool, SystemException> {
        Ok(is_channel(k))
    }

    fn create_object(
        &self,
        k: &[NameComponent],
        the_criteria: &[NameValuePair],
    ) -> Result<Option<ObjectRef>, GenericFactoryCreateObjectError> {
        if !is_channel(k) {
            let search_key = k.to_vec();
            return Err(NoFactory { search_key }.into());
        }
        let channel = self.create(the_criteria)?;
        Ok(Some(channel.object().clone()))
    }
}

impl ft::PullMonitorable for Factory {
    fn is_alive(&self) -> Result<bool, SystemException> {
        Ok(true)
    }
}

impl event_channel_admin::EventChannelFactory for Factory {}

impl event::EventChannelFactory for Factory {
    fn create_channel(
        &self,
        channel_name: &str,
    ) -> Result<Option<EventChannelRef>, event::EventChannelFactoryCreateChannelError> {
        match self.create(&[key_criterion(channel_name)]) {
            Ok(channel) => Ok(Some(channel)),
            Err(GenericFactoryCreateObjectError::System(exception)) => Err(exception.into()),
            Err(_) => Err(event::NameAlreadyUsed {}.into()),
        }
    }

    fn join_channel(
        &self,
        channel_name: &str,
    ) -> Result<Option<EventChannelRef>, event::EventChannelFactoryJoinChannelError> {
        let mut channels = self.channels.lock("event.factory");
        channels.forget_ended();
        let made = channels.with_key(channel_name);
        let made = made.ok_or(event::EventChannelNotFound {})?;
        Ok(Some(made.channel.reference().clone()))
    }
}

impl OmniEventsFactory for Factory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_of_a_factory_share_their_permits_and_their_calls_outwards() {
        let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
        let orb = orb.build().expect("an ORB");
        let started = EventChannelFactory::start(&orb, ChannelOptions::default());
        let factory = started.expect("a factory").factory;
        for _ in 0..2 {
            factory.create(&[]).expect("a channel");
        }
        let channels = factory.channels.lock("event.factory");
        for made in &channels.all {
            let shared = &made.channel.shared;
            assert!(Arc::ptr_eq(&shared.permits, &factory.permits));
            assert!(Arc::ptr_eq(&shared.outward, &factory.outward));
        }
        assert_eq!(channels.all.len(), 2);
    }
}
