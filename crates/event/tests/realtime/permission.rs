//! A channel whose host refuses it the real-time class.

use deckwatch_event::dispatch::Dispatching;
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel, Scheduling};
use deckwatch_orb::{NativePriority, Orb, Scheduling as Class, SystemExceptionKind as Kind};
use deckwatch_os::schedule;
use deckwatch_sched::Strategy;
use deckwatch_testkit::alone_as_nobody;

use super::scheduled::{lane, rated, scheduled, service};
use super::{event, next};
use crate::support::{serving, wait_for};

fn real_time_orb() -> Orb {
    let builder = Orb::builder().scheduling(Class::Fifo);
    serving(builder.listen("127.0.0.1:0").expect("an endpoint"))
}

#[test]
fn without_permission_a_channel_starts_and_connects_only_if_it_may_do_without_priorities() {
    alone_as_nobody(|| {
        let is_permitted =
            std::thread::spawn(|| schedule::set_class(schedule::Class::Fifo(1)).is_ok());
        if is_permitted.join().expect("no panic") {
            return deckwatch_testkit::skip(
                "real-time-class-refused",
                "every user may have it here",
            );
        }
        let strict = real_time_orb();
        let refused = RtEventChannel::start(
            &strict,
            RtChannelOptions {
                dispatching: Dispatching::Lanes(vec![lane(3), lane(7)]),
                ..RtChannelOptions::default()
            },
        );
        let refused = refused.err().expect("no permission");
        assert_eq!(refused.kind, Kind::NoPermission);

        let orb = real_time_orb();
        let service = service(&orb, Strategy::Rms, &[("read", 1, 10)]);
        let range = (NativePriority(1), NativePriority(49));
        let world = scheduled(orb, Scheduling::of_service(&service, range));
        let fallbacks = || world.served.counts().priority_fallbacks;
        let lanes = world.served.lanes().len() as u64;
        wait_for(|| fallbacks() == lanes);
        let (_proxy, sets) = world.connect(&rated(&[(20, 1)]));
        assert_eq!(fallbacks(), lanes + 1, "the thread of its deliveries");
        world.supply(&[]).push(&[event(1, 20, "served")]).unwrap();
        assert_eq!(next(&sets), ["served"]);
        world.end();
        strict.shutdown(true).unwrap();
    });
}
