//! What clients of a typed channel that do not answer hold of its threads, and what they learn by it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;

use super::{NAV, World};
use crate::around::Around;
use crate::masked::Masked;
use crate::support::{seen_by, serving, serving_orb_over};
use deckwatch_event::ChannelOptions;
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullConsumerConnectPullSupplierError as PullError,
    ProxyPushConsumerConnectPushSupplierError as SupplierError,
    ProxyPushSupplierConnectPushConsumerError as PushError,
};
use deckwatch_event::cos_event_comm::{PullSupplierRef, PushConsumerRef, PushSupplierRef};
use deckwatch_event::cos_typed_event_channel_admin::TypedEventChannelRef;
use deckwatch_event::limits::{OUTWARD_MAX, OUTWARD_SHARE, SUPPLIER_QUIET_MIN, SUPPLIERS_MAX};
use deckwatch_orb::limits::OUTWARD_FAILED_AFTER;
use deckwatch_orb::transport::Transport as _;
use deckwatch_orb::{ObjectRef, Orb, SystemExceptionKind as Kind, own_minor};

/// A typed channel from the view of a client at one address of the host.
struct Client {
    orb: Orb,
    channel: TypedEventChannelRef,
}

impl Client {
    fn from(address: [u8; 4], world: &World) -> Self {
        let around = Around::from_address(IpAddr::from(address));
        Self::of(serving_orb_over(Arc::new(around)), world)
    }

    fn of(orb: Orb, world: &World) -> Self {
        let channel = seen_by(&orb, &world.server, world.served.reference().object());
        let channel = TypedEventChannelRef::unchecked_narrow(channel);
        Self { orb, channel }
    }

    fn object_at(&self, port: u16) -> ObjectRef {
        let url = format!("corbaloc::127.0.0.1:{port}/client");
        let object = self.orb.string_to_object(&url).expect("sound");
        object.expect("not nil")
    }

    /// Connects a consumer at a port.
    fn connect_consumer(&self, port: u16) -> Result<(), PushError> {
        let consumer = PushConsumerRef::unchecked_narrow(self.object_at(port));
        let admin = self.channel.for_consumers().expect("served").expect("one");
        let proxy = admin.obtain_typed_push_supplier(NAV).expect("served");
        let proxy = proxy.expect("not nil");
        proxy.connect_push_consumer(Some(&consumer))
    }

    /// Connects a supplier at a port.
    fn connect_supplier(&self, port: u16) -> Result<(), PullError> {
        let supplier = PullSupplierRef::unchecked_narrow(self.object_at(port));
        let admin = self.channel.for_suppliers().expect("served").expect("one");
        let proxy = admin.obtain_typed_pull_consumer(NAV).expect("served");
        let proxy = proxy.expect("not nil");
        proxy.connect_pull_supplier(Some(&supplier))
    }

    /// Connects a consumer or a supplier at a port. Returns the system exception that this raises.
    #[track_caller]
    fn refusal(&self, port: u16, is_consumer: bool) -> (Kind, u32) {
        let refused = if is_consumer {
            match self.connect_consumer(port) {
                Err(PushError::System(refused)) => refused,
                other => panic!("{other:?}"),
            }
        } else {
            match self.connect_supplier(port) {
                Err(PullError::System(refused)) => refused,
                other => panic!("{other:?}"),
            }
        };
        (refused.kind, refused.minor)
    }
}

fn port_of(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("it listens").port()
}

/// Waits until one more request has come, which is never answered.
fn hold_one(silent: &TcpListener, held: &mut Vec<TcpStream>) {
    let (mut stream, _) = silent.accept().expect("a connection");
    stream.read_exact(&mut [0; 12]).expect("a request");
    held.push(stream);
}

