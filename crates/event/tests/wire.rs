//! The octets of the real-time event service's structures, as TAO 2.x and 3.x write them: field by field from its IDL, and as
//! recorded.

use deckwatch_cdr::{Any, ByteOrder, Parse, Reader, Write, Writer};
use deckwatch_event::RtecEventData;
use deckwatch_event::rtec_base::{DependencyEnabledTypeT, DependencyInfo, DependencyTypeT};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerAdminRef, ConsumerQOS, Dependency, EventChannelRef, ObserverRef, ProxyPushConsumerRef,
    ProxyPushSupplierRef, Publication, SupplierAdminRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{Event, EventHeader, PushConsumerRef, PushSupplierRef};
use deckwatch_event::rtec_scheduler::SchedulerRef;
use deckwatch_giop::ior::Ior;
use deckwatch_giop::{Message, Request};

/// Type 0x10, source 7, ttl 1, created at 0x0102030405060708, received at 2, sent at 3. It stands behind a length of
/// four octets, where no padding is needed.
const HEADER: [u8; 36] = [
    0x10, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, // type, source, ttl
    8, 7, 6, 5, 4, 3, 2, 1, // creation_time
    2, 0, 0, 0, 0, 0, 0, 0, // ec_recv_time
    3, 0, 0, 0, 0, 0, 0, 0, // ec_send_time
];

/// pad1, the payload `abc` (at a multiple of 8), one octet of padding, and an any without a value (tk_null).
const DATA: [u8; 16] = [0, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0];

fn event() -> Event {
    Event {
        header: EventHeader {
            r#type: 0x10,
            source: 7,
            ttl: 1,
            creation_time: 0x0102_0304_0506_0708,
            ec_recv_time: 2,
            ec_send_time: 3,
        },
        data: RtecEventData {
            pad1: 0,
            payload: b"abc".to_vec(),
            any_value: Any::empty(),
        },
    }
}

#[track_caller]
fn assert_octets<T: Write + for<'a> Parse<'a>>(value: &T, octets: &[&[u8]]) -> T {
    let octets = octets.concat();
    let mut written = Vec::new();
    let mut w = Writer::new(&mut written).with_order(ByteOrder::Little);
    value.write(&mut w).expect("it fits");
    assert_eq!(written, octets);
    let mut r = Reader::new(&octets, ByteOrder::Little);
    let read = T::parse(&mut r).expect("it is whole");
    assert_eq!(r.remaining(), 0);
    read
}

#[test]
fn event_set_is_written_as_tao_writes_it() {
    let read = assert_octets(&vec![event()], &[&[1, 0, 0, 0], &HEADER, &DATA]);
    assert_eq!(read[0].header, event().header);
    assert_eq!(read[0].data.payload, b"abc");
}

#[test]
fn consumer_qos_is_written_as_tao_writes_it() {
    let qos = ConsumerQOS {
        dependencies: vec![Dependency {
            event: event(),
            rt_info: 5,
        }],
        is_gateway: true,
    };
    let parts: [&[u8]; 5] = [&[1, 0, 0, 0], &HEADER, &DATA, &[5, 0, 0, 0], &[1]];
    let read = assert_octets(&qos, &parts);
    assert_eq!((read.dependencies[0].rt_info, read.is_gateway), (5, true));
}

#[test]
fn supplier_qos_is_written_as_tao_writes_it() {
    let qos = SupplierQOS {
        publications: vec![Publication {
            event: event(),
            dependency_info: DependencyInfo {
                dependency_type: DependencyTypeT::TwoWayCall,
                number_of_calls: 2,
                rt_info: 3,
                rt_info_depended_on: 4,
                enabled: DependencyEnabledTypeT::DependencyNonVolatile,
            },
        }],
        is_gateway: false,
    };
    let info = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0];
    assert_octets(&qos, &[&[1, 0, 0, 0], &HEADER, &DATA, &info, &[0]]);
}

