//! Code that the IDL compiler generates for asynchronous calls, by clause (CORBA 3.3 part 1, clauses 17.5 to 17.10).
//! The other side's octets are made by hand.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::message::{NO_EXCEPTION, USER_EXCEPTION, reply};
use crate::common::{Over, PATIENCE, Peer, Received, listening, over_each};
use deckwatch_orb::{
    Completion, ExceptionHolder, ObjectRef, Orb, Servant, SystemException,
    SystemExceptionKind as Kind,
};

#[allow(
    clippy::redundant_closure,
    reason = "what it suggests is not general enough over lifetimes"
)]
mod idl {
    include!(concat!(env!("OUT_DIR"), "/asynchronous.rs"));
}
#[allow(dead_code, reason = "that it compiles is what is asked of most of it")]
#[allow(
    clippy::redundant_closure,
    reason = "what it suggests is not general enough over lifetimes"
)]
#[allow(
    clippy::match_single_binding,
    reason = "the handler of an interface that has one-ways alone has no operations"
)]
mod odd {
    include!(concat!(env!("OUT_DIR"), "/odd_names.rs"));
}
use idl::stocks::{
    AMIExchangeExceptionHolder, AMIExchangeHandler, AMIExchangeHandlerRef,
    AMIExchangeHandlerSkeleton, AMIPlaceHandler, AMIPlaceHandlerRef, Exchange,
    ExchangeClosestSymbolError, ExchangeRef, ExchangeRemoveStockError, ExchangeSkeleton,
    InvalidStock, Place, PlaceRef,
};

const INVALID_STOCK: &str = "IDL:stocks/InvalidStock:1.0";

/// A handler that sends each of its calls, as text, to the test.
#[derive(Clone)]
struct Witness(Arc<Mutex<Sender<String>>>);

impl Witness {
    fn new() -> (Arc<Self>, Receiver<String>) {
        let (told, heard) = channel();
        (Arc::new(Self(Arc::new(Mutex::new(told)))), heard)
    }

    fn note(&self, what: String) -> Result<(), SystemException> {
        let _ = self.0.lock().unwrap().send(what); // The test may be over.
        Ok(())
    }

    fn raised(&self, what: &str, holder: &ExceptionHolder) -> Result<(), SystemException> {
        let exception: SystemException = holder.raise_exception(|_, _| Ok(None));
        self.note(format!("{what}: {:?}", exception.kind))
    }
}

impl AMIPlaceHandler for Witness {
    fn get_name(&self, ami_return_val: &str) -> Result<(), SystemException> {
        self.note(format!("get_name {ami_return_val}"))
    }

    fn get_name_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("get_name", excep_holder)
    }

    fn wait(&self) -> Result<(), SystemException> {
        self.note("wait".to_owned())
    }

    fn wait_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("wait", excep_holder)
    }
}

impl AMIExchangeHandler for Witness {
    fn get_fee(&self, ami_return_val: f64) -> Result<(), SystemException> {
        self.note(format!("get_fee {ami_return_val}"))
    }

    fn get_fee_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("get_fee", excep_holder)
    }

    fn set_fee(&self) -> Result<(), SystemException> {
        self.note("set_fee".to_owned())
    }

    fn set_fee_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("set_fee", excep_holder)
    }

    fn add_stock(&self, ami_return_val: bool) -> Result<(), SystemException> {
        self.note(format!("add_stock {ami_return_val}"))
    }

    fn add_stock_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("add_stock", excep_holder)
    }

    fn remove_stock(&self, quote: f64) -> Result<(), SystemException> {
        self.note(format!("remove_stock {quote}"))
    }

    fn remove_stock_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.note(match excep_holder.raise_remove_stock() {
            ExchangeRemoveStockError::InvalidStock(InvalidStock { symbol }) => {
                format!("remove_stock: InvalidStock {symbol}")
            }
            ExchangeRemoveStockError::System(exception) => {
                format!("remove_stock: {:?}", exception.kind)
            }
        })
    }

    fn closest_symbol(
        &self,
        ami_return_val: bool,
        symbol: &str,
        past: &[f64],
    ) -> Result<(), SystemException> {
        self.note(format!("closest_symbol {ami_return_val} {symbol} {past:?}"))
    }

    fn closest_symbol_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("closest_symbol", excep_holder)
    }

    fn parent(&self, ami_return_val: Option<&PlaceRef>) -> Result<(), SystemException> {
        self.note(format!("parent {}", ami_return_val.is_some()))
    }

    fn parent_excep(&self, excep_holder: &ExceptionHolder) -> Result<(), SystemException> {
        self.raised("parent", excep_holder)
    }
}

