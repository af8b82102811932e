//! Interceptors: the name of the caller travels beside the arguments. Neither stub nor skeleton knows of it.
//!
//! ```text
//! cast off, by the mate
//! set sail, by the captain
//! heave to, by nobody
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_cdr::Any;
use deckwatch_examples::Outcome;
use deckwatch_orb::interceptor::{
    ClientRequestInfo, ClientRequestInterceptor, CodecFactory, Encoding, InterceptorError,
    OrbInitError, OrbInitInfo, OrbInitializer, PiCurrent, ServerRequestInfo,
    ServerRequestInterceptor, SlotId,
};
use deckwatch_orb::{ObjectRef, Orb, OrbBuilder, Servant, SystemException};
use ledger::example::{Ledger, LedgerRef, LedgerSkeleton};

mod ledger {
    include!(concat!(env!("OUT_DIR"), "/ledger.rs"));
}

/// The service context with the name of the caller. The OMG assigns ids; this one is not assigned.
const CALLER: u32 = 0x4c4f_4701;

/// The slot in which a thread keeps the caller's name, for its calls and for its request. It is the first of both ORBs.
const WHO: SlotId = 0;

/// Copies the name from the calling thread's slot into the request, and at the server from the request into the serving
/// thread's slot.
struct Identity;

impl ClientRequestInterceptor for Identity {
    fn send_request(&self, info: &mut ClientRequestInfo) -> Result<(), InterceptorError> {
        let who = info.slot(WHO).unwrap_or_default();
        if let Ok(codec) = CodecFactory.create_codec(Encoding::cdr_encaps(2))
            && !who.is_empty()
            && let Ok(octets) = codec.encode(&who)
        {
            info.add_request_service_context(CALLER, &octets, true)?;
        }
        Ok(())
    }
}

impl ServerRequestInterceptor for Identity {
    fn receive_request_service_contexts(
        &self,
        info: &mut ServerRequestInfo<'_>,
    ) -> Result<(), InterceptorError> {
        let said = info.request_service_context(CALLER);
        let codec = CodecFactory.create_codec(Encoding::cdr_encaps(2));
        let who = match (said, codec) {
            (Ok(said), Ok(codec)) => codec.decode(said.data).unwrap_or_default(),
            _ => Any::empty(),
        };
        let _the_slot_is_there = info.set_slot(WHO, who);
        Ok(())
    }
}

impl OrbInitializer for Identity {
    fn pre_init(&self, info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        assert_eq!(info.allocate_slot_id(), WHO);
        info.add_client_request_interceptor(Arc::new(Self))?;
        info.add_server_request_interceptor(Arc::new(Self))
    }
}

struct Book {
    current: PiCurrent,
}

impl Ledger for Book {
    fn enter(&self, what: &str) -> Result<Cow<'_, str>, SystemException> {
        let who = self.current.slot(WHO).unwrap_or_default();
        let who = who.extract().unwrap_or_else(|_| "nobody".to_owned());
        Ok(format!("{what}, by {who}").into())
    }
}

fn prepare(builder: OrbBuilder) -> OrbBuilder {
    builder.initializer(Identity)
}

fn serve(orb: &Orb) -> Outcome<ObjectRef> {
    let root = orb.root_poa()?;
    root.the_poa_manager().activate()?;
    let current = orb.pi_current();
    let servant: Arc<dyn Servant> = Arc::new(LedgerSkeleton::new(Book { current }));
    Ok(root.servant_to_reference(&servant)?)
}

fn call(orb: &Orb, object: &ObjectRef) -> Outcome {
    let ledger = LedgerRef::narrow(object)?.ok_or("it is no Example::Ledger")?;
    let current = orb.pi_current();
    for (what, who) in [("cast off", "the mate"), ("set sail", "the captain")] {
        current.set_slot(WHO, Any::from_value(who)?)?;
        println!("{}", ledger.enter(what)?);
    }
    current.set_slot(WHO, Any::empty())?;
    println!("{}", ledger.enter("heave to")?);
    Ok(())
}

fn main() -> Outcome {
    deckwatch_examples::run_with(prepare, serve, call)
}
