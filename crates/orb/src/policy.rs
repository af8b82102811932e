//! Policies that a client sets for its calls (CORBA 3.3 part 1, clauses 8.9 and 17.2: module Messaging).
//!
//! They are set for the whole ORB, for the calls of a thread, or for a reference; what is set closer to the call wins.
//! Putting them together takes no memory and no lock, and where a level has none one look at it.

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
    /// Messaging::RelativeRequestTimeoutPolicy: within this the request is with the server's host, or TIMEOUT is raised.
    /// [`Duration::MAX`]: no limit.
    RelativeRequestTimeout(Duration),
    /// Messaging::RelativeRoundtripTimeoutPolicy: within this the reply has come, or TIMEOUT is raised.
    /// [`Duration::MAX`]: no limit.
    RelativeRoundtripTimeout(Duration),
    /// Messaging::RequestStartTimePolicy: the request is not given to the servant before this. The caller waits for it, at most
    /// [`crate::limits::START_AHEAD_MAX`].
    RequestStartTime(UtcT),
    /// Messaging::RequestEndTimePolicy: the request is not given to the servant after this; TIMEOUT is raised.
    RequestEndTime(UtcT),
    /// Messaging::ReplyStartTimePolicy: the reply is not given to the caller before this, who waits for it, at most
    /// [`crate::limits::START_AHEAD_MAX`].
    ReplyStartTime(UtcT),
    /// Messaging::ReplyEndTimePolicy: the reply is not given to the caller after this; TIMEOUT is raised.
    ReplyEndTime(UtcT),
    /// The longest that one address is tried; then the next one, or TRANSIENT. Not the standard's: TAO's by number.
    ConnectionTimeout(Duration),
    /// RTCORBA::ClientProtocolPolicy: by which protocols an object is asked, most preferred first, and how connections are made.
    ClientProtocol(Protocols),
    /// RTCORBA::PrivateConnectionPolicy: a reference shares its connections with no other.
    PrivateConnection,
    /// BiDirPolicy::BidirectionalPolicy: calls go over a connection over which their server may call back, where an adapter of this ORB has
    /// the policy too and the server speaks GIOP 1.2.
    Bidirectional(BidirectionalPolicyValue),
    /// RTCORBA::PriorityBandedConnectionPolicy: calls whose priorities lie in different bands share no connection.
    PriorityBandedConnection(PriorityBands),
}

/// The number by which the standard knows a kind of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyType(pub u32);

/// What the ORB may do without a word when a reference that has been used leads elsewhere, or to a connection that has closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum RebindMode {
    /// It follows and connects again.
    #[default]
    Transparent = 0,
    /// It connects again; where it is forwarded it raises REBIND.
    NoRebind = 1,
    /// It raises REBIND for both. [`crate::ObjectRef::validate_connection`] binds anew.
    NoReconnect = 2,
}

/// What a one-way call waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum SyncScope {
    /// Nothing; whether the request could be sent is not told.
    None = 0,
    /// The transport has taken the request.
    #[default]
    WithTransport = 1,
    /// The server has it and knows the object; the servant has not begun. GIOP before 1.2 cannot ask for this: as `WithTarget` there.
    WithServer = 2,
    /// The servant has finished; its system exceptions are raised.
    WithTarget = 3,
}

/// Whether overrides replace those that were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOverrideType {
    /// They replace all.
    SetOverride,
    /// They replace those of their own kinds.
    AddOverride,
}

/// Why a policy could not be made (CORBA::PolicyError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum PolicyErrorCode {
    /// No policy has this number.
    BadPolicy = 0,
    /// The standard has it; this ORB does not.
    UnsupportedPolicy = 1,
    /// The value is of a wrong type.
    BadPolicyType = 2,
    /// The value is not one of those it may have.
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

    /// RTCORBA::PRIORITY_MODEL_POLICY_TYPE: of object adapters; [`crate::ObjectRef::priority_model`].
    pub const PRIORITY_MODEL: Self = Self(40);
    /// RTCORBA::CLIENT_PROTOCOL_POLICY_TYPE.
    pub const CLIENT_PROTOCOL: Self = Self(43);
    /// RTCORBA::PRIVATE_CONNECTION_POLICY_TYPE.
    pub const PRIVATE_CONNECTION: Self = Self(44);
    /// RTCORBA::PRIORITY_BANDED_CONNECTION_POLICY_TYPE.
    pub const PRIORITY_BANDED_CONNECTION: Self = Self(45);

    /// The other policies of the module Messaging, and those of real-time CORBA that only RTORB makes.
    const UNSUPPORTED: [u32; 10] = [25, 26, 33, 34, 35, 40, 41, 42, 43, 45];
}

/// Nanoseconds in one unit of TimeBase::TimeT.
const TIME_T_NS: u64 = 100;

impl Policy {
    /// A policy from its number and its value as the standard has it (what `ORB::create_policy` takes): a short for rebind mode
    /// and sync scope, a TimeBase::TimeT (100 ns) for the timeouts, a TimeBase::UtcT for start and end times.
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