#[track_caller]
fn told(heard: &Receiver<String>) -> String {
    heard.recv_timeout(PATIENCE).expect("the handler is called")
}

/// Replies as an exchange does, with octets made by hand.
fn answer(asked: &Received) -> Vec<u8> {
    let mut asked = asked.asked();
    let (status, raises) = match asked.operation.as_str() {
        "remove_stock" if asked.body.string() == "none" => (USER_EXCEPTION, true),
        _ => (NO_EXCEPTION, false),
    };
    reply(asked.form, asked.id, status, |octets| {
        match asked.operation.as_str() {
            _ if raises => octets.string(INVALID_STOCK).string("none"),
            "_get_name" => octets.string("Frankfurt"),
            "_get_fee" => octets.u64(0.25_f64.to_bits()),
            "add_stock" => octets.u8(1),
            "remove_stock" => octets.u64(2.5_f64.to_bits()),
            "closest_symbol" => {
                octets.u8(1).string("ABC").u32(2);
                octets.u64(1.0_f64.to_bits()).u64(2.0_f64.to_bits())
            }
            "parent" => octets.string("").u32(0),
            _ => octets,
        };
    })
}

fn exchange(peer: &Peer, client: &Orb) -> ExchangeRef {
    ExchangeRef::unchecked_narrow(peer.seen_by(client, 2))
}

