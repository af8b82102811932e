//! A servant can read the service contexts of its request, including those that the ORB does not know.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use deckwatch_giop::{Format, RequestHeader, Response, Target};
use deckwatch_orb::{Orb, Servant, ServerRequest, ServiceContext, SystemException, context_id};

#[derive(Default)]
struct Reader {
    seen: Mutex<Vec<(u32, Vec<u8>)>>,
}

impl Servant for Reader {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Reader:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let contexts = request.service_contexts();
        assert_eq!(contexts.find(0xdead_0001), Some(&b"odd"[..]));
        let all = contexts.iter().map(|one| (one.id, one.data.to_vec()));
        self.seen.lock().unwrap().extend(all);
        Ok(())
    }
}

#[test]
fn unknown_service_contexts_reach_the_servant_beside_known_ones() {
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .build()
        .unwrap();
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let reader = Arc::new(Reader::default());
    let servant: Arc<dyn Servant> = reader.clone();
    let reference = root.servant_to_reference(&servant).unwrap();
    let contexts = [
        ServiceContext {
            id: 0xdead_0001,
            data: b"odd",
        },
        ServiceContext {
            id: context_id::INVOCATION_POLICIES,
            data: &[1, 0, 0, 0, 0, 0, 0, 0],
        },
    ];
    let header = RequestHeader {
        id: 1,
        response: Response::Outcome,
        target: Target::Key(reference.object_key().unwrap()),
        operation: "read",
        contexts: &contexts,
    };
    let mut message = Vec::new();
    let open = header.begin(&mut message, Format::default()).unwrap();
    open.finish(&mut message).unwrap();
    let mut stream = TcpStream::connect(orb.endpoints()[0].to_string()).unwrap();
    stream.write_all(&message).unwrap();
    let mut reply = [0; 24];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((reply[7], &reply[16..20]), (1, &[0; 4][..]));
    let sent = contexts.map(|one| (one.id, one.data.to_vec()));
    assert_eq!(*reader.seen.lock().unwrap(), sent);
}
