//! `deckwatch channel --real-time` as a supplier sees it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use deckwatch_event::rtec_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::Event;
use deckwatch_orb::{Orb, Policy, SetOverrideType, SyncScope};

#[test]
fn real_time_channel_serves_until_it_is_destroyed_and_tells_its_counts() {
    let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--real-time", "--dispatching", "lanes:10,40"])
        .args(["--order", "deadline", "--rt-info", "3:40:50000:2000"])
        .arg("--priority-fallback")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = process.expect("the program starts");
    let mut ior = String::new();
    let said = process.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut ior).expect("a line");

    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(ior.trim()).expect("an IOR");
    let channel = EventChannelRef::narrow(&object.expect("not nil")).expect("an answer");
    let channel = channel.expect("a real-time channel");
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let proxy = admin
        .obtain_push_consumer()
        .expect("an answer")
        .expect("one");
    proxy
        .connect_push_supplier(None, &SupplierQOS::default())
        .expect("it connects");
    let whole = [Policy::SyncScope(SyncScope::WithTarget)];
    let object = proxy
        .object()
        .set_policy_overrides(&whole, SetOverrideType::AddOverride);
    let proxy = ProxyPushConsumerRef::unchecked_narrow(object.expect("a policy of callers"));
    proxy.push(&[Event::default()]).expect("it is served");
    channel.destroy().expect("an answer");

    let ended = process.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("events received 1, unwanted 1"), "{told}");
}

#[test]
fn options_of_a_real_time_channel_need_one() {
    let refused = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--dispatching", "pool:2"])
        .output();
    let refused = refused.expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("--real-time"), "{told}");
}
