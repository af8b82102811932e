//! A consumer and a supplier of a real-time channel that passes each event on to every consumer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerAdmin, ConsumerAdminRef, ConsumerAdminSkeleton, EventChannel,
    EventChannelAppendObserverError, EventChannelRemoveObserverError, EventChannelSkeleton,
    ObserverHandle, ObserverRef, ProxyPushConsumer, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushConsumerSkeleton, ProxyPushSupplier, ProxyPushSupplierConnectPushConsumerError,
    ProxyPushSupplierRef, ProxyPushSupplierSkeleton, SupplierAdmin, SupplierAdminRef,
    SupplierAdminSkeleton,
};
use deckwatch_event::rtec_event_comm::{PushConsumer, PushSupplier, PushSupplierRef};
use deckwatch_orb::{Completion, Servant, SystemExceptionKind as Kind};

use super::*;
use crate::events::channel::open;
use crate::events::selection::{Selection, TypeTerm};
use crate::events::subscription::{Next, Subscription};

struct Shared {
    orb: Orb,
    proxies: AtomicUsize,
    consumers: Mutex<Vec<(PushConsumerRef, ConsumerQOS)>>,
    /// Type and source of the publications at each connect of a supplier.
    published: Mutex<Vec<Vec<(i32, i32)>>>,
}

/// Each servant of the channel.
struct Part(Arc<Shared>);

impl Part {
    fn activate<S: Servant>(&self, servant: impl FnOnce(Self) -> S) -> ObjectRef {
        let part = Self(Arc::clone(&self.0));
        activate(&self.0.orb, Arc::new(servant(part))).expect("a reference")
    }
}

impl EventChannel for Part {
    fn for_consumers(&self) -> Result<Option<ConsumerAdminRef>, SystemException> {
        let object = self.activate(ConsumerAdminSkeleton::new);
        Ok(Some(ConsumerAdminRef::unchecked_narrow(object)))
    }

    fn for_suppliers(&self) -> Result<Option<SupplierAdminRef>, SystemException> {
        let object = self.activate(SupplierAdminSkeleton::new);
        Ok(Some(SupplierAdminRef::unchecked_narrow(object)))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn append_observer(
        &self,
        _: Option<&ObserverRef>,
    ) -> Result<ObserverHandle, EventChannelAppendObserverError> {
        Err(SystemException::new(Kind::NoImplement, 0, Completion::No).into())
    }

    fn remove_observer(&self, _: ObserverHandle) -> Result<(), EventChannelRemoveObserverError> {
        Err(SystemException::new(Kind::NoImplement, 0, Completion::No).into())
    }
}

impl ConsumerAdmin for Part {
    fn obtain_push_supplier(&self) -> Result<Option<ProxyPushSupplierRef>, SystemException> {
        self.0.proxies.fetch_add(1, SeqCst);
        let object = self.activate(ProxyPushSupplierSkeleton::new);
        Ok(Some(ProxyPushSupplierRef::unchecked_narrow(object)))
    }
}

impl SupplierAdmin for Part {
    fn obtain_push_consumer(&self) -> Result<Option<ProxyPushConsumerRef>, SystemException> {
        self.0.proxies.fetch_add(1, SeqCst);
        let object = self.activate(ProxyPushConsumerSkeleton::new);
        Ok(Some(ProxyPushConsumerRef::unchecked_narrow(object)))
    }
}

impl PushSupplier for Part {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0.proxies.fetch_sub(1, SeqCst);
        Ok(())
    }
}

impl ProxyPushSupplier for Part {
    fn connect_push_consumer(
        &self,
        consumer: Option<&PushConsumerRef>,
        qos: &ConsumerQOS,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let consumer = consumer.expect("a consumer").clone();
        let mut consumers = self.0.consumers.lock().expect("sound");
        consumers.push((consumer, qos.clone()));
        Ok(())
    }

