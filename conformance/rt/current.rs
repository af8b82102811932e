//! Priorities and their mappings by clause (RTCORBA 1.2: RTCORBA::Current, Priority, PriorityMapping).

use crate::common::rt::{at, fresh};
use crate::common::rt::{limit_real_time, may_be_real_time};
use deckwatch_orb::{
    Completion, Continuous, Direct, Linear, NativePriority, Orb, Priority, PriorityMapping,
    Scheduling, SystemException, SystemExceptionKind as Kind, minor, own_minor,
};
use deckwatch_os::schedule::{self, Class};

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

fn orb(scheduling: Scheduling) -> Orb {
    let builder = Orb::builder().scheduling(scheduling);
    builder.build().expect("a client needs nothing")
}

fn unmappable<T>() -> Result<T, SystemException> {
    Err(SystemException::new(
        Kind::DataConversion,
        minor::omg(2),
        Completion::No,
    ))
}

#[test]
fn a_thread_that_was_given_no_priority_has_none_to_tell() {
    let orb = orb(Scheduling::Other);
    let unset = SystemException::new(Kind::Initialize, own_minor::PRIORITY_UNSET, Completion::No);
    assert_eq!(fresh(|| orb.rt_current().the_priority()), Err(unset));
}

#[test]
fn the_priority_is_what_it_was_set_to_and_the_threads_own() {
    let orb = orb(Scheduling::Other);
    for number in [0, 1, i16::MAX] {
        let told = at(&orb, number, || orb.rt_current().the_priority());
        assert_eq!(told, Ok(priority(number)));
    }
    at(&orb, 7, || {
        let other = fresh(|| orb.rt_current().the_priority());
        assert_eq!(
            other.map_err(|exception| exception.kind),
            Err(Kind::Initialize)
        );
        assert_eq!(orb.rt_current().the_priority(), Ok(priority(7)));
    });
}

#[test]
fn a_number_outside_the_range_is_bad_param() {
    for number in [-1, i16::MIN] {
        let refused = Priority::try_from(number).map_err(|exception| exception.kind);
        assert_eq!(refused, Err(Kind::BadParam));
    }
    assert_eq!((Priority::MIN.value(), Priority::MAX.value()), (0, 32_767));
}

#[test]
fn setting_the_priority_gives_the_thread_its_native_one_at_once() {
    if !may_be_real_time() {
        return;
    }
    for (scheduling, class) in [
        (Scheduling::Fifo, Class::Fifo as fn(u8) -> Class),
        (Scheduling::RoundRobin, Class::RoundRobin),
    ] {
        let orb = orb(scheduling);
        fresh(|| {
            for (number, native) in [(0, 1), (16_384, 50), (32_767, 99), (335, 2)] {
                let set = orb.rt_current().set_the_priority(priority(number));
                assert_eq!(set, Ok(()));
                assert_eq!(schedule::class().expect("readable"), class(native));
            }
        });
    }
}

#[test]
fn a_priority_that_the_host_does_not_permit_is_no_permission_and_leaves_the_thread_as_it_was() {
    let orb = orb(Scheduling::Fifo);
    limit_real_time();
    fresh(|| {
        let set = orb.rt_current().set_the_priority(Priority::MAX);
        if set.is_ok() {
            return assert_eq!(schedule::class().expect("readable"), Class::Fifo(99));
        }
        let denied = SystemException::new(
            Kind::NoPermission,
            own_minor::PRIORITY_DENIED,
            Completion::No,
        );
        assert_eq!(set, Err(denied));
        assert_eq!(schedule::class().expect("readable"), Class::Other);
        let unset = orb.rt_current().the_priority();
        assert_eq!(
            unset.map_err(|exception| exception.kind),
            Err(Kind::Initialize)
        );
    });
}

