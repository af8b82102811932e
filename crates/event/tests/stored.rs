//! A channel with a store: its clients of all kinds stay connected when its process starts again.

use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use crate::support::{PATIENCE, World, pushed, serving_orb_at, try_pulled, wait_for};
use deckwatch_event::rt::{Loss, RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_event::{ChannelOptions, ChannelStore, EventChannel};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{Orb, Policy, SetOverrideType, SyncScope, SystemExceptionKind as Kind};
use deckwatch_testkit::Disk;

/// A channel with this store, at this port; 0 is any.
fn start(file: &Path, port: u16) -> (Orb, EventChannel) {
    let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
    let store = ChannelStore::open(file).expect("a store");
    let channel = EventChannel::start_stored(&orb, ChannelOptions::default(), store);
    (orb, channel.expect("a channel"))
}

#[test]
fn clients_of_all_kinds_are_connected_again_until_they_disconnect() {
    let folder = std::env::temp_dir().join(format!("deckwatch-stored-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("store");
    let (orb, channel) = start(&file, 0);
    let port = orb.endpoints().iter().find_map(|at| at.port());
    let port = port.expect("TCP");
    let world = World::serving(orb, channel);
    let (consumer, events) = world.consumer();
    let push_supplier = world.connect(consumer);
    let puller = world.puller();
    let supplier = world.supplier();
    let leaving = world.supplier();
    let (pulled, stock) = world.pulled_supplier();
    let pull_consumer = world.obtain_pull_consumer();
    pull_consumer
        .connect_pull_supplier(Some(&pulled))
        .expect("connected");
    wait_for(|| stock.calls.load(SeqCst) > 0);
    leaving.disconnect_push_consumer().expect("it leaves");
    assert_eq!(world.served.store_failures(), 0);

    // Its second life: references to its proxies are still good.
    let World {
        server,
        user,
        served,
        ..
    } = world;
    server.shutdown(true).expect("it ends");
    drop((served, server));
    let (server, served) = start(&file, port);
    let before = stock.calls.load(SeqCst);
    assert_eq!(pushed(&supplier, 7), Ok(()));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    assert_eq!(try_pulled(&puller), Some(7));
    assert_eq!(pushed(&leaving, 8), Err(Kind::ObjectNotExist));
    wait_for(|| stock.calls.load(SeqCst) > before);
    stock.events.lock().expect("whole").push_back(9);
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(9)));
    push_supplier.disconnect_push_supplier().expect("it leaves");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
    pull_consumer.disconnect_pull_consumer().expect("it leaves");
    puller.disconnect_pull_supplier().expect("it leaves");
    server.shutdown(true).expect("it ends");
    drop((served, server));

    // Its third: only the supplier has stayed.
    let (server, served) = start(&file, port);
    let before = stock.calls.load(SeqCst);
    assert_eq!(pushed(&supplier, 10), Ok(()));
    let gone = puller.try_pull().expect_err("it has left");
    assert!(gone.to_string().contains("OBJECT_NOT_EXIST"), "{gone}");
    assert!(push_supplier.disconnect_push_supplier().is_err());
    let counts = served.counts();
    assert_eq!((counts.received, counts.delivered), (1, 0));
    assert_eq!(stock.calls.load(SeqCst), before);
    served.reference().destroy().expect("it ends");
    wait_for(|| served.has_ended());
    server.shutdown(true).expect("it ends");
    drop((served, server));

    // A destroyed channel has forgotten all.
    let (server, served) = start(&file, port);
    assert_eq!(pushed(&supplier, 11), Err(Kind::ObjectNotExist));
    server.shutdown(true).expect("it ends");
    drop((served, server));
    user.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn process_that_ends_without_a_client_s_leave_notifies_nobody() {
    let folder = std::env::temp_dir().join(format!("deckwatch-left-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("store");
    let (orb, channel) = start(&file, 0);
    let world = World::serving(orb, channel);
    let (consumer, events) = world.consumer();
    world.connect(consumer);
    assert_eq!(pushed(&world.supplier(), 7), Ok(()));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    let World {
        server,
        user,
        served,
        ..
    } = world;
    drop(served);
    server.shutdown(true).expect("it ends");
    drop(server);
    user.shutdown(true).expect("it ends");
    assert!(events.try_recv().is_err(), "it is not disconnected");
    std::fs::remove_dir_all(&folder).expect("ours");
}

/// A real-time channel with this store, at this port; 0 is any.
fn start_real_time(file: &Path, port: u16) -> (Orb, RtEventChannel) {
    let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
    let store = ChannelStore::open(file).expect("a store");
    let channel = RtEventChannel::start_stored(&orb, RtChannelOptions::default(), store);
    (orb, channel.expect("a channel"))
}

#[test]
fn clients_of_a_real_time_channel_stay_as_they_were_suspended_or_not() {
    use crate::realtime::{self, any_of, event, next};
    let folder = std::env::temp_dir().join(format!("deckwatch-rt-stored-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("store");
    let (orb, channel) = start_real_time(&file, 0);
    let port = orb.endpoints().iter().find_map(|at| at.port());
    let port = port.expect("TCP");
    let world = realtime::World::serving(orb, channel);
    let (running, sets) = world.connect(&any_of(&[(0, 20)]));
    let (suspended, held) = world.connect(&any_of(&[(0, 20)]));
    let (leaving, gone) = world.connect(&any_of(&[(0, 20)]));
    for _ in 0..2 {
        suspended.suspend_connection().expect("connected");
        running.suspend_connection().expect("connected");
        running.resume_connection().expect("connected");
    }
    leaving.disconnect_push_supplier().expect("it leaves");
    let supplier = world.supply(&[(1, 20)]);
    // Without a reply, a push to a process that has just ended would be lost.
    let served = [Policy::SyncScope(SyncScope::WithTarget)];
    let supplier = supplier
        .object()
        .set_policy_overrides(&served, SetOverrideType::AddOverride);
    let supplier = ProxyPushConsumerRef::unchecked_narrow(supplier.expect("a policy of messages"));
    let realtime::World {
        server,
        user,
        served,
        ..
    } = world;
    server.shutdown(true).expect("it ends");
    drop((served, server));

    let (server, served) = start_real_time(&file, port);
    assert_eq!(served.consumers().len(), 2);
    assert_eq!(served.store_failures(), 0);
    let lost = || served.counts().lost[Loss::Suspended as usize];
    supplier.push(&[event(1, 20, "first")]).unwrap();
    assert_eq!(next(&sets), ["first"]);
    wait_for(|| lost() == 1);
    suspended.resume_connection().expect("connected");
    supplier.push(&[event(1, 20, "second")]).unwrap();
    assert_eq!(next(&held), ["second"]);
    assert_eq!(next(&sets), ["second"]);
    assert_eq!(lost(), 1);
    server.shutdown(true).expect("it ends");
    drop((served, server));

    // What was resumed stays resumed.
    let (server, served) = start_real_time(&file, port);
    supplier.push(&[event(1, 20, "third")]).unwrap();
    assert_eq!(next(&held), ["third"]);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
    drop((served, server));
    assert!(gone.try_iter().all(|set| set.is_none()), "it has left");
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn store_that_others_may_read_says_which_rights_it_took() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = std::env::temp_dir().join(format!("deckwatch-rights-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("store");
    let open = || ChannelStore::open(&file).expect("a store");
    assert_eq!(open().rights_taken(), None, "it is new");
    let to_all = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, to_all).expect("ours");
    assert_eq!(open().rights_taken(), Some(0o644));
    assert_eq!(open().rights_taken(), None, "they were taken");
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn changes_that_a_full_disk_does_not_take_are_refused_and_counted() {
    use crate::realtime::{self, any_of};
    let disk = Disk::default();
    let opened = disk.clone();
    let store = ChannelStore::on(move || opened.clone()).expect("a store");
    let orb = serving_orb_at("127.0.0.1:0");
    let channel = RtEventChannel::start_stored(&orb, RtChannelOptions::default(), store);
    let world = realtime::World::serving(orb, channel.expect("a channel"));
    let (proxy, _sets) = world.connect(&any_of(&[(0, 20)]));
    assert_eq!(world.served.store_failures(), 0);
    disk.fill(true);
    for failures in 1..=2 {
        let refused = proxy.suspend_connection().expect_err("full");
        assert_eq!(refused.kind, Kind::PersistStore);
        assert_eq!(world.served.store_failures(), failures);
    }
    disk.fill(false);
    proxy.suspend_connection().expect("there is room again");
    assert_eq!(world.served.store_failures(), 2);
    world.end();
}

#[test]
fn of_its_consumers_a_channel_forgets_only_its_own_gateway_at_a_restart() {
    use crate::realtime::{self, any_of};
    use deckwatch_event::deckwatch_federation::GatewayConsumerRef;
    let folder = tempfile::tempdir().expect("writable");
    let file = folder.path().join("store");
    let (orb, channel) = start_real_time(&file, 0);
    let port = orb.endpoints().iter().find_map(|at| at.port());
    let port = port.expect("TCP");
    let world = realtime::World::serving(orb, channel);
    let (plain, _sets) = world.consumer();
    let own = world.served.reference().object();
    let gateway = GatewayConsumerRef::REPOSITORY_ID;
    let any = "IDL:RtecEventComm/PushConsumer:1.0";
    // A consumer in the process of the channel, a gateway elsewhere, and the channel's own gateway.
    let consumers = [(any, own), (gateway, plain.object()), (gateway, own)];
    for (type_id, object) in consumers {
        let at = object.ior().iiop_profiles().next().expect("one");
        let at = at.expect("whole");
        // No object of the channel's own.
        let profile = IiopProfile::new(&at.host, at.port, b"another");
        let ior = Ior::with_iiop(type_id, &profile).expect("a reference");
        let consumer = world.user.string_to_object(&ior.to_string()).unwrap();
        let consumer = PushConsumerRef::unchecked_narrow(consumer.expect("not nil"));
        let connected = world
            .proxy_supplier()
            .connect_push_consumer(Some(&consumer), &any_of(&[(0, 20)]));
        connected.expect("it connects");
    }
    let before: Vec<_> = world.served.consumers();
    let before: Vec<_> = before.iter().map(|each| each.number).collect();
    let realtime::World {
        server,
        user,
        served,
        ..
    } = world;
    server.shutdown(true).expect("it ends");
    drop((served, server));
    let (server, served) = start_real_time(&file, port);
    let after: Vec<_> = served.consumers().iter().map(|each| each.number).collect();
    assert_eq!(after, before[..2]);
    server.shutdown(true).expect("it ends");
    user.shutdown(true).expect("it ends");
    drop((served, server));
}