    fn suspend_connection(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn resume_connection(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl PushConsumer for Part {
    fn push(&self, data: &[rtec_event_comm::Event]) -> Result<(), SystemException> {
        let consumers = self.0.consumers.lock().expect("sound");
        consumers
            .iter()
            .try_for_each(|(consumer, _)| consumer.push(data))
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.0.proxies.fetch_sub(1, SeqCst);
        Ok(())
    }
}

impl ProxyPushConsumer for Part {
    fn connect_push_supplier(
        &self,
        _: Option<&PushSupplierRef>,
        qos: &SupplierQOS,
    ) -> Result<(), ProxyPushConsumerConnectPushSupplierError> {
        let headers = qos.publications.iter().map(|one| one.event.header);
        let headers = headers.map(|header| (header.r#type, header.source));
        let mut published = self.0.published.lock().expect("sound");
        published.push(headers.collect());
        Ok(())
    }
}

fn event(number: i32, source: i32) -> Event {
    Event {
        header: Some(EventHeader {
            r#type: number,
            source,
            ttl: 1,
            creation_time: if number == 17 { 0 } else { 99 },
            ..EventHeader::default()
        }),
        payload: vec![1, 2, 3],
        data: Any::from_value(&number).expect("a value"),
    }
}

#[test]
fn events_of_a_real_time_channel_are_chosen_by_header_and_no_proxy_stays() {
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = orb.build().expect("an ORB");
    let shared = Arc::new(Shared {
        orb: orb.clone(),
        proxies: AtomicUsize::new(0),
        consumers: Mutex::default(),
        published: Mutex::default(),
    });
    let whole = Part(Arc::clone(&shared)).activate(EventChannelSkeleton::new);
    let wanted = Selection {
        types: vec![TypeTerm::Header(17), TypeTerm::Header(18)],
        sources: vec![3],
    };
    let mut subscription = Subscription::connect(&whole, None, wanted, None).expect("connected");
    {
        let consumers = shared.consumers.lock().expect("sound");
        let headers = consumers[0].1.dependencies.iter().map(|one| {
            let header = one.event.header;
            (header.r#type, header.source)
        });
        // A disjunction of two.
        assert_eq!(headers.collect::<Vec<_>>(), [(9, 2), (17, 3), (18, 3)]);
    }
    let mut sink = open(&whole)
        .expect("a channel")
        .supply(&[(17, 4), (17, 3)])
        .expect("connected");
    for event in [event(17, 4), event(17, 3), event(19, 3), event(18, 3)] {
        sink.push(&event).expect("sent");
    }
    let mut found = Vec::new();
    while found.len() < 2 {
        if let Next::Event(received) = subscription.next(Duration::from_millis(50)).expect("there")
        {
            let header = received.event.header.expect("a header");
            assert_eq!(received.event.payload, [1, 2, 3]);
            assert_eq!(received.event.data.extract(), Ok(header.r#type));
            found.push((header.r#type, header.source, header.creation_time));
        }
    }
    let (first, last) = (found[0], found[1]);
    assert_eq!((first.0, first.1, last), (17, 3, (18, 3, 99)));
    // 2020 in units of 100 ns since 1582.
    assert!(
        first.2 > 137_971_296_000_000_000,
        "the time of sending: {first:?}"
    );
    assert_eq!(shared.proxies.load(SeqCst), 2);
    // What is published is what is sent: each header that was not foreseen is published, too.
    let first = vec![(17, 3), (17, 4)];
    let second = vec![(17, 3), (17, 4), (19, 3)];
    let third = vec![(17, 3), (17, 4), (18, 3), (19, 3)];
    assert_eq!(
        *shared.published.lock().expect("sound"),
        [first, second, third]
    );
    sink.push(&Event::of(Any::empty())).expect("sent");
    sink.flush().expect("taken");
    let published = shared.published.lock().expect("sound").clone();
    let last = published.last().expect("a connect");
    assert!(
        last.contains(&(16, 1)),
        "an event without a header: {last:?}"
    );
    drop((sink, subscription));
    assert_eq!(shared.proxies.load(SeqCst), 0);
    orb.shutdown(true).expect("it ends");
}