over_each! {
    fn each_operation_and_attribute_has_a_callback_form(over) {
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let client = common::client();
        let exchange = exchange(&peer, &client);
        let (witness, heard) = Witness::new();
        let handler = || -> Option<Arc<dyn AMIExchangeHandler>> { Some(witness.clone()) };
        let sent = |operation: &str| {
            let asked = peer.heard().asked();
            assert_eq!(asked.operation, operation);
            asked.body
        };
        exchange.sendc_get_fee(handler()).unwrap();
        assert!(sent("_get_fee").rest().is_empty());
        assert_eq!(told(&heard), "get_fee 0.25");
        exchange.sendc_set_fee(handler(), 0.5).unwrap();
        assert_eq!(sent("_set_fee").u64(), 0.5_f64.to_bits());
        assert_eq!(told(&heard), "set_fee");
        exchange.sendc_add_stock(handler(), "ABC", 1.5).unwrap();
        let mut body = sent("add_stock");
        assert_eq!((body.string(), body.u64()), ("ABC".to_owned(), 1.5_f64.to_bits()));
        assert_eq!(told(&heard), "add_stock true");
        exchange.sendc_remove_stock(handler(), "ABC").unwrap();
        let mut body = sent("remove_stock");
        assert_eq!((body.string(), body.rest().len()), ("ABC".to_owned(), 0));
        assert_eq!(told(&heard), "remove_stock 2.5");
        exchange.sendc_closest_symbol(handler(), "AB").unwrap();
        let mut body = sent("closest_symbol");
        assert_eq!((body.string(), body.rest().len()), ("AB".to_owned(), 0));
        assert_eq!(told(&heard), "closest_symbol true ABC [1.0, 2.0]");
        exchange.sendc_parent(handler()).unwrap();
        sent("parent");
        assert_eq!(told(&heard), "parent false");
        // An inherited operation takes the ancestor's handler; every handler of the derived interface is one.
        exchange.sendc_get_name(Some(witness.clone())).unwrap();
        sent("_get_name");
        assert_eq!(told(&heard), "get_name Frankfurt");
        let ancestors: Arc<dyn AMIPlaceHandler> = witness.clone() as Arc<dyn AMIExchangeHandler>;
        exchange.sendc_wait(Some(ancestors), 1).unwrap();
        assert_eq!(sent("wait").u32(), 1);
        assert_eq!(told(&heard), "wait");
        exchange.sendc_wait(None, 2).unwrap();
        assert_eq!(sent("wait").u32(), 2);
    }

    fn exceptions_are_raised_by_type_out_of_their_holder(over) {
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let client = common::client();
        let (witness, heard) = Witness::new();
        let exchange = exchange(&peer, &client);
        exchange.sendc_remove_stock(Some(witness.clone()), "none").unwrap();
        assert_eq!(told(&heard), "remove_stock: InvalidStock none");
        drop(peer);
        let gone = Peer::start(over, |_, wire, _| {
            wire.hear();
            wire.end();
        });
        let exchange = self::exchange(&gone, &client);
        exchange.sendc_remove_stock(Some(witness), "ABC").unwrap();
        assert_eq!(told(&heard), "remove_stock: CommFailure");
    }

    fn each_operation_and_attribute_has_a_polling_form(over) {
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let client = common::client();
        let exchange = exchange(&peer, &client);
        let forever = u32::MAX;
        assert_eq!(exchange.sendp_get_fee().unwrap().get_fee(forever), Ok(0.25));
        assert_eq!(exchange.sendp_set_fee(0.5).unwrap().set_fee(forever), Ok(()));
        assert_eq!(exchange.sendp_add_stock("ABC", 1.5).unwrap().add_stock(forever), Ok(true));
        assert_eq!(exchange.sendp_remove_stock("ABC").unwrap().remove_stock(forever), Ok(2.5));
        let symbol = exchange.sendp_closest_symbol("AB").unwrap().closest_symbol(forever);
        assert_eq!(symbol, Ok((true, "ABC".to_owned(), vec![1.0, 2.0])));
        assert_eq!(exchange.sendp_get_name().unwrap().get_name(forever), Ok("Frankfurt".to_owned()));
        let invalid = exchange.sendp_remove_stock("none").unwrap();
        assert_eq!((invalid.operation_name(), invalid.operation_target()), ("remove_stock", exchange.object()));
        let other = invalid.add_stock(forever).unwrap_err();
        assert_eq!(other.kind, Kind::BadOperation);
        let raised = invalid.remove_stock(forever);
        let expected = InvalidStock { symbol: "none".to_owned() };
        assert_eq!(raised, Err(ExchangeRemoveStockError::InvalidStock(expected)));
        let set = exchange.sendp_parent().unwrap().create_pollable_set();
        let ready = set.ready_pollable(forever).unwrap();
        assert_eq!(ready.operation_name(), "parent");
    }

    fn a_poller_may_be_given_its_interfaces_handler(over) {
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let client = common::client();
        let exchange = exchange(&peer, &client);
        let (witness, heard) = Witness::new();
        let poller = exchange.sendp_get_name().unwrap();
        assert!(poller.associated_handler().is_none());
        poller.set_associated_handler(Some(witness));
        assert!(poller.associated_handler().is_some());
        assert_eq!(told(&heard), "get_name Frankfurt");
        let given = poller.get_name(0).unwrap_err();
        assert_eq!(given.kind, Kind::ObjectNotExist);
    }

    fn a_handler_may_be_an_object_anywhere(over) {
        // Two hand-written peers: the called object, and the handler.
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let handling = Peer::answering(over, |_, asked| {
            asked.answered(NO_EXCEPTION, |_| ())
        });
        let client = common::client();
        let exchange = exchange(&peer, &client);
        let handler = AMIExchangeHandlerRef::unchecked_narrow(handling.seen_by(&client, 2));
        let handler: Arc<dyn AMIExchangeHandler> = Arc::new(handler);
        exchange.sendc_remove_stock(Some(handler.clone()), "ABC").unwrap();
        let mut told = handling.heard().asked();
        assert_eq!((told.operation.as_str(), told.body.u64()), ("remove_stock", 2.5_f64.to_bits()));
        exchange.sendc_remove_stock(Some(handler), "none").unwrap();
        let mut told = handling.heard().asked();
        assert_eq!(told.operation, "remove_stock_excep");
        assert_eq!(told.body.u32(), 0x7fff_ff02, "a value with its type");
        assert_eq!(told.body.string(), "IDL:omg.org/Messaging/ExceptionHolder:1.0");
        let (is_system, is_little) = (told.body.u8(), told.body.u8());
        assert_eq!((is_system, is_little), (0, u8::from(cfg!(target_endian = "little"))));
        let marshaled = told.body.u32() as usize;
        assert_eq!(told.body.rest().len(), marshaled);
    }

    fn a_servant_may_be_a_handler(over) {
        let server = listening(over, Orb::builder());
        let root = server.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let (witness, heard) = Witness::new();
        let servant: Arc<dyn Servant> = Arc::new(AMIExchangeHandlerSkeleton::new(witness));
        let object = root.servant_to_reference(&servant).unwrap();
        let peer = Peer::answering(over, |_, asked| answer(asked));
        let client = common::client();
        let seen = client.string_to_object(&object.to_string()).unwrap().unwrap();
        for id in ["IDL:stocks/AMI_ExchangeHandler:1.0", "IDL:stocks/AMI_PlaceHandler:1.0", "IDL:omg.org/Messaging/ReplyHandler:1.0"] {
            assert_eq!(seen.is_a(id), Ok(true), "{id}");
        }
        let exchange = exchange(&peer, &client);
        let handler = AMIExchangeHandlerRef::narrow(&seen).unwrap().expect("it is one");
        exchange.sendc_remove_stock(Some(Arc::new(handler.clone())), "none").unwrap();
        assert_eq!(told(&heard), "remove_stock: InvalidStock none");
        let of_base: AMIPlaceHandlerRef = handler.into();
        exchange.sendc_get_name(Some(Arc::new(of_base))).unwrap();
        assert_eq!(told(&heard), "get_name Frankfurt");
        server.shutdown(true).unwrap();
    }

    fn an_object_of_ours_serves_asynchronous_calls_side_by_side(over) {
        let (server, object, gate) = ours(over);
        let client = common::client();
        let seen = client.string_to_object(&object.to_string()).unwrap().unwrap();
        let exchange = ExchangeRef::unchecked_narrow(seen);
        let waiting: Vec<_> = (0..3).map(|number| exchange.sendp_wait(number).unwrap()).collect();
        let poller = exchange.sendp_get_name().unwrap();
        assert_eq!(poller.get_name(u32::MAX), Ok("ours".to_owned()));
        assert!(waiting.iter().all(|poller| poller.is_ready(0) == Ok(false)));
        for _ in &waiting {
            gate.send(()).unwrap();
        }
        for poller in waiting {
            assert_eq!(poller.wait(u32::MAX), Ok(()));
        }
        server.shutdown(true).unwrap();
    }
}