#[test]
fn peers_hold_their_share_of_calls_to_silent_clients_and_all_others_are_served() {
    let world = World::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = port_of(&silent);
    let mut held = Vec::new();
    let good = Client::of(world.user.clone(), &world);
    let peers: Vec<_> = (0..OUTWARD_MAX / OUTWARD_SHARE)
        .map(|number| Client::from([127, 0, 0, 10 + number as u8], &world))
        .collect();
    std::thread::scope(|scope| {
        for peer in &peers {
            for place in 0..OUTWARD_SHARE {
                scope.spawn(move || match place % 2 {
                    0 => assert!(peer.connect_consumer(port).is_err()),
                    _ => assert!(peer.connect_supplier(port).is_err()),
                });
                hold_one(&silent, &mut held);
                good.channel.for_consumers().expect("served");
            }
            for is_consumer in [true, false] {
                let refused = peer.refusal(port, is_consumer);
                assert_eq!(refused, (Kind::Transient, own_minor::OUTWARD_SHARE_FULL));
            }
        }
        let refused = good.refusal(port, true);
        assert_eq!(refused, (Kind::Transient, own_minor::OUTWARD_FULL));
        good.channel.for_consumers().expect("served");
        held.clear();
        drop(silent);
    });
    // Their places are free again.
    let _calls = world.connected_consumer();
    for peer in peers {
        let refused = peer.refusal(port, true);
        assert_eq!(refused, (Kind::Transient, own_minor::CONNECT_REFUSED));
        peer.orb.shutdown(true).expect("it ends");
    }
    world.end();
}

#[test]
fn failed_connect_of_a_stranger_ends_at_the_same_time_however_it_fails() {
    let transport = Arc::new(Masked::default());
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let builder = builder.transport(Arc::clone(&transport) as _);
    let reach = "127.0.0.0/8".parse().expect("networks");
    let world = World::of(serving(builder.reach(reach)), ChannelOptions::default());
    let client = Client::of(world.user.clone(), &world);
    let closed = port_of(&TcpListener::bind("127.0.0.1:0").expect("a port"));
    let open = TcpListener::bind("127.0.0.1:0").expect("a port");
    let open_port = port_of(&open);
    let garbage = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = open.accept().expect("a connection");
            stream.write_all(b"220 mail ready\r\n").expect("it reads");
            let _ = stream.read_to_end(&mut Vec::new()); // Until the channel closes it.
        }
    });
    let mut count = 0;
    for port in [closed, open_port] {
        for is_consumer in [true, false] {
            let begun = transport.now();
            let refused = client.refusal(port, is_consumer);
            assert_eq!(refused, (Kind::Transient, own_minor::OUTWARD_FAILED));
            let sleeps = transport.sleeps.lock().expect("whole");
            count += 1;
            assert_eq!(sleeps.len(), count);
            assert!(sleeps[count - 1] >= begun.after(OUTWARD_FAILED_AFTER));
        }
    }
    garbage.join().expect("whole");
    world.end();
}

#[test]
fn quiet_suppliers_are_called_only_with_a_place_of_the_calls_outwards() {
    let clock = Arc::new(Around::default());
    let options = ChannelOptions {
        share_percent: 1,
        ..ChannelOptions::default()
    };
    let world = World::of(serving_orb_over(clock.clone()), options);
    let peer = Client::from([127, 0, 0, 10], &world);
    let closed = port_of(&TcpListener::bind("127.0.0.1:0").expect("a port"));
    let nobody = peer.object_at(closed);
    let connect = || {
        let admin = peer.channel.for_suppliers().expect("served").expect("one");
        let proxy = admin.obtain_push_consumer().expect("served");
        let supplier = PushSupplierRef::unchecked_narrow(nobody.clone());
        match proxy
            .expect("not nil")
            .connect_push_supplier(Some(&supplier))
        {
            Err(SupplierError::System(refused)) => Err((refused.kind, refused.minor)),
            other => {
                other.expect("connected");
                Ok(())
            }
        }
    };
    for _ in 0..SUPPLIERS_MAX / 100 {
        connect().expect("a place");
    }
    clock.pass(SUPPLIER_QUIET_MIN);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = port_of(&silent);
    let mut held = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..OUTWARD_SHARE {
            let peer = &peer;
            scope.spawn(move || assert!(peer.connect_consumer(port).is_err()));
            hold_one(&silent, &mut held);
        }
        let full = (Kind::ImpLimit, own_minor::SUPPLIER_SHARE_FULL);
        assert_eq!(connect(), Err(full), "a supplier was called");
        held.clear();
        drop(silent);
    });
    assert_eq!(connect(), Ok(()), "nobody was found to be gone");
    peer.orb.shutdown(true).expect("it ends");
    world.end();
}
