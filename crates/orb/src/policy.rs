//! Policies that a client sets for its calls (CORBA 3.3 part 1, clauses 8.9 and 17.2: module Messaging).
//!
//! A policy is set for the whole ORB, for the calls of a thread, or for a reference. The level closest to the call
//! takes precedence. Merging the levels needs no allocation and no lock. A level without overrides costs one load.

mod level;
mod overrides;

use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_giop::UtcT;

use crate::connection::bidirectional::BidirectionalPolicyValue;
use crate::rt::{PriorityBands, Protocols};

pub(crate) use level::{AtOrb, at_thread, is_any_at_thread, set_at_thread};
pub(crate) use overrides::{NO_OVERRIDES, Overrides};

/// A policy with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Messaging::RebindPolicy.
    Rebind(RebindMode),
    /// Messaging::SyncScopePolicy.
    SyncScope(SyncScope),
    /// Messaging::RelativeRequestTimeoutPolicy: the request must reach the server's host within this time, or TIMEOUT
    /// is raised. [`Duration::MAX`]: no limit.
    RelativeRequestTimeout(Duration),
    /// Messaging::RelativeRoundtripTimeoutPolicy: the reply must arrive within this time, or TIMEOUT is raised.
    /// [`Duration::MAX`]: no limit.
    RelativeRoundtripTimeout(Duration),
    /// Messaging::RequestStartTimePolicy: the request is not delivered to the servant before this time. The caller
    /// waits for it, at most [`crate::limits::START_AHEAD_MAX`].
    RequestStartTime(UtcT),
    /// Messaging::RequestEndTimePolicy: the request is not delivered to the servant after this time; TIMEOUT is raised.
    RequestEndTime(UtcT),
    /// Messaging::ReplyStartTimePolicy: the reply is not delivered to the caller before this time. The caller waits for
    /// it, at most [`crate::limits::START_AHEAD_MAX`].
    ReplyStartTime(UtcT),
    /// Messaging::ReplyEndTimePolicy: the reply is not delivered to the caller after this time; TIMEOUT is raised.
    ReplyEndTime(UtcT),
    /// How long one address is tried; then the next one is tried, or TRANSIENT is raised. Not a policy of the standard:
    /// the number is TAO's.
    ConnectionTimeout(Duration),
    /// RTCORBA::ClientProtocolPolicy: the protocols for calls of an object, most preferred first, and the properties of
    /// the connections.
    ClientProtocol(Protocols),
    /// RTCORBA::PrivateConnectionPolicy: a reference shares its connections with no other.
    PrivateConnection,
    /// BiDirPolicy::BidirectionalPolicy: the server may call back over the connection of the calls. An adapter of this
    /// ORB must have the policy too, and the server must speak GIOP 1.2.
    Bidirectional(BidirectionalPolicyValue),
    /// RTCORBA::PriorityBandedConnectionPolicy: calls whose priorities are in different bands use different
    /// connections.
    PriorityBandedConnection(PriorityBands),
}

/// The standard's number of a kind of policy (CORBA::PolicyType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyType(pub u32);

/// Whether the ORB may transparently rebind a reference that has been used, after a location forward or a closed
/// connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum RebindMode {
    /// It follows the forward and connects again.
    #[default]
    Transparent = 0,
    /// It connects again; at a forward it raises REBIND.
    NoRebind = 1,
    /// It raises REBIND in both cases. [`crate::ObjectRef::validate_connection`] binds anew.
    NoReconnect = 2,
}

/// The event that a one-way call waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum SyncScope {
    /// None; the caller does not learn whether the request could be sent.
    None = 0,
    /// The transport has accepted the request.
    #[default]
    WithTransport = 1,
    /// The server has received the request and found the object; the servant has not started. GIOP before 1.2 cannot
    /// request this, so that `WithTarget` is used there.
    WithServer = 2,
    /// The servant has finished; its system exceptions are raised.
    WithTarget = 3,
}

/// How new overrides combine with those already set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOverrideType {
    /// They replace all overrides.
    SetOverride,
    /// They replace the overrides of their own kinds and keep the others.
    AddOverride,
}

/// The reason why a policy could not be made (CORBA::PolicyError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum PolicyErrorCode {
    /// No policy has this number.
    BadPolicy = 0,
    /// The standard defines the policy; this ORB does not support it.
    UnsupportedPolicy = 1,
    /// The value is of a wrong type.
    BadPolicyType = 2,
    /// The value is not one of those permitted for the policy.
    BadPolicyValue = 3,
}

impl PolicyType {
    /// Messaging::REBIND_POLICY_TYPE.
    pub const REBIND: Self = Self(23);
    /// Messaging::SYNC_SCOPE_POLICY_TYPE.
    pub const SYNC_SCOPE: Self = Self(24);
    /// Messaging::REQUEST_START_TIME_POLICY_TYPE.
    pub const REQUEST_START_TIME: Self = Self(27);
    /// Messaging::REQUEST_END_TIME_POLICY_TYPE.
    pub const REQUEST_END_TIME: Self = Self(28);
    /// Messaging::REPLY_START_TIME_POLICY_TYPE.
    pub const REPLY_START_TIME: Self = Self(29);
    /// Messaging::REPLY_END_TIME_POLICY_TYPE.
    pub const REPLY_END_TIME: Self = Self(30);
    /// Messaging::RELATIVE_REQ_TIMEOUT_POLICY_TYPE.
    pub const RELATIVE_REQ_TIMEOUT: Self = Self(31);
    /// Messaging::RELATIVE_RT_TIMEOUT_POLICY_TYPE.
    pub const RELATIVE_RT_TIMEOUT: Self = Self(32);
    /// TAO::CONNECTION_TIMEOUT_POLICY_TYPE.
    pub const CONNECTION_TIMEOUT: Self = Self(0x5441_0008);

