//! A carrier of Deckwatch in Rust: implement [`Carrier`], and call [`run`] in `main`. adapters/README.md has the contract.

mod ffi;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// A middleware that moves messages. An error is a text in whole sentences: what failed, and what to do.
pub trait Carrier {
    /// The carrier's name.
    const NAME: &'static CStr;
    /// The supplier's connection: to one consumer, or to all if the manifest says `one_slot`.
    type Sender: Send;
    /// The consumer's end.
    type Receiver;

    /// Connects slot `slot`. Returns when the consumers are connected.
    ///
    /// # Errors
    /// The text for the user, if they cannot be reached.
    fn connect(plan: Plan, slot: usize) -> Result<Self::Sender, String>;

    /// Sends one message. Returns after [`Plan::send_bound`] at the latest.
    fn send(sender: &mut Self::Sender, octets: &[u8]) -> Sent;

    /// Binds or subscribes, and calls [`announce`].
    ///
    /// # Errors
    /// The text for the user, if the consumer cannot receive.
    fn listen(plan: Plan) -> Result<Self::Receiver, String>;

    /// Receives until [`stopped`]. Calls [`Arrivals::arrived`] for each message.
    fn receive(receiver: &mut Self::Receiver, arrivals: &Arrivals);
}

/// What became of a message: the values of deckwatch_carrier.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Sent {
    /// The middleware has the message.
    Sent = 0,
    /// The middleware refused the message.
    Refused = 0x0001_0000,
    /// The peer does not read, and all buffers are full.
    BacklogFull = 0x0002_0000,
    /// The connection is lost.
    Disconnected = 0x0003_0000,
    /// The middleware did not accept the message in [`Plan::send_bound`].
    TimedOut = 0x0004_0000,
}

/// The plan of this part. It lives until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Plan(*const ffi::RawPlan);

// SAFETY: the C library never changes the plan after it has called the adapter.
unsafe impl Send for Plan {}

fn text(raw: *const c_char) -> &'static str {
    // SAFETY: the plan's texts end with zero and live until the process ends.
    unsafe { CStr::from_ptr(raw) }.to_str().unwrap_or_default()
}

impl Plan {
    /// Returns the name of the flow.
    #[must_use]
    pub fn flow(self) -> &'static str {
        // SAFETY: the plan lives until the process ends; the same holds for each field below.
        text(unsafe { ffi::dwr_flow(self.0) })
    }

    /// Returns a name that no other stream has.
    #[must_use]
    pub fn topic(self) -> &'static str {
        text(unsafe { ffi::dwr_topic(self.0) })
    }

    /// Returns the address of this part's host.
    #[must_use]
    pub fn address(self) -> &'static str {
        text(unsafe { ffi::dwr_address(self.0) })
    }

    /// Returns the octets of one message.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        unsafe { ffi::dwr_size_bytes(self.0) }
    }

    /// Returns the longest time that one send may take.
    #[must_use]
    pub fn send_bound(self) -> Duration {
        let bound_ns = unsafe { ffi::dwr_send_bound_ns(self.0) };
        Duration::from_nanos(u64::try_from(bound_ns).unwrap_or_default())
    }

    /// Returns the number of consumers.
    #[must_use]
    pub fn destination_count(self) -> usize {
        unsafe { ffi::dwr_destination_count(self.0) as usize }
    }

    /// Returns the host and the endpoint of a consumer.
    ///
    /// # Panics
    /// If there is no such consumer.
    #[must_use]
    pub fn destination(self, index: usize) -> (&'static str, &'static str) {
        assert!(
            index < self.destination_count(),
            "the plan has no destination {index}"
        );
        let index = c_uint::try_from(index).unwrap_or_default();
        let (host, endpoint) = unsafe {
            (
                ffi::dwr_host(self.0, index),
                ffi::dwr_endpoint(self.0, index),
            )
        };
        (text(host), text(endpoint))
    }

    /// Returns the CORBA priority of the flow, if it has one.
    #[must_use]
    pub fn priority(self) -> Option<u16> {
        u16::try_from(unsafe { ffi::dwr_priority(self.0) }).ok()
    }

    /// Returns the DSCP of the flow's packets, if it has one.
    #[must_use]
    pub fn dscp(self) -> Option<u8> {
        u8::try_from(unsafe { ffi::dwr_dscp(self.0) }).ok()
    }

    /// Returns the size of the consumer's receive buffer in octets, if the flow has one.
    #[must_use]
    pub fn receive_buffer_bytes(self) -> Option<u32> {
        let octets = u32::try_from(unsafe { ffi::dwr_receive_buffer_bytes(self.0) }).ok()?;
        (octets > 0).then_some(octets)
    }

    /// Returns whether this part sends.
    #[must_use]
    pub fn is_supplier(self) -> bool {
        unsafe { ffi::dwr_is_supplier(self.0) }
    }

    /// Returns whether the flow asks for reliable delivery.
    #[must_use]
    pub fn is_reliable(self) -> bool {
        unsafe { ffi::dwr_is_reliable(self.0) }
    }

    /// Returns whether the flow asks for a history of all messages.
    #[must_use]
    pub fn keeps_all(self) -> bool {
        unsafe { ffi::dwr_keeps_all(self.0) }
    }

    /// Returns the number of last messages that the flow asks to keep, if it does.
    #[must_use]
    pub fn history_depth(self) -> Option<usize> {
        let depth = unsafe { ffi::dwr_history_depth(self.0) } as usize;
        (depth > 0).then_some(depth)
    }
}

