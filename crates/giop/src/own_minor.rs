//! Minor codes without a standard number, under the experimental vendor id, separate from those of the decoders.

use crate::minor::EXPERIMENTAL_VMCID;

const fn code(number: u32) -> u32 {
    EXPERIMENTAL_VMCID | 0x100 | number
}

/// TRANSIENT: the connection could not be made; the system gives no precise reason.
pub const CONNECT_FAILED: u32 = code(1);
/// COMM_FAILURE: the request could not be written completely.
pub const SEND_FAILED: u32 = code(2);
/// COMM_FAILURE: the connection broke before the reply was complete.
pub const CONNECTION_LOST: u32 = code(3);
/// COMM_FAILURE: the server closed the connection in order before it served the request.
pub const CONNECTION_CLOSED: u32 = code(4);
/// COMM_FAILURE: the server answered that it could not read the request.
pub const MESSAGE_REFUSED: u32 = code(5);
/// COMM_FAILURE: the reply is not a readable GIOP message.
pub const REPLY_MALFORMED: u32 = code(6);
/// TRANSIENT: location forwards lead in a circle.
pub const FORWARD_CIRCLE: u32 = code(7);
/// INV_OBJREF: no profile of the reference is IIOP.
pub const NO_KNOWN_PROFILE: u32 = code(9);
/// BAD_PARAM: an object id is too long, or a name is not valid.
pub const INVALID_ID: u32 = code(10);
/// BAD_PARAM: no initial reference has this name.
pub const INITIAL_REFERENCE_UNKNOWN: u32 = code(11);
/// INV_OBJREF: a server forwards to nil.
pub const FORWARD_TO_NIL: u32 = code(12);
/// TRANSIENT: nobody listens at the server's address.
pub const CONNECT_REFUSED: u32 = code(13);
/// TRANSIENT: the name of the server's host has no address.
pub const HOST_UNKNOWN: u32 = code(14);
/// TRANSIENT: there is no route to the server's host.
pub const HOST_UNREACHABLE: u32 = code(15);
/// TRANSIENT: the server's host did not answer within the connection timeout.
pub const CONNECT_TIMED_OUT: u32 = code(16);
/// TIMEOUT: before the connection was made.
pub const TIMED_OUT_CONNECTING: u32 = code(17);
/// TIMEOUT: before the request was sent.
pub const TIMED_OUT_SENDING: u32 = code(18);
/// TIMEOUT: before the reply arrived.
pub const TIMED_OUT_WAITING: u32 = code(19);
/// OBJ_ADAPTER: a request came over a connection that this ORB opened, for an object whose adapter does not accept such
/// requests.
pub const NOT_BIDIRECTIONAL: u32 = code(90);
/// COMM_FAILURE: the server asks for an addressing disposition that does not exist, or that was used already.
pub const ADDRESSING_REFUSED: u32 = code(20);
/// TIMEOUT: the end time of the request or its reply had passed before the request was sent, or when it arrived at the
/// server.
pub const END_TIME_PASSED: u32 = code(21);
/// IMP_LIMIT: the start time of the request or its reply is further ahead than a caller waits.
pub const START_TOO_FAR: u32 = code(22);
/// NO_PERMISSION: the host does not allow the thread the native priority of its CORBA priority.
pub const PRIORITY_DENIED: u32 = code(48);
/// NO_PERMISSION: the host does not allow the connection the network priority of its CORBA priority.
pub const NETWORK_PRIORITY_DENIED: u32 = code(49);
/// NO_PERMISSION: callers may not set this policy.
pub const POLICY_NOT_OF_CALLERS: u32 = code(50);
/// INITIALIZE: the thread has no CORBA priority: none was set, and it serves no request.
pub const PRIORITY_UNSET: u32 = code(51);
/// INV_POLICY: the priority of the caller is in none of the bands.
pub const BANDS_MISSED: u32 = code(52);
/// INV_POLICY: the server has no lane for the priority of the caller, or for its band.
pub const LANES_MISSED: u32 = code(53);
/// INV_POLICY: bands of priorities for an object without a priority model.
pub const BANDS_WITHOUT_MODEL: u32 = code(54);
/// INV_POLICY: the object is not reachable by any protocol that the caller or the server wants.
pub const PROTOCOLS_MISSED: u32 = code(55);
/// NO_RESOURCES: a thread could not be started.
pub const THREAD_REFUSED: u32 = code(64);
/// NO_RESOURCES: a lane cannot listen at its address.
pub const LANE_CANNOT_LISTEN: u32 = code(65);
/// BAD_PARAM: a threadpool without lanes, a lane without static threads, or two lanes of one priority.
pub const LANES_MALFORMED: u32 = code(66);
/// BAD_INV_ORDER: the threadpool serves adapters, or the caller.
pub const THREADPOOL_IN_USE: u32 = code(67);
/// BAD_INV_ORDER: the object has another priority already.
pub const OBJECT_PRIORITY_CHANGED: u32 = code(68);
/// BAD_PARAM: no lane of the adapter's threadpool has the priority.
pub const PRIORITY_WITHOUT_LANE: u32 = code(69);
/// TRANSIENT: all threads of the lane serve, and its buffers are full.
pub const LANE_FULL: u32 = code(70);
/// BAD_PARAM: the threads of a spinning lane should get a real-time class.
pub const SPIN_IN_REAL_TIME: u32 = code(79);
/// BAD_INV_ORDER: the calling thread does not own the mutex that it unlocks.
pub const MUTEX_NOT_HELD: u32 = code(80);
/// BAD_INV_ORDER: the calling thread would wait for a mutex that it owns, or whose owner waits for it.
pub const MUTEX_DEADLOCK: u32 = code(81);
/// BAD_INV_ORDER: the thread that owns the mutex has ended.
pub const MUTEX_ABANDONED: u32 = code(82);
/// BAD_INV_ORDER: a thread owns the mutex that is to be destroyed.
pub const MUTEX_HELD: u32 = code(83);
/// OBJECT_NOT_EXIST: the mutex has been destroyed.
pub const MUTEX_DESTROYED: u32 = code(84);
/// IMP_LIMIT: the ORB has the maximum number of named mutexes.
pub const TOO_MANY_MUTEXES: u32 = code(85);
/// BAD_PARAM: a band of native priorities that is empty, or not within the real-time classes.
pub const BAND_MALFORMED: u32 = code(86);
/// BAD_INV_ORDER: the calling thread has no scheduling segment that it may end, or it no longer is a distributable
/// thread.
pub const SEGMENT_MISSING: u32 = code(87);
/// BAD_INV_ORDER: the calling thread is in a scheduling segment of another ORB.
pub const SEGMENT_OF_ANOTHER: u32 = code(88);
/// BAD_INV_ORDER: scheduling segments are nested too deep.
pub const SEGMENTS_TOO_DEEP: u32 = code(89);
/// NO_RESOURCES: the ORB has the maximum number of distributable threads.
pub const TOO_MANY_THREADS: u32 = code(90);
/// OBJECT_NOT_EXIST: the ORB does not know the distributable thread, or no longer.
pub const THREAD_UNKNOWN: u32 = code(91);
/// IMP_LIMIT: the caller's address, user or certificate holds its whole share of a channel's places for consumers.
pub const CONSUMER_SHARE_FULL: u32 = code(92);
/// IMP_LIMIT: the caller's address, user or certificate holds its whole share of a channel's places for suppliers.
pub const SUPPLIER_SHARE_FULL: u32 = code(93);
/// NO_PERMISSION: the access table of the service has no rule that permits the request.
pub const ACCESS_DENIED: u32 = code(94);
/// BAD_INV_ORDER: the adapter has an access table already.
pub const ACCESS_SET: u32 = code(98);
/// NO_RESOURCES: an operation would miss its deadline; the channel's log names it.
pub const SCHEDULE_INFEASIBLE: u32 = code(95);
/// BAD_PARAM: the scheduler has no RT_Info of this handle.
pub const RT_INFO_UNKNOWN: u32 = code(96);
/// NO_RESOURCES: the schedule needs a lane that the channel does not have.
pub const SCHEDULE_NEEDS_LANE: u32 = code(97);
/// NO_PERMISSION: the peer that gave the reference may not have its address called.
pub const OUT_OF_REACH: u32 = code(120);
/// TRANSIENT: the service has as many calls to other services under way as it makes at the same time.
pub const OUTWARD_FULL: u32 = code(121);
/// TRANSIENT: the caller's address, user or certificate has its share of the service's calls to other services under way.
pub const OUTWARD_SHARE_FULL: u32 = code(122);
/// TRANSIENT: a service that called another for its caller got no answer.
pub const OUTWARD_FAILED: u32 = code(124);
/// NO_RESOURCES: the scheduling service has as many operations or dependencies as it may.
pub const SCHEDULE_FULL: u32 = code(125);
/// IMP_LIMIT: the caller's address, user or certificate has declared its whole share of a scheduling service's
/// operations or dependencies.
pub const SCHEDULE_SHARE_FULL: u32 = code(126);
/// TRANSIENT: the scheduling service has as many analyses under way or waiting as it may, in all or for the caller's
/// address, user or certificate.
pub const ANALYSES_FULL: u32 = code(127);
/// IMP_LIMIT: too many services have passed the request on: the name leads in a circle.
pub const TOO_MANY_HOPS: u32 = code(123);
/// IMP_LIMIT: this service has passed the request on as often as it does: the name leads back to it in a circle.
pub const TOO_MANY_RETURNS: u32 = code(128);
/// INV_POLICY: another adapter of the threadpool has set other protocols.
pub const PROTOCOLS_OF_OTHERS: u32 = code(71);
/// NO_PERMISSION: the server takes calls over TLS alone, and this ORB has no authorities to check it by.
pub const TLS_NOT_SET: u32 = code(110);
/// COMM_FAILURE: the peer at an address of TLS does not speak it.
pub const TLS_PEER_PLAIN: u32 = code(111);
/// NO_PERMISSION: no trusted authority has signed the certificate of the server.
pub const TLS_UNTRUSTED: u32 = code(112);
/// NO_PERMISSION: the certificate of the server has expired, or is not valid yet.
pub const TLS_EXPIRED: u32 = code(113);
/// NO_PERMISSION: the certificate of the server is revoked.
pub const TLS_REVOKED: u32 = code(114);
/// NO_PERMISSION: the certificate of the server does not name the host that was called.
pub const TLS_OTHER_HOST: u32 = code(115);
/// NO_PERMISSION: the certificate of the server is damaged, missing, or not for this use.
pub const TLS_UNFIT: u32 = code(116);
/// NO_PERMISSION: the server refuses the certificate of this ORB, or demands one.
pub const TLS_REFUSED: u32 = code(117);
/// COMM_FAILURE: the handshake of TLS failed.
pub const TLS_FAILED: u32 = code(118);
/// COMM_FAILURE: the server speaks TLS at this address, and was called without it.
pub const TLS_DEMANDED: u32 = code(119);
/// PERSIST_STORE: a row of the naming service's store does not match its checksum.
pub const STORE_DAMAGED: u32 = code(100);
/// NO_RESOURCES: the naming service holds as many contexts or names as it may.
pub const NAMES_FULL: u32 = code(101);
/// IMP_LIMIT: the caller's address, user or certificate holds its whole share of a naming service's contexts or names.
pub const NAMES_SHARE_FULL: u32 = code(102);
