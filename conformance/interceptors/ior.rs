//! IOR interceptors, by clause (CORBA 3.3 part 1, clause 16.5).

use std::sync::Arc;

use crate::common;
use crate::common::interceptor::{Init, Log, RAISED};
use crate::common::ior::{Ior, Profile, TAG_INTERNET_IOP};
use crate::common::{Lanes, OMG, Over, World};
use deckwatch_orb::interceptor::{
    AdapterState, IorInfo, IorInterceptor, OrbInitInfo, TaggedComponent, profile_tag,
};
use deckwatch_orb::{
    Orb, OrbBuilder, Poa, PoaError, PoaManager, Policies, SystemException,
    SystemExceptionKind as Kind,
};

/// A component tag that nothing else uses.
const OURS: u32 = 0x4455_0001;

/// Adds its name to references, logs its calls, and refuses the adapter with its name.
struct Stamp {
    name: &'static str,
    log: Log,
}

impl IorInterceptor for Stamp {
    fn name(&self) -> &str {
        self.name
    }

    fn establish_components(&self, info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        let component = |tag: u32| TaggedComponent {
            tag,
            data: self.name.as_bytes().to_vec(),
        };
        self.log.note(format!(
            "{} establish {:?} {:?}",
            self.name,
            info.adapter_name(),
            info.state()
        ));
        info.add_ior_component(component(OURS))?;
        info.add_ior_component_to_profile(component(OURS + 1), profile_tag::INTERNET_IOP)?;
        let other = info.add_ior_component_to_profile(component(OURS), 4_711);
        let other = other.unwrap_err();
        assert_eq!((other.kind, other.minor), (Kind::BadParam, OMG | 29));
        assert!(!info.manager_id().is_empty());
        // The ORB ignores this exception.
        Err(RAISED)
    }

    fn components_established(&self, info: &IorInfo<'_>) -> Result<(), SystemException> {
        let is_refused = info
            .adapter_name()
            .last()
            .is_some_and(|name| name == self.name);
        if is_refused { Err(RAISED) } else { Ok(()) }
    }

    fn adapter_manager_state_changed(&self, _: &PoaManager, state: AdapterState) {
        self.log.note(format!("{} manager {state:?}", self.name));
    }

    fn adapter_state_changed(&self, adapters: &[Poa], state: AdapterState) {
        let names: Vec<_> = adapters.iter().map(Poa::the_name).collect();
        self.log.note(format!("{} {names:?} {state:?}", self.name));
    }
}

fn stamped(names: &'static [&'static str], log: &Log) -> OrbBuilder {
    let log = log.clone();
    Orb::builder().initializer(Init(move |info: &mut OrbInitInfo| {
        for name in names {
            let log = log.clone();
            info.add_ior_interceptor(Arc::new(Stamp { name, log }))?;
        }
        Ok(())
    }))
}

/// The components with these tags in the IIOP profile of a reference, in order.
fn components(text: &str) -> Vec<(u32, Vec<u8>)> {
    let profiles = Ior::of_text(text).profiles;
    let iiop = profiles
        .into_iter()
        .find(|(tag, _)| *tag == TAG_INTERNET_IOP);
    let mut components = Profile::read(&iiop.unwrap().1).components;
    components.retain(|(tag, _)| tag & !0xff == OURS & !0xff);
    components
}

#[test]
fn components_stand_in_every_reference_of_an_adapter_and_in_each_of_its_profiles() {
    for over in [Over::Tcp, Over::Unix] {
        let log = Log::default();
        let world = World::with(over, stamped(&["a", "b"], &log));
        let expected = [
            (OURS, b"a".to_vec()),
            (OURS + 1, b"a".to_vec()),
            (OURS, b"b".to_vec()),
            (OURS + 1, b"b".to_vec()),
        ];
        assert_eq!(components(&world.object.to_string()), expected);
        let made = world
            .root
            .create_reference("IDL:conformance/Made:1.0")
            .unwrap();
        assert_eq!(components(&made.to_string()), expected);
        let heard = log.take();
        let root = r#"establish ["RootPOA"] Holding"#;
        assert_eq!(heard[..2], [format!("a {root}"), format!("b {root}")]);
        assert_eq!(heard[2..], ["a manager Active", "b manager Active"]);
        let mut wire = world.dial();
        let ping = world.request((2, common::Order::Big), "ping").bare();
        assert_eq!(
            wire.ask(&ping).reply().status,
            common::message::NO_EXCEPTION
        );
    }
}

#[test]
fn an_interceptor_can_keep_an_adapter_from_being_made() {
    let log = Log::default();
    let world = World::with(Over::Tcp, stamped(&["a"], &log));
    let refused = world.root.create_poa("a", None, &Policies::default());
    let Err(PoaError::System(exception)) = refused else {
        panic!("a system exception, not {refused:?}");
    };
    assert_eq!(
        (exception.kind, exception.minor),
        (Kind::ObjAdapter, OMG | 6)
    );
    assert!(
        world
            .root
            .create_poa("other", None, &Policies::default())
            .is_ok()
    );
}

#[test]
fn the_states_of_managers_and_the_end_of_adapters_are_told() {
    let log = Log::default();
    let world = World::with(Over::Tcp, stamped(&["a"], &log));
    let poa = world
        .root
        .create_poa("other", None, &Policies::default())
        .unwrap();
    log.take();
    let manager = poa.the_poa_manager();
    manager.activate().unwrap();
    manager.hold_requests(false).unwrap();
    manager.discard_requests(false).unwrap();
    poa.destroy(false, true).unwrap();
    let expected = [
        "a manager Active",
        "a manager Holding",
        "a manager Discarding",
        r#"a ["other"] NonExistent"#,
    ];
    assert_eq!(log.take(), expected);
}

#[test]
fn a_reference_of_an_orb_without_interceptors_has_no_more_than_before() {
    let world = World::new(Over::Tcp, Lanes::Many);
    assert_eq!(components(&world.object.to_string()), []);
}