    /// BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE.
    pub const BIDIRECTIONAL: Self = Self(37);

    /// RTCORBA::PRIORITY_MODEL_POLICY_TYPE: a policy of object adapters; see [`crate::ObjectRef::priority_model`].
    pub const PRIORITY_MODEL: Self = Self(40);
    /// RTCORBA::CLIENT_PROTOCOL_POLICY_TYPE.
    pub const CLIENT_PROTOCOL: Self = Self(43);
    /// RTCORBA::PRIVATE_CONNECTION_POLICY_TYPE.
    pub const PRIVATE_CONNECTION: Self = Self(44);
    /// RTCORBA::PRIORITY_BANDED_CONNECTION_POLICY_TYPE.
    pub const PRIORITY_BANDED_CONNECTION: Self = Self(45);

    /// The other policies of the module Messaging, and those of real-time CORBA that only RTORB creates.
    const UNSUPPORTED: [u32; 10] = [25, 26, 33, 34, 35, 40, 41, 42, 43, 45];
}

/// Nanoseconds in one unit of TimeBase::TimeT.
const TIME_T_NS: u64 = 100;

impl Policy {
    /// Makes a policy from its number and its standard value (`ORB::create_policy`):
    /// - a short for rebind mode and sync scope;
    /// - an unsigned short for the bidirectional policy;
    /// - a TimeBase::TimeT (100 ns) for the timeouts;
    /// - a TimeBase::UtcT for start and end times.
    ///
    /// # Errors
    /// [`PolicyErrorCode`].
    pub fn create(policy_type: PolicyType, value: &Any) -> Result<Self, PolicyErrorCode> {
        let short = || {
            value
                .extract::<i16>()
                .map_err(|_| PolicyErrorCode::BadPolicyType)
        };
        let time = || {
            let units = value
                .extract::<u64>()
                .map_err(|_| PolicyErrorCode::BadPolicyType)?;
            Ok(units
                .checked_mul(TIME_T_NS)
                .map_or(Duration::MAX, Duration::from_nanos))
        };
        let utc = || {
            value
                .extract::<UtcT>()
                .map_err(|_| PolicyErrorCode::BadPolicyType)
        };
        match policy_type {
            PolicyType::REQUEST_START_TIME => utc().map(Self::RequestStartTime),
            PolicyType::REQUEST_END_TIME => utc().map(Self::RequestEndTime),
            PolicyType::REPLY_START_TIME => utc().map(Self::ReplyStartTime),
            PolicyType::REPLY_END_TIME => utc().map(Self::ReplyEndTime),
            PolicyType::REBIND => rebind_mode(short()?).map(Self::Rebind),
            PolicyType::SYNC_SCOPE => sync_scope(short()?).map(Self::SyncScope),
            PolicyType::RELATIVE_REQ_TIMEOUT => time().map(Self::RelativeRequestTimeout),
            PolicyType::RELATIVE_RT_TIMEOUT => time().map(Self::RelativeRoundtripTimeout),
            PolicyType::CONNECTION_TIMEOUT => time().map(Self::ConnectionTimeout),
            PolicyType::PRIVATE_CONNECTION => Ok(Self::PrivateConnection),
            PolicyType::BIDIRECTIONAL => {
                let number = value.extract::<u16>();
                let number = number.map_err(|_| PolicyErrorCode::BadPolicyType)?;
                let value = BidirectionalPolicyValue::from_number(number);
                value
                    .map(Self::Bidirectional)
                    .ok_or(PolicyErrorCode::BadPolicyValue)
            }
            PolicyType(other) if PolicyType::UNSUPPORTED.contains(&other) => {
                Err(PolicyErrorCode::UnsupportedPolicy)
            }
            _ => Err(PolicyErrorCode::BadPolicy),
        }
    }
}

fn rebind_mode(number: i16) -> Result<RebindMode, PolicyErrorCode> {
    match number {
        0 => Ok(RebindMode::Transparent),
        1 => Ok(RebindMode::NoRebind),
        2 => Ok(RebindMode::NoReconnect),
        _ => Err(PolicyErrorCode::BadPolicyValue),
    }
}

fn sync_scope(number: i16) -> Result<SyncScope, PolicyErrorCode> {
    match number {
        0 => Ok(SyncScope::None),
        1 => Ok(SyncScope::WithTransport),
        2 => Ok(SyncScope::WithServer),
        3 => Ok(SyncScope::WithTarget),
        _ => Err(PolicyErrorCode::BadPolicyValue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_made_from_the_standard_values_and_others_are_told_apart() {
        let any = |value: i16| Any::from_value(&value).unwrap();
        let time = Any::from_value(&10_000_u64).unwrap();
        let created = Policy::create(PolicyType(24), &any(2));
        assert_eq!(created, Ok(Policy::SyncScope(SyncScope::WithServer)));
        let created = Policy::create(PolicyType(32), &time);
        let limit = Duration::from_millis(1);
        assert_eq!(created, Ok(Policy::RelativeRoundtripTimeout(limit)));
        for (number, value, code) in [
            (23, any(3), PolicyErrorCode::BadPolicyValue),
            (24, any(-1), PolicyErrorCode::BadPolicyValue),
            (24, time.clone(), PolicyErrorCode::BadPolicyType),
            (32, any(1), PolicyErrorCode::BadPolicyType),
            (28, time.clone(), PolicyErrorCode::BadPolicyType),
            (25, time.clone(), PolicyErrorCode::UnsupportedPolicy),
            (4_711, time, PolicyErrorCode::BadPolicy),
        ] {
            assert_eq!(Policy::create(PolicyType(number), &value), Err(code));
        }
    }
}