/// A request that a client of TAO 2.2.2 sent to a channel of TAO, recorded.
fn recorded(operation: &str) -> Vec<u8> {
    let all = include_str!("data/tao-requests.txt");
    let mut lines = all.lines().filter_map(|line| line.split_once(' '));
    let (_, digits) = lines.find(|(name, _)| *name == operation).expect("a line");
    let octet = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("two digits")
    };
    digits.as_bytes().chunks(2).map(octet).collect()
}

#[track_caller]
fn request<'a>(operation: &str, octets: &'a [u8]) -> Request<'a> {
    let Ok(Message::Request(request)) = Message::parse(octets) else {
        panic!("a request")
    };
    assert_eq!(request.operation, operation.as_bytes());
    request
}

#[test]
fn recorded_push_of_a_tao_supplier_has_the_events_that_it_sent() {
    let octets = recorded("push");
    let mut body = request("push", &octets).body;
    let events = Vec::<Event>::parse(&mut body).expect("it is whole");
    assert_eq!(body.remaining(), 0);
    let told = |event: &Event| {
        let header = &event.header;
        (
            header.r#type,
            header.source,
            header.ttl,
            header.creation_time,
        )
    };
    assert_eq!(
        events.iter().map(told).collect::<Vec<_>>(),
        [(20, 1, 1, 1_000), (21, 1, 1, 1_001)]
    );
    assert_eq!(events[0].data.payload, [0, 1, 2]);
    assert_eq!(events[1].data.payload, [0, 1, 2, 3, 4]);
    assert_eq!(events[0].data.any_value.extract::<u32>(), Ok(0));
    let text = events[1].data.any_value.extract::<String>();
    assert_eq!(text.as_deref(), Ok("text"));
}

#[test]
fn recorded_connects_of_tao_clients_say_what_they_want_and_what_they_publish() {
    let octets = recorded("connect_push_consumer");
    let mut body = request("connect_push_consumer", &octets).body;
    Ior::parse(&mut body).expect("the consumer");
    let qos = ConsumerQOS::parse(&mut body).expect("it is whole");
    assert_eq!(body.remaining(), 0);
    let wanted = qos.dependencies.iter().map(|one| {
        let header = &one.event.header;
        (header.r#type, header.source)
    });
    // A disjunction of two types of any source.
    assert_eq!(wanted.collect::<Vec<_>>(), [(9, 2), (20, 0), (21, 0)]);
    assert!(!qos.is_gateway);

    let octets = recorded("connect_push_supplier");
    let mut body = request("connect_push_supplier", &octets).body;
    Ior::parse(&mut body).expect("the supplier");
    let qos = SupplierQOS::parse(&mut body).expect("it is whole");
    assert_eq!(body.remaining(), 0);
    let published = qos.publications.iter().map(|one| {
        let header = &one.event.header;
        (header.r#type, header.source)
    });
    assert_eq!(published.collect::<Vec<_>>(), [(20, 1), (21, 1)]);
}

#[test]
fn interfaces_have_taos_repository_ids() {
    let ids = [
        PushConsumerRef::REPOSITORY_ID,
        PushSupplierRef::REPOSITORY_ID,
        ProxyPushConsumerRef::REPOSITORY_ID,
        ProxyPushSupplierRef::REPOSITORY_ID,
        ConsumerAdminRef::REPOSITORY_ID,
        SupplierAdminRef::REPOSITORY_ID,
        EventChannelRef::REPOSITORY_ID,
        ObserverRef::REPOSITORY_ID,
        SchedulerRef::REPOSITORY_ID,
    ];
    assert_eq!(
        ids,
        [
            "IDL:RtecEventComm/PushConsumer:1.0",
            "IDL:RtecEventComm/PushSupplier:1.0",
            "IDL:RtecEventChannelAdmin/ProxyPushConsumer:1.0",
            "IDL:RtecEventChannelAdmin/ProxyPushSupplier:1.0",
            "IDL:RtecEventChannelAdmin/ConsumerAdmin:1.0",
            "IDL:RtecEventChannelAdmin/SupplierAdmin:1.0",
            "IDL:RtecEventChannelAdmin/EventChannel:1.0",
            "IDL:RtecEventChannelAdmin/Observer:1.0",
            "IDL:RtecScheduler/Scheduler:1.0",
        ]
    );
}
