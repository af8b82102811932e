//! The `-ORB` arguments of a command line (CORBA 3.3 part 1, clauses 8.2.1 and 8.5.3).

use std::fmt;
use std::time::Duration;

use crate::builder::{BuildError, LANE_PLACE_FORM, OrbBuilder};
use crate::policy::{Policy, SyncScope};
use crate::rt::{MappingChoice, Scheduling};
use crate::trace::open_sink;
use crate::transport::{ENDPOINT_FORM, SPIN_FOREVER};

/// One option; each has a value.
struct Known {
    /// Its name here, then its names in other ORBs; upper and lower case are the same.
    names: &'static [&'static str],
    /// The form of its value, for messages.
    value: &'static str,
    /// Applies the value; `None` if it cannot be read.
    obey: fn(OrbBuilder, &str) -> Option<OrbBuilder>,
}

const KNOWN: &[Known] = &[
    Known {
        names: &["-ORBInitRef"],
        value: "NAME=REFERENCE",
        obey: |builder, value| {
            let (name, reference) = value.split_once('=')?;
            let is_whole = !name.is_empty() && !reference.is_empty();
            is_whole.then(|| builder.initial_reference(name, reference))
        },
    },
    Known {
        names: &["-ORBDefaultInitRef"],
        value: "a URL to which /NAME is added",
        obey: |builder, value| Some(builder.default_initial_reference(value)),
    },
    Known {
        names: &["-ORBid"],
        value: "a name of the ORB",
        obey: |builder, value| Some(builder.id(value)),
    },
    Known {
        names: &["-ORBServerId"],
        value: "a name of the server",
        obey: |builder, value| Some(builder.server_id(value)),
    },
    Known {
        names: &["-ORBListenEndpoints", "-ORBendPoint", "-ORBEndpoint"],
        value: ENDPOINT_FORM,
        obey: |builder, value| each(builder, value, OrbBuilder::listen),
    },
    Known {
        names: &["-ORBPublishEndpoints", "-ORBendPointPublish"],
        value: "a host, or host:port as others reach it",
        obey: |builder, value| each(builder, value, OrbBuilder::publish),
    },
    Known {
        names: &["-ORBUnixPermissions", "-ORBunixTransportPermission"],
        value: "an octal mode such as 660",
        obey: |builder, value| {
            let mode = u32::from_str_radix(value, 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777)?;
            Some(builder.unix_permissions(mode))
        },
    },
    Known {
        names: &["-ORBServerThreads"],
        value: "a number of threads",
        obey: |builder, value| Some(builder.threads(value.parse().ok()?)),
    },
    Known {
        names: &["-ORBMaxConnections"],
        value: "a number of connections",
        obey: |builder, value| Some(builder.connections_max(value.parse().ok()?)),
    },
    Known {
        names: &["-ORBFragmentSize", "-ORBMaxMessageSize"],
        value: "a number of octets",
        obey: |builder, value| Some(builder.fragment_size(value.parse().ok()?)),
    },
    Known {
        names: &["-ORBMessageSizeMax", "-ORBgiopMaxMsgSize"],
        value: "a number of octets",
        obey: |builder, value| Some(builder.message_size_max(value.parse().ok()?)),
    },
    Known {
        names: &["-ORBRoundTripTimeout", "-ORBclientCallTimeOutPeriod"],
        value: MILLISECONDS,
        obey: |builder, value| Some(builder.round_trip_timeout(milliseconds(value)?)),
    },
    Known {
        names: &["-ORBConnectTimeout", "-ORBclientConnectTimeOutPeriod"],
        value: MILLISECONDS,
        obey: |builder, value| Some(builder.connect_timeout(milliseconds(value)?)),
    },
    Known {
        names: &["-ORBIdleTimeout"],
        value: MILLISECONDS,
        obey: |builder, value| Some(builder.idle_timeout(milliseconds(value)?)),
    },
    Known {
        names: &["-ORBClientIdleTimeout"],
        value: MILLISECONDS,
        obey: |builder, value| Some(builder.client_idle_timeout(milliseconds(value)?)),
    },
    Known {
        names: &["-ORBClockBound"],
        value: CLOCK_BOUND,
        obey: |builder, value| Some(builder.clock_bound(clock_bound(value)?)),
    },
    Known {
        names: &["-ORBLaneSpin"],
        value: SPIN,
        obey: |builder, value| Some(builder.spinning_lanes(spin(value)?)),
    },
    Known {
        names: &["-ORBCallSpin"],
        value: SPIN,
        obey: |builder, value| Some(builder.spinning_calls(spin(value)?)),
    },
    Known {
        names: &["-ORBSyncScope"],
        value: "none, transport, server or target",
        obey: |builder, value| Some(builder.policy(Policy::SyncScope(sync_scope(value)?))),
    },
    Known {
        names: &["-ORBPriorityMapping"],
        value: "linear, direct or continuous",
        obey: |builder, value| Some(builder.mapping_choice(MappingChoice::named(value)?)),
    },
    Known {
        names: &["-ORBSchedPolicy"],
        value: "SCHED_FIFO, SCHED_RR or SCHED_OTHER",
        obey: |builder, value| {
            Some(builder.scheduling(match value {
                "SCHED_FIFO" => Scheduling::Fifo,
                "SCHED_RR" => Scheduling::RoundRobin,
                "SCHED_OTHER" => Scheduling::Other,
                _ => return None,
            }))
        },
    },
    Known {
        names: &["-ORBCollocation"],
        value: "yes or no",
        obey: |builder, value| {
            let is_on = match value {
                "yes" | "per-orb" => true,
                "no" => false,
                _ => return None,
            };
            Some(builder.collocation(is_on))
        },
    },
    Known {
        names: &[LANE_PLACES],
        value: LANE_PLACE_FORM,
        obey: |builder, value| {
            let (which, endpoints) = value.split_once(' ')?;
            builder.lane_listen(which, endpoints).ok()
        },
    },
    Known {
        names: &["-ORBDynamicThreadIdle"],
        value: MILLISECONDS,
        obey: |builder, value| Some(builder.dynamic_thread_idle(milliseconds(value)?)),
    },
    Known {
        names: &["-ORBPriorityFallback"],
        value: "yes or no",
        obey: |builder, value| match value {
            "yes" => Some(builder.allow_priority_fallback()),
            "no" => Some(builder),
            _ => None,
        },
    },
    Known {
        names: &["-ORBTrace"],
        value: TRACE_PLACE,
        obey: |builder, value| {
            let sink = open_sink(value).ok()?;
            Some(builder.trace_into(sink))
        },
    },
];