/// The consumer's records. Several threads may use it.
#[derive(Debug)]
pub struct Arrivals(*mut ffi::RawConsumer);

// SAFETY: the C library takes arrivals from several threads.
unsafe impl Send for Arrivals {}
// SAFETY: as above.
unsafe impl Sync for Arrivals {}

impl Arrivals {
    /// Records a message that has just arrived. Reads the clock first.
    pub fn arrived(&self, octets: &[u8]) {
        // SAFETY: the octets are valid for the call, and the records live until the process ends.
        unsafe { ffi::dw_arrived(self.0, octets.as_ptr(), octets.len()) };
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Reports that the middleware implements this setting.
pub fn honoured(setting: &'static CStr) {
    // SAFETY: the text lives until the process ends, as the C library requires.
    unsafe { ffi::dw_honoured(setting.as_ptr()) };
}

/// Reports that the middleware has nothing for this setting.
pub fn ignored(setting: &'static CStr) {
    // SAFETY: as above.
    unsafe { ffi::dw_ignored(setting.as_ptr()) };
}

/// Announces the consumer: the endpoint for the supplier, and the address and port for the user, if it has one.
pub fn announce(endpoint: &str, listening: Option<SocketAddr>) {
    let endpoint = c_text(endpoint);
    let listening = listening.map(|place| c_text(&place.to_string()));
    let listening = listening
        .as_ref()
        .map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: the C library copies both texts.
    unsafe { ffi::dw_announce(endpoint.as_ptr(), listening) };
}

/// Returns whether the part must finish.
#[must_use]
pub fn stopped() -> bool {
    // SAFETY: the function has no requirements.
    unsafe { ffi::dw_stopped() }
}

/// Returns the time in which the supplier's queued messages must have left, from the drop of its first sender on.
#[must_use]
pub fn linger() -> Duration {
    // SAFETY: the function has no requirements.
    let left_ns = unsafe { ffi::dw_linger_ns() };
    Duration::from_nanos(u64::try_from(left_ns).unwrap_or_default())
}

/// The longest time between two looks at [`stopped`].
pub const STOP_LOOK: Duration = Duration::from_millis(100);

/// Plays the part that standard input asks for.
#[must_use]
pub fn run<C: Carrier>() -> ExitCode {
    // SAFETY: the functions keep the contract of deckwatch_carrier.h; see each of them.
    let status = unsafe {
        ffi::dwr_main(
            C::NAME.as_ptr(),
            connect::<C>,
            send::<C>,
            drop_boxed::<C::Sender>,
            listen::<C>,
            receive::<C>,
            drop_boxed::<Listening<C>>,
        )
    };
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

struct Listening<C: Carrier> {
    receiver: C::Receiver,
    arrivals: Arrivals,
    of: PhantomData<C>,
}

fn boxed_or_failed<T>(made: Result<T, String>) -> *mut c_void {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)).cast(),
        Err(reason) => {
            let reason = c_text(&reason);
            // SAFETY: the C library copies the text.
            unsafe { ffi::dwr_fail(reason.as_ptr()) };
            std::ptr::null_mut()
        }
    }
}

extern "C" fn connect<C: Carrier>(plan: *const ffi::RawPlan, slot: c_uint) -> *mut c_void {
    boxed_or_failed(C::connect(Plan(plan), slot as usize))
}

extern "C" fn send<C: Carrier>(
    sender: *mut c_void,
    _: u64,
    octets: *const u8,
    size: usize,
) -> c_int {
    // SAFETY: `sender` is the box of `connect`, and one thread uses it. The octets are valid for the call.
    let (sender, octets) = unsafe {
        (
            &mut *sender.cast::<C::Sender>(),
            std::slice::from_raw_parts(octets, size),
        )
    };
    C::send(sender, octets) as c_int
}

extern "C" fn listen<C: Carrier>(
    plan: *const ffi::RawPlan,
    consumer: *mut ffi::RawConsumer,
) -> *mut c_void {
    boxed_or_failed(C::listen(Plan(plan)).map(|receiver| Listening::<C> {
        receiver,
        arrivals: Arrivals(consumer),
        of: PhantomData,
    }))
}

extern "C" fn receive<C: Carrier>(listening: *mut c_void) {
    // SAFETY: `listening` is the box of `listen`, and one thread uses it.
    let listening = unsafe { &mut *listening.cast::<Listening<C>>() };
    C::receive(&mut listening.receiver, &listening.arrivals);
}

extern "C" fn drop_boxed<T>(value: *mut c_void) {
    // SAFETY: the C library gives each box back once, and does not use it afterwards.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}