/// An exchange whose `wait` returns once per message of the channel.
struct Ours(Mutex<Receiver<()>>);

impl Place for Ours {
    fn name(&self) -> Result<Cow<'_, str>, SystemException> {
        Ok("ours".into())
    }

    fn wait(&self, _number: u32) -> Result<(), SystemException> {
        let passed = self.0.lock().unwrap().recv_timeout(PATIENCE);
        passed.map_err(|_| SystemException::new(Kind::Internal, 0, Completion::No))
    }
}

impl Exchange for Ours {
    fn fee(&self) -> Result<f64, SystemException> {
        Ok(0.0)
    }

    fn set_fee(&self, _value: f64) -> Result<(), SystemException> {
        Ok(())
    }

    fn add_stock(&self, _symbol: &str, _quote: f64) -> Result<bool, SystemException> {
        Ok(false)
    }

    fn remove_stock(&self, symbol: &str) -> Result<f64, ExchangeRemoveStockError> {
        let symbol = symbol.to_owned();
        Err(InvalidStock { symbol }.into())
    }

    fn closest_symbol<'a>(
        &'a self,
        symbol: &'a str,
    ) -> Result<(bool, Cow<'a, str>, Cow<'a, [f64]>), ExchangeClosestSymbolError> {
        Ok((false, symbol.into(), Cow::Borrowed(&[])))
    }

    fn parent(&self) -> Result<Option<PlaceRef>, SystemException> {
        Ok(None)
    }

    fn close(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn ours(over: Over) -> (Orb, ObjectRef, Sender<()>) {
    let server = listening(over, Orb::builder());
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let (gate, gated) = channel();
    let servant: Arc<dyn Servant> = Arc::new(ExchangeSkeleton::new(Ours(Mutex::new(gated))));
    let object = root.servant_to_reference(&servant).unwrap();
    (server, object, gate)
}

#[test]
fn names_that_asynchronous_calls_need_themselves_are_made_way_for() {
    use odd::odd_names::{
        AMIHeirHandler, AMIHeirPoller, AMIMakerHandler, AMIMakerPoller, HeirRef, MakerRef,
    };
    type Sent = Result<(), SystemException>;
    type Handler = Option<Arc<dyn AMIMakerHandler>>;
    let _parameters: fn(&MakerRef, Handler, i32, &str) -> Sent =
        |object, handler, deliver, name| object.sendc_new(handler, deliver, name);
    // Names that an attribute and operations generate.
    let _senders: [fn(&MakerRef, Handler) -> Sent; 3] = [
        MakerRef::sendc_get_level,
        MakerRef::sendc_ami_get_level,
        MakerRef::sendc_ami_ami_get_level,
    ];
    let _poller: fn(&AMIMakerPoller, u32) -> Sent = AMIMakerPoller::associated_handler_;
    let _replies: [fn(&dyn AMIMakerHandler) -> Sent; 2] = [
        |handler| handler.ami_parcel_excep(),
        |handler| handler.deliver_parcel(),
    ];
    let _inherited: fn(&AMIHeirPoller, u32) -> Result<i32, SystemException> =
        AMIHeirPoller::get_parcel;
    let _of_heir: fn(&HeirRef, Option<Arc<dyn AMIHeirHandler>>) -> Sent = HeirRef::sendc_get_parcel;
}