/// The one option of two values.
const LANE_PLACES: &str = "-ORBLaneListenEndpoints";

const MILLISECONDS: &str = "a number of milliseconds";

const CLOCK_BOUND: &str = "a time with its unit, such as 5ms or 200us";

const SPIN: &str = "a number of microseconds, or forever";

/// The form of the place for a trace, for messages.
pub(crate) const TRACE_PLACE: &str = "stderr, or a file that can be written";

impl OrbBuilder {
    /// Removes the `-ORB` arguments, each with its value, from `arguments` and applies them. Upper and lower case are
    /// the same. The second names in a line are those of omniORB and TAO.
    ///
    /// * `-ORBInitRef NAME=REFERENCE`: the initial reference of a name, also for `corbaname:`;
    /// * `-ORBDefaultInitRef URL`: other initial references are resolved as `URL/NAME`;
    /// * `-ORBid NAME`: the ORB's name ([`crate::Orb::id`]);
    /// * `-ORBListenEndpoints ENDPOINT[,ENDPOINT...]`, `-ORBendPoint`: where to listen, as [`OrbBuilder::listen`] reads
    ///   it;
    /// * `-ORBPublishEndpoints ENDPOINT[,ENDPOINT...]`, `-ORBendPointPublish`: the endpoints in references, as
    ///   [`OrbBuilder::publish`] reads them;
    /// * `-ORBUnixPermissions MODE`, `-ORBunixTransportPermission`: the permissions of unix sockets, octal;
    /// * `-ORBServerThreads COUNT`: threads that serve; `-ORBMaxConnections COUNT`: connections that may be open at
    ///   once;
    /// * `-ORBFragmentSize OCTETS`, `-ORBMaxMessageSize`: larger messages are sent in fragments of this size;
    /// * `-ORBMessageSizeMax OCTETS`, `-ORBgiopMaxMsgSize`: larger messages are neither sent nor read;
    /// * `-ORBRoundTripTimeout`, `-ORBConnectTimeout`, `-ORBIdleTimeout` (the server's side), `-ORBClientIdleTimeout`,
    ///   each in milliseconds;
    /// * `-ORBClockBound TIME`: how far this host's clock may be off UTC, such as `5ms` or `200us`
    ///   ([`OrbBuilder::clock_bound`]);
    /// * `-ORBLaneSpin MICROSECONDS|forever`, `-ORBCallSpin`: how long threads of lanes and callers poll for requests
    ///   and replies before they sleep;
    /// * `-ORBSyncScope none|transport|server|target`: what one-way calls wait for;
    /// * `-ORBPriorityMapping linear|direct|continuous`: from CORBA priorities to native ones;
    /// * `-ORBSchedPolicy SCHED_FIFO|SCHED_RR|SCHED_OTHER`: the scheduling class of the native priorities;
    /// * `-ORBCollocation yes|no`: whether the calling thread serves calls of the ORB's own objects; TAO's `per-orb` is
    ///   yes;
    /// * `-ORBLaneListenEndpoints POOL:LANE ENDPOINT[,ENDPOINT...]`: where lanes listen, as [`OrbBuilder::lane_listen`]
    ///   reads it;
    /// * `-ORBDynamicThreadIdle MILLISECONDS`: when idle dynamic threads end; `-ORBPriorityFallback yes|no`: whether
    ///   the ORB runs without priorities that the host does not permit;
    /// * `-ORBTrace stderr|FILE`: where [`OrbBuilder::trace`] writes; the default is the environment's
    ///   `DECKWATCH_TRACE`.
    ///
    /// # Errors
    /// [`BuildError`] for an unknown option, or a value that cannot be read.
    pub fn arguments(mut self, arguments: &mut Vec<String>) -> Result<Self, BuildError> {
        let mut others = Vec::new();
        self.given.clone_from(arguments);
        let mut given = std::mem::take(arguments).into_iter();
        while let Some(option) = given.next() {
            if !option.starts_with("-ORB") {
                others.push(option);
                continue;
            }
            let called = |name: &&str| name.eq_ignore_ascii_case(&option);
            let known = KNOWN.iter().find(|known| known.names.iter().any(called));
            let Some(known) = known else {
                return Err(BuildError::UnknownOption(option));
            };
            let Some(mut value) = given.next() else {
                return Err(BuildError::ValueMissing(option));
            };
            if known.names[0] == LANE_PLACES {
                let second = given
                    .next()
                    .ok_or(BuildError::ValueMissing(option.clone()))?;
                value = format!("{value} {second}");
            }
            self = (known.obey)(self, &value).ok_or(BuildError::ValueMalformed {
                option,
                value,
                expected: known.value,
            })?;
        }
        *arguments = others;
        Ok(self)
    }
}

