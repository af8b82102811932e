//! Minor codes of facts that the standard has no number for, under the experimental vendor id, apart from those of the decoders.

use crate::minor::EXPERIMENTAL_VMCID;

const fn code(number: u32) -> u32 {
    EXPERIMENTAL_VMCID | 0x100 | number
}

/// TRANSIENT: the connection could not be made, for a reason that the system does not tell more precisely.
pub const CONNECT_FAILED: u32 = code(1);
/// COMM_FAILURE: the request could not be written whole.
pub const SEND_FAILED: u32 = code(2);
/// COMM_FAILURE: the connection broke before the reply was whole.
pub const CONNECTION_LOST: u32 = code(3);
/// COMM_FAILURE: the server closed the connection in order before it served the request.
pub const CONNECTION_CLOSED: u32 = code(4);
/// COMM_FAILURE: the server answered that it could not read the request.
pub const MESSAGE_REFUSED: u32 = code(5);
/// COMM_FAILURE: the reply is no GIOP message that could be read.
pub const REPLY_MALFORMED: u32 = code(6);
/// TRANSIENT: location forwards lead in a circle.
pub const FORWARD_CIRCLE: u32 = code(7);
/// INV_OBJREF: no profile of the reference is IIOP.
pub const NO_KNOWN_PROFILE: u32 = code(9);
/// BAD_PARAM: an object id is too long, or a name cannot be one.
pub const INVALID_ID: u32 = code(10);
/// BAD_PARAM: no initial reference has this name.
pub const INITIAL_REFERENCE_UNKNOWN: u32 = code(11);
/// INV_OBJREF: a server forwards to no object.
pub const FORWARD_TO_NIL: u32 = code(12);
/// TRANSIENT: nobody listens at the server's address.
pub const CONNECT_REFUSED: u32 = code(13);
/// TRANSIENT: the name of the server's host has no address.
pub const HOST_UNKNOWN: u32 = code(14);
/// TRANSIENT: there is no way to the server's host.
pub const HOST_UNREACHABLE: u32 = code(15);
/// TRANSIENT: the server's host did not answer within the connection timeout.
pub const CONNECT_TIMED_OUT: u32 = code(16);
/// TIMEOUT: before there was a connection.
pub const TIMED_OUT_CONNECTING: u32 = code(17);
/// TIMEOUT: before the request had gone.
pub const TIMED_OUT_SENDING: u32 = code(18);
/// TIMEOUT: before the reply had come.
pub const TIMED_OUT_WAITING: u32 = code(19);
/// OBJ_ADAPTER: a request came over a connection that this ORB has opened, for an object whose adapter does not take such.
pub const NOT_BIDIRECTIONAL: u32 = code(90);
/// COMM_FAILURE: the server wants the object named in a way that does not exist, or that it has already been named in.
pub const ADDRESSING_REFUSED: u32 = code(20);
/// TIMEOUT: the end time of the request or its reply had passed before the request was sent, or when it came to the server.
pub const END_TIME_PASSED: u32 = code(21);
/// IMP_LIMIT: the start time of the request or its reply lies further ahead than a caller waits.
pub const START_TOO_FAR: u32 = code(22);
/// NO_PERMISSION: the host does not let the thread have the native priority of its CORBA priority.
pub const PRIORITY_DENIED: u32 = code(48);
/// NO_PERMISSION: the host does not let the connection have the network priority of its CORBA priority.
pub const NETWORK_PRIORITY_DENIED: u32 = code(49);
/// NO_PERMISSION: the policy is not one that a caller sets.
pub const POLICY_NOT_OF_CALLERS: u32 = code(50);
/// INITIALIZE: the thread has no CORBA priority: none was set, and it serves no request.
pub const PRIORITY_UNSET: u32 = code(51);
/// INV_POLICY: the priority of the caller is in none of the bands.
pub const BANDS_MISSED: u32 = code(52);
/// INV_POLICY: the server has no lane for the priority of the caller, or for its band.
pub const LANES_MISSED: u32 = code(53);
/// INV_POLICY: bands of priorities for an object without a priority model.
pub const BANDS_WITHOUT_MODEL: u32 = code(54);
/// INV_POLICY: the object cannot be asked by any of the protocols that the caller or the server wants.
pub const PROTOCOLS_MISSED: u32 = code(55);
/// NO_RESOURCES: a thread could not be started.
pub const THREAD_REFUSED: u32 = code(64);
/// NO_RESOURCES: a lane cannot listen where it is to.
pub const LANE_CANNOT_LISTEN: u32 = code(65);
/// BAD_PARAM: a threadpool without lanes, a lane without static threads, or two lanes of one priority.
pub const LANES_MALFORMED: u32 = code(66);
/// BAD_INV_ORDER: adapters are served by the threadpool, or it serves the caller.
pub const THREADPOOL_IN_USE: u32 = code(67);
/// BAD_INV_ORDER: the object has another priority already.
pub const OBJECT_PRIORITY_CHANGED: u32 = code(68);
/// BAD_PARAM: no lane of the adapter's threadpool has the priority.
pub const PRIORITY_WITHOUT_LANE: u32 = code(69);
/// TRANSIENT: all threads of the lane serve, and its buffers are full.
pub const LANE_FULL: u32 = code(70);
/// BAD_PARAM: threads of a lane that spins are to have a real-time class.
pub const SPIN_IN_REAL_TIME: u32 = code(79);
/// BAD_INV_ORDER: the calling thread does not hold the mutex that it unlocks.
pub const MUTEX_NOT_HELD: u32 = code(80);
/// BAD_INV_ORDER: the calling thread would wait for a mutex that it holds, or whose holder waits for it.
pub const MUTEX_DEADLOCK: u32 = code(81);
/// BAD_INV_ORDER: the thread that holds the mutex has ended.
pub const MUTEX_ABANDONED: u32 = code(82);
/// BAD_INV_ORDER: a thread holds the mutex that is to be destroyed.
pub const MUTEX_HELD: u32 = code(83);
/// OBJECT_NOT_EXIST: the mutex has been destroyed.
pub const MUTEX_DESTROYED: u32 = code(84);
/// IMP_LIMIT: the ORB has as many mutexes with names as it may.
pub const TOO_MANY_MUTEXES: u32 = code(85);
/// BAD_PARAM: a band of native priorities that is empty, or leaves those of the real-time classes.
pub const BAND_MALFORMED: u32 = code(86);
/// BAD_INV_ORDER: the calling thread has no scheduling segment that it may end, or goes on as no distributable thread.
pub const SEGMENT_MISSING: u32 = code(87);
/// BAD_INV_ORDER: the calling thread is in a scheduling segment of another ORB.
pub const SEGMENT_OF_ANOTHER: u32 = code(88);
/// BAD_INV_ORDER: more scheduling segments within one another than a thread may have.
pub const SEGMENTS_TOO_DEEP: u32 = code(89);
/// NO_RESOURCES: the ORB knows as many distributable threads as it may.
pub const TOO_MANY_THREADS: u32 = code(90);
/// OBJECT_NOT_EXIST: the distributable thread is not known to the ORB, or no longer.
pub const THREAD_UNKNOWN: u32 = code(91);
/// INV_POLICY: another adapter of the threadpool has said other protocols.
pub const PROTOCOLS_OF_OTHERS: u32 = code(71);
