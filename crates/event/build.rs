//! Generates the types, references and skeletons of the event services from their IDL.

fn main() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../../idl");
    deckwatch_idl::build::Builder::new()
        .include(format!("{idl}/omg"))
        .include(format!("{idl}/rtec"))
        .file(format!("{idl}/omg/CosEventComm.idl"))
        .file(format!("{idl}/omg/CosEventChannelAdmin.idl"))
        .file(format!("{idl}/omg/CosTypedEventComm.idl"))
        .file(format!("{idl}/omg/CosTypedEventChannelAdmin.idl"))
        .file(format!("{idl}/omg/CosLifeCycle.idl"))
        .file(format!("{idl}/omnievents/omniEvents.idl"))
        .file(format!("{idl}/deckwatch/channel_status.idl"))
        .file(format!("{idl}/deckwatch/channel_group.idl"))
        .extern_module("CosNaming", "::deckwatch_orb::cos_naming")
        .file(format!("{idl}/rtec/TimeBase.idl"))
        .file(format!("{idl}/rtec/RtecBase.idl"))
        .file(format!("{idl}/rtec/RtecDefaultEventData.idl"))
        .file(format!("{idl}/rtec/RtecEventComm.idl"))
        .file(format!("{idl}/rtec/RtecEventChannelAdmin.idl"))
        .file(format!("{idl}/rtec/RtecScheduler.idl"))
        .file(format!("{idl}/rtec/event_federation.idl"))
        .file(format!("{idl}/rtec/execution_times.idl"))
        .compile();
}