/// The names of all options, for messages.
pub(crate) struct KnownOptions;

impl fmt::Display for KnownOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, known) in KNOWN.iter().enumerate() {
            let before = if index == 0 { "" } else { ", " };
            write!(f, "{before}{}", known.names[0])?;
        }
        Ok(())
    }
}

/// Lists are separated by commas or, as TAO's, by semicolons.
fn each(
    builder: OrbBuilder,
    list: &str,
    one: impl Fn(OrbBuilder, &str) -> Result<OrbBuilder, BuildError>,
) -> Option<OrbBuilder> {
    list.split([',', ';']).try_fold(builder, one).ok()
}

fn spin(value: &str) -> Option<Duration> {
    match value {
        "forever" => Some(SPIN_FOREVER),
        count => count.parse().ok().map(Duration::from_micros),
    }
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_millis)
}

fn clock_bound(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let count: u64 = count.parse().ok()?;
    match unit {
        "ns" => Some(Duration::from_nanos(count)),
        "us" => Some(Duration::from_micros(count)),
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        _ => None,
    }
}

fn sync_scope(text: &str) -> Option<SyncScope> {
    Some(match text {
        "none" => SyncScope::None,
        "transport" => SyncScope::WithTransport,
        "server" => SyncScope::WithServer,
        "target" => SyncScope::WithTarget,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(given: &[&str]) -> (Result<OrbBuilder, String>, Vec<String>) {
        let mut arguments = given.iter().map(|&word| word.to_owned()).collect();
        let taken = OrbBuilder::default().arguments(&mut arguments);
        (taken.map_err(|error| error.to_string()), arguments)
    }

    fn refuse(given: &[&str]) -> String {
        take(given).0.map(drop).unwrap_err()
    }

    #[test]
    fn only_orb_arguments_are_taken_out() {
        let service = "NameService=corbaloc::ship:2809/NameService";
        let (builder, others) = take(&["serve", "-ORBInitRef", service, "-v", "-orbit"]);
        assert_eq!(others, ["serve", "-v", "-orbit"]);
        let (name, reference) = &builder.unwrap().initial[0];
        assert_eq!(format!("{name}={reference}"), service);
    }

    #[test]
    fn the_names_of_other_orbs_are_understood_in_any_case_of_letters() {
        let (builder, others) = take(&[
            "-ORBendPoint",
            "giop:tcp::2809",
            "-ORBEndpoint",
            "iiop://ship:1;iiop://ship:2",
            "-ORBlistenendpoints",
            "unix:/run/nav,[::1]:3",
            "-ORBendPointPublish",
            "giop:tcp:nav.example:4",
            "-ORBMaxMessageSize",
            "8192",
            "-ORBgiopMaxMsgSize",
            "1000000",
        ]);
        assert!(others.is_empty());
        let builder = builder.unwrap();
        let texts = |list: &[crate::transport::Endpoint]| -> Vec<String> {
            list.iter().map(ToString::to_string).collect()
        };
        let listens = [
            "0.0.0.0:2809",
            "ship:1",
            "ship:2",
            "unix:/run/nav",
            "[::1]:3",
        ];
        assert_eq!(texts(&builder.endpoints), listens);
        assert_eq!(texts(&builder.published), ["nav.example:4"]);
        let sizes = builder.shape.sizes;
        assert_eq!(
            (sizes.fragment, sizes.message_max),
            (Some(8_192), 1_000_000)
        );
    }

    #[test]
    fn the_clock_bound_has_a_unit() {
        let bound = |value: &str| {
            let (builder, _) = take(&["-ORBClockBound", value]);
            builder.map(|builder| builder.shape.clock_bound.unwrap())
        };
        assert_eq!(bound("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(bound("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(bound("800ns"), Ok(Duration::from_nanos(800)));
        assert_eq!(bound("1s"), Ok(Duration::from_secs(1)));
        for wrong in ["5", "ms", "-5ms", "5 ms", "5min", ""] {
            assert_eq!(
                refuse(&["-ORBClockBound", wrong]),
                format!(
                    "-ORBClockBound cannot be '{wrong}': write a time with its unit, such as 5ms or 200us."
                )
            );
        }
    }

    #[test]
    fn spinning_is_bounded_or_for_ever() {
        let (builder, _) = take(&["-ORBLaneSpin", "250", "-ORBCallSpin", "forever"]);
        let builder = builder.unwrap();
        assert_eq!(builder.shape.spin, Some(Duration::from_micros(250)));
        assert_eq!(builder.call_spin, Some(SPIN_FOREVER));
        assert_eq!(
            refuse(&["-ORBCallSpin", "often"]),
            "-ORBCallSpin cannot be 'often': write a number of microseconds, or forever."
        );
    }

    #[test]
    fn the_place_of_a_lane_takes_two_arguments() {
        let (builder, others) = take(&["-ORBLaneListenEndpoints", "1:*", ":2810,unix:/run/a", "x"]);
        assert_eq!(others, ["x"]);
        let places = builder.unwrap().lane_places;
        assert_eq!((places[0].pool, places[0].lane), (Some(1), None));
        assert_eq!(places[0].endpoints.len(), 2);
        assert_eq!(
            refuse(&["-ORBLaneListenEndpoints", "one:1", ":2810"]),
            "-ORBLaneListenEndpoints cannot be 'one:1 :2810': write pool:lane and the endpoints, such as 1:0 :2810."
        );
        assert_eq!(
            refuse(&["-ORBLaneListenEndpoints", "1:1"]),
            "The option -ORBLaneListenEndpoints needs a value after it."
        );
    }

    #[test]
    fn a_wrong_argument_says_what_to_write() {
        assert_eq!(
            refuse(&["-ORBInitRef"]),
            "The option -ORBInitRef needs a value after it."
        );
        for value in ["x", "=x", "x="] {
            assert_eq!(
                refuse(&["-ORBInitRef", value]),
                format!("-ORBInitRef cannot be '{value}': write NAME=REFERENCE.")
            );
        }
        assert_eq!(
            refuse(&["-ORBUnixPermissions", "rw"]),
            "-ORBUnixPermissions cannot be 'rw': write an octal mode such as 660."
        );
        assert_eq!(
            refuse(&["-ORBendPoint", "ship"]),
            format!("-ORBendPoint cannot be 'ship': write {ENDPOINT_FORM}.")
        );
        let unknown = refuse(&["-ORBNonsense", "x"]);
        assert!(
            unknown.starts_with("The option -ORBNonsense is not known; known are -ORBInitRef, "),
            "{unknown}"
        );
        assert!(unknown.ends_with("-ORBTrace."), "{unknown}");
    }
}