#[test]
fn a_mapping_that_has_no_native_priority_raises_data_conversion_and_changes_nothing() {
    let orb = orb(Scheduling::Other);
    let manager = orb.priority_mapping_manager();
    at(&orb, 7, || {
        manager.set_mapping(Direct(Scheduling::Other));
        assert_eq!(orb.rt_current().set_the_priority(priority(8)), unmappable());
        assert_eq!(orb.rt_current().the_priority(), Ok(priority(7)));
        assert_eq!(orb.rt_current().set_the_priority(priority(0)), Ok(()));
    });
}

#[test]
fn a_mapping_of_ones_own_takes_the_place_of_the_first() {
    struct Nothing;
    impl PriorityMapping for Nothing {
        fn to_native(&self, _: Priority) -> Option<NativePriority> {
            None
        }
        fn to_corba(&self, _: NativePriority) -> Option<Priority> {
            None
        }
    }
    let builder = Orb::builder().scheduling(Scheduling::Other);
    let orb = builder
        .priority_mapping(Nothing)
        .build()
        .expect("a client needs nothing");
    assert_eq!(
        fresh(|| orb.rt_current().set_the_priority(priority(0))),
        unmappable()
    );
    let manager = orb.priority_mapping_manager();
    assert_eq!(manager.mapping().to_native(priority(0)), None);
    manager.set_mapping(Linear(Scheduling::Other));
    assert_eq!(
        manager.mapping().to_native(priority(9)),
        Some(NativePriority(0))
    );
    assert_eq!(
        fresh(|| orb.rt_current().set_the_priority(priority(9))),
        Ok(())
    );
}

#[test]
fn mappings_and_classes_are_chosen_by_the_options_that_tao_has() {
    let chosen = |mapping: &str, class: &str| {
        let arguments = ["-ORBPriorityMapping", mapping, "-ORBSchedPolicy", class];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        let orb = Orb::init(&mut arguments).expect("known options");
        assert_eq!(arguments, Vec::<String>::new());
        let manager = orb.priority_mapping_manager();
        let native = |number| manager.mapping().to_native(priority(number));
        (manager.scheduling(), [0, 98, 32_767].map(native))
    };
    let native = |number| Some(NativePriority(number));
    // The results of TAO's three mappings on a host with native priorities 1 to 99.
    let linear = [native(1), native(1), native(99)];
    assert_eq!(chosen("linear", "SCHED_FIFO"), (Scheduling::Fifo, linear));
    assert_eq!(
        chosen("linear", "SCHED_RR"),
        (Scheduling::RoundRobin, linear)
    );
    let continuous = [native(1), native(99), None];
    assert_eq!(
        chosen("continuous", "SCHED_FIFO"),
        (Scheduling::Fifo, continuous)
    );
    let direct = [None, native(98), None];
    assert_eq!(chosen("direct", "SCHED_FIFO"), (Scheduling::Fifo, direct));
    let other = [native(0); 3];
    assert_eq!(chosen("linear", "SCHED_OTHER"), (Scheduling::Other, other));
    for (option, value) in [
        ("-ORBPriorityMapping", "multi"),
        ("-ORBSchedPolicy", "SCHED_IDLE"),
    ] {
        let mut arguments = vec![option.to_owned(), value.to_owned()];
        assert!(Orb::init(&mut arguments).is_err());
    }
}

#[test]
fn native_priorities_come_back_to_corba_ones_rounded_upwards() {
    let corba = |mapping: &dyn PriorityMapping, number| mapping.to_corba(NativePriority(number));
    let linear = Linear(Scheduling::Fifo);
    for (number, expected) in [(1, 0), (2, 335), (50, 16_384), (99, 32_767)] {
        assert_eq!(corba(&linear, number), Priority::new(expected));
    }
    for number in [0, 100, -1] {
        assert_eq!(corba(&linear, number), None);
        assert_eq!(corba(&Continuous(Scheduling::Fifo), number), None);
    }
    assert_eq!(corba(&Continuous(Scheduling::Fifo), 99), Priority::new(98));
    assert_eq!(corba(&Direct(Scheduling::Fifo), 99), Priority::new(99));
}
