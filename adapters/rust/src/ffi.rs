//! The functions of the C library and of the shim.

use std::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
pub(crate) struct RawPlan {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct RawConsumer {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    pub(crate) fn dwr_flow(plan: *const RawPlan) -> *const c_char;
    pub(crate) fn dwr_topic(plan: *const RawPlan) -> *const c_char;
    pub(crate) fn dwr_address(plan: *const RawPlan) -> *const c_char;
    pub(crate) fn dwr_size_bytes(plan: *const RawPlan) -> usize;
    pub(crate) fn dwr_send_bound_ns(plan: *const RawPlan) -> i64;
    pub(crate) fn dwr_destination_count(plan: *const RawPlan) -> c_uint;
    pub(crate) fn dwr_host(plan: *const RawPlan, index: c_uint) -> *const c_char;
    pub(crate) fn dwr_endpoint(plan: *const RawPlan, index: c_uint) -> *const c_char;
    pub(crate) fn dwr_priority(plan: *const RawPlan) -> c_int;
    pub(crate) fn dwr_dscp(plan: *const RawPlan) -> c_int;
    pub(crate) fn dwr_receive_buffer_bytes(plan: *const RawPlan) -> c_int;
    pub(crate) fn dwr_is_supplier(plan: *const RawPlan) -> bool;
    pub(crate) fn dwr_is_reliable(plan: *const RawPlan) -> bool;
    pub(crate) fn dwr_keeps_all(plan: *const RawPlan) -> bool;
    pub(crate) fn dwr_history_depth(plan: *const RawPlan) -> c_uint;
    pub(crate) fn dwr_fail(text: *const c_char);
    pub(crate) fn dwr_main(
        name: *const c_char,
        connect: extern "C" fn(*const RawPlan, c_uint) -> *mut c_void,
        send: extern "C" fn(*mut c_void, u64, *const u8, usize) -> c_int,
        disconnect: extern "C" fn(*mut c_void),
        listen: extern "C" fn(*const RawPlan, *mut RawConsumer) -> *mut c_void,
        receive: extern "C" fn(*mut c_void),
        close: extern "C" fn(*mut c_void),
    ) -> c_int;
    pub(crate) fn dw_honoured(setting: *const c_char);
    pub(crate) fn dw_ignored(setting: *const c_char);
    pub(crate) fn dw_announce(endpoint: *const c_char, listening: *const c_char);
    pub(crate) fn dw_linger_ns() -> i64;
    pub(crate) fn dw_stopped() -> bool;
    pub(crate) fn dw_arrived(consumer: *mut RawConsumer, octets: *const u8, size: usize);
}
