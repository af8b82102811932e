//! The order in which threads of a real-time class serve connections where they share one processor.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use crate::common::rt::may_be_real_time;
use crate::support::{TEST_ID, request_of, wait_for};
use deckwatch_orb::{Counter, Orb, Servant, ServerRequest, SystemException};
use deckwatch_os::schedule::{self, Class};
use deckwatch_testkit::alone;

const THREADS: usize = 4;
/// Requests of other connections that wait in the poller.
const OTHERS: u32 = 40;
/// The number of the request over the adopted connection.
const ADOPTED: u32 = 1_000;

/// Notes the order in which requests are served.
#[derive(Default)]
struct Burst {
    order: Mutex<Vec<u32>>,
    /// What `burst` sends, and over which connections.
    requests: Mutex<Vec<(TcpStream, Vec<u8>)>>,
}

impl Servant for Burst {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"note" => {
                let number = request.arguments().read_u32()?;
                self.order.lock().unwrap().push(number);
            }
            // This thread holds the processor: no request is served until it returns.
            b"burst" => {
                for (stream, octets) in &mut *self.requests.lock().unwrap() {
                    stream.write_all(octets).unwrap();
                }
            }
            _ => {}
        }
        request.reply().map(drop)
    }
}

fn read_reply(stream: &mut TcpStream) {
    let mut header = [0; 12];
    stream.read_exact(&mut header).unwrap();
    let size = header[8..].try_into().unwrap();
    let size = if header[6] & 1 == 0 {
        u32::from_be_bytes(size)
    } else {
        u32::from_le_bytes(size)
    };
    stream.read_exact(&mut vec![0; size as usize]).unwrap();
}

/// In a real-time class a thread holds its processor as long as events wait. A thread that waits in the read of an
/// adopted connection gets it only if the other yields.
#[test]
fn a_request_over_an_adopted_connection_does_not_wait_for_all_that_wait_in_the_poller() {
    alone(|| {
        if !may_be_real_time() {
            return;
        }
        let processors = schedule::affinity().unwrap();
        schedule::set_affinity(&processors[..1]).unwrap();
        let orb = Orb::builder()
            .threads(THREADS)
            .dynamic_threads(0)
            .on_thread_start(|| schedule::set_class(Class::Fifo(10)).expect("it is permitted"))
            .listen("127.0.0.1:0")
            .and_then(|builder| builder.build())
            .unwrap();
        let burst = Arc::new(Burst::default());
        let root = orb.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let servant = Arc::clone(&burst) as Arc<dyn Servant>;
        let object = root.servant_to_reference(&servant).unwrap();
        let profile = object.ior().iiop_profiles().next().unwrap().unwrap();
        let connect = || TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
        let (mut adopted, mut trigger) = (connect(), connect());
        let note = |number: u32| request_of(&object, (number, 3), "note", &number.to_be_bytes());
        let mut requests: Vec<(TcpStream, Vec<u8>)> = (0..OTHERS)
            .map(|number| (connect(), note(number)))
            .collect();
        requests.push((adopted.try_clone().unwrap(), note(ADOPTED)));
        *burst.requests.lock().unwrap() = requests;
        let mut places = Vec::new();
        let mut is_in_turn = false;
        // The load of the machine can let the adoption end before the burst: then the round shows nothing.
        for _ in 0..50 {
            let adoptions = orb.counters().read(Counter::Adoptions);
            for id in 0..10 {
                adopted
                    .write_all(&request_of(&object, (id, 3), "ping", &[]))
                    .unwrap();
                read_reply(&mut adopted);
            }
            trigger
                .write_all(&request_of(&object, (0, 3), "burst", &[]))
                .unwrap();
            read_reply(&mut trigger);
            let order = || burst.order.lock().unwrap();
            wait_for(|| order().len() == OTHERS as usize + 1);
            read_reply(&mut adopted);
            let place = order().iter().position(|number| *number == ADOPTED);
            places.push((
                place.unwrap(),
                orb.counters().read(Counter::Adoptions) - adoptions,
            ));
            order().clear();
            is_in_turn = place < Some(OTHERS as usize / 2);
            if is_in_turn {
                break;
            }
        }
        assert!(is_in_turn, "served last, in every round: {places:?}");
        orb.shutdown(true).unwrap();
    });
}
