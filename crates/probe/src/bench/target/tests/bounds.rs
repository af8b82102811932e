//! The bounds of the table, row by row.

/// The bounds of the table in its order: at most, or at least.
pub(super) const BOUNDS: [(&str, char, f64); 53] = [
    ("two-way 64 B, p50 over raw TCP", '<', 1.06),
    ("two-way 64 B, p99 over raw TCP", '<', 1.15),
    ("two-way 64 B, p50 over omniORB's", '<', 1.0),
    (
        "two-way 64 B through a shared poller, p50 over raw TCP",
        '<',
        1.12,
    ),
    (
        "two-way 64 B through shared memory, p50 over raw TCP",
        '<',
        0.6,
    ),
    (
        "two-way 64 B on a spinning lane, p50 over spinning raw TCP",
        '<',
        1.10,
    ),
    (
        "two-way 64 B through shared memory, spinning, p50 over spinning raw TCP",
        '<',
        0.15,
    ),
    ("two-way 8 KiB octets, p50 over raw TCP", '<', 1.10),
    (
        "two-way 64 KiB ComplexStruct both ways, p50 over raw TCP",
        '<',
        2.5,
    ),
    ("two-way 64 B over TLS, p50 over plain TCP", '<', 1.35),
    ("one call every 10 ms, p50 over raw TCP", '<', 1.15),
    (
        "one-way 64 KiB octets, rate over raw TCP with the same send buffer",
        '>',
        0.95,
    ),
    ("sink of ComplexStruct, rate over octets", '>', 0.60),
    (
        "sink of a struct laid out as its CDR, rate over octets",
        '>',
        0.95,
    ),
    ("one-way 64 B, messages a second over omniORB's", '>', 1.5),
    ("many objects active, p50 over one", '<', 1.03),
    ("high priority beside many low, p50 over raw TCP", '<', 1.2),
    ("high priority beside many low, p99 over raw TCP", '<', 1.2),
    (
        "event to 35 consumers, an endpoint each, last receipt p50 over a raw fan-out",
        '<',
        1.3,
    ),
    (
        "event to 35 consumers, an endpoint each, last receipt p99 over a raw fan-out",
        '<',
        1.5,
    ),
    (
        "event to 35 consumers at one endpoint, last receipt p50 over a raw fan-out",
        '<',
        1.3,
    ),
    (
        "event to 35 consumers at one endpoint, last receipt p99 over a raw fan-out",
        '<',
        1.5,
    ),
    (
        "events a second to one consumer, over a raw relay",
        '>',
        0.8,
    ),
    (
        "events a second to 35 consumers at one endpoint, over a raw fan-out",
        '>',
        0.8,
    ),
    (
        "events a second to 35 consumers, an endpoint each, over a raw fan-out",
        '>',
        0.8,
    ),
    (
        "real-time event to 35 consumers, an endpoint each, last receipt p50 over a raw fan-out",
        '<',
        1.3,
    ),
    (
        "real-time event to 35 consumers, an endpoint each, last receipt p99 over a raw fan-out",
        '<',
        1.5,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p50 over a raw fan-out",
        '<',
        1.3,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p99 over a raw fan-out",
        '<',
        1.5,
    ),
    (
        "real-time events a second to one consumer, over a raw relay",
        '>',
        0.8,
    ),
    (
        "real-time events a second to 35 consumers at one endpoint, over a raw fan-out",
        '>',
        0.8,
    ),
    (
        "real-time events a second to 35 consumers, an endpoint each, over a raw fan-out",
        '>',
        0.8,
    ),
    (
        "event to 35 consumers at one endpoint, last receipt p50 over omniEvents'",
        '<',
        1.0,
    ),
    (
        "event to 35 consumers, an endpoint each, last receipt p50 over omniEvents'",
        '<',
        1.0,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p50 over Cyclone DDS'",
        '<',
        1.0,
    ),
    (
        "real-time event to one consumer, receipt p50 over TAO's",
        '<',
        1.0,
    ),
    (
        "real-time event to one consumer, receipt p99 over TAO's",
        '<',
        1.0,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p50 over TAO's",
        '<',
        1.0,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p99 over TAO's",
        '<',
        1.0,
    ),
    (
        "real-time event to 35 consumers at one endpoint, last receipt p50 over zenoh's",
        '<',
        1.0,
    ),
    (
        "real-time event to 35 consumers, an endpoint each, last receipt p50 over zenoh's",
        '<',
        1.0,
    ),
    (
        "real-time event beside consumers of other events, p50 over one without",
        '<',
        1.05,
    ),
    (
        "real-time event of high priority beside a flow of low priority, p99 over one without",
        '<',
        2.0,
    ),
    (
        "high lane while names lead to a silent server, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane while names lead to host names without address, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane beside a silent consumer of large events, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane while a peer takes places of consumers, suppliers and contexts, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane while a peer takes all connections, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane beside unfinished messages, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane beside silent shared-memory connections, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "high lane beside CancelRequests behind half a message, p99 over undisturbed",
        '<',
        1.5,
    ),
    (
        "names while contexts lead to a silent server, p99 over undisturbed",
        '<',
        2.0,
    ),
    (
        "names while a context leads back to its service, p99 over undisturbed",
        '<',
        2.0,
    ),
];
