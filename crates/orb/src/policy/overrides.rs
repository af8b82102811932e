//! The policies of one level, or those in force, as words: copied and merged without allocation and without a lock.

use std::time::Duration;

use deckwatch_giop::UtcT;
use deckwatch_giop::invocation::Times;

use super::{Policy, PolicyType, RebindMode, SetOverrideType, SyncScope};
use crate::connection::bidirectional::BidirectionalPolicyValue;
use crate::rt::{PriorityBand, PriorityBands, Protocol, Protocols};
use crate::{Completion, SystemException, minor, raise};

/// The overrides of one level, or those in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    /// The policies that are set, one bit per place.
    pub(super) set: u64,
    /// One word per policy; 0 if it is not set.
    pub(super) words: [u64; COUNT],
    /// The second word of the policies that have two.
    pub(super) details: [u64; DETAILS],
}

/// Empty overrides, for code that needs a reference to some.
pub(crate) static NO_OVERRIDES: Overrides = Overrides {
    set: 0,
    words: [0; COUNT],
    details: [0; DETAILS],
};

impl Overrides {
    /// Returns whether no policy is set.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// Returns overrides with this policy only.
    pub(crate) fn one(policy: Policy) -> Self {
        let mut one = Self::default();
        one.put(policy);
        one
    }

    fn put(&mut self, policy: Policy) {
        let place = policy.place();
        self.set |= 1 << place;
        self.words[place] = policy.word();
        if let Some(detail) = place.checked_sub(DETAILED) {
            self.details[detail] = policy.detail();
        }
    }

    const fn has(&self, place: usize) -> bool {
        self.set & 1 << place != 0
    }

    /// Returns these overrides with `policies` added, or only `policies`.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 30 for two policies of one kind.
    pub(crate) fn changed(
        self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<Self, SystemException> {
        let mut given = Self::default();
        for policy in policies {
            if given.has(policy.place()) {
                return Err(raise::bad_param(minor::POLICY_TWICE, Completion::No));
            }
            given.put(*policy);
        }
        Ok(match how {
            SetOverrideType::SetOverride => given,
            SetOverrideType::AddOverride => given.over(self),
        })
    }

    /// Merges two levels: these overrides take precedence over those of the level below.
    #[inline]
    pub(crate) fn over(self, below: Self) -> Self {
        match (self.set, below.set) {
            (0, _) => below,
            (_, 0) => self,
            _ => self.merged(below),
        }
    }

    fn merged(self, below: Self) -> Self {
        let mut both = below;
        both.set |= self.set;
        for place in (0..COUNT).filter(|place| self.has(*place)) {
            both.words[place] = self.words[place];
            if let Some(detail) = place.checked_sub(DETAILED) {
                both.details[detail] = self.details[detail];
            }
        }
        both
    }

    #[inline]
    fn limit(&self, place: usize) -> Option<Duration> {
        let is_limited = self.has(place) && self.words[place] != u64::MAX;
        is_limited.then(|| Duration::from_nanos(self.words[place]))
    }

    fn time(&self, place: usize) -> Option<UtcT> {
        let detail = self.details[place - DETAILED];
        self.has(place)
            .then(|| UtcT::with_detail(self.words[place], detail))
    }

    /// Returns the start and end times of request and reply.
    pub(crate) fn times(&self) -> Times {
        Times {
            request_start: self.time(REQUEST_START),
            request_end: self.time(REQUEST_END),
            reply_start: self.time(REPLY_START),
            reply_end: self.time(REPLY_END),
        }
    }

    /// Returns whether any start or end time is set.
    #[inline]
    pub(crate) const fn has_times(&self) -> bool {
        self.set & TIMED != 0
    }

    /// Returns whether the request has an end time of its own, absolute or relative.
    #[inline]
    pub(crate) const fn has_request_end(&self) -> bool {
        self.set & (1 << REQUEST | 1 << REQUEST_END) != 0
    }

    /// Returns whether any policy of real-time CORBA is set.
    #[inline]
    pub(crate) const fn is_real_time(&self) -> bool {
        self.set & (1 << PROTOCOLS | 1 << PRIVATE | 1 << BANDS) != 0
    }

    /// Returns whether servers may call back over the connections.
    #[inline]
    pub(crate) const fn is_bidirectional(&self) -> bool {
        self.has(BIDIRECTIONAL) && self.words[BIDIRECTIONAL] != 0
    }

    pub(crate) const fn is_private(&self) -> bool {
        self.set & 1 << PRIVATE != 0
    }

    pub(crate) fn protocols(&self) -> &'static [Protocol] {
        Protocols::of(self.number(PROTOCOLS)).slice()
    }

    pub(crate) fn protocols_number(&self) -> u16 {
        self.number(PROTOCOLS)
    }

    pub(crate) fn bands(&self) -> &'static [PriorityBand] {
        PriorityBands::of(self.number(BANDS)).slice()
    }

    /// Returns the number of the list that is set; the number of an empty list if none is.
    fn number(&self, place: usize) -> u16 {
        if self.has(place) {
            u16::try_from(self.words[place]).unwrap_or(u16::MAX)
        } else {
            u16::MAX
        }
    }

    #[inline]
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.limit(ROUND_TRIP)
    }

    #[inline]
    pub(crate) fn request(&self) -> Option<Duration> {
        self.limit(REQUEST)
    }

    pub(crate) fn connection(&self) -> Option<Duration> {
        self.limit(CONNECTION)
    }

    #[inline]
    pub(crate) fn rebind(&self) -> RebindMode {
        if !self.has(REBIND) {
            return RebindMode::Transparent;
        }
        match self.words[REBIND] {
            0 => RebindMode::Transparent,
            1 => RebindMode::NoRebind,
            _ => RebindMode::NoReconnect,
        }
    }

    pub(crate) fn sync_scope(&self) -> SyncScope {
        if !self.has(SYNC_SCOPE) {
            return SyncScope::default();
        }
        match self.words[SYNC_SCOPE] {
            0 => SyncScope::None,
            1 => SyncScope::WithTransport,
            2 => SyncScope::WithServer,
            _ => SyncScope::WithTarget,
        }
    }

    /// Returns the policies that are set, of these kinds; of all kinds if `kinds` is empty.
    pub(crate) fn list(&self, kinds: &[PolicyType]) -> Vec<Policy> {
        let asked = |kind: &PolicyType| kinds.is_empty() || kinds.contains(kind);
        let places = PLACES.iter().enumerate().filter(|(_, kind)| asked(kind));
        places.filter_map(|(place, _)| self.policy(place)).collect()
    }

    /// Returns the policy of this kind in force, with the ORB's default if none is set. Returns `None` if the default
    /// is no limit.
    ///
    /// # Errors
    /// INV_POLICY for an unknown kind.
    pub(crate) fn in_force(&self, kind: PolicyType) -> Result<Option<Policy>, SystemException> {
        let place = PLACES.iter().position(|known| *known == kind);
        let place = place.ok_or(raise::inv_policy(minor::NONE, Completion::No))?;
        Ok(self.policy(place).or_else(|| match place {
            REBIND => Some(Policy::Rebind(RebindMode::default())),
            SYNC_SCOPE => Some(Policy::SyncScope(SyncScope::default())),
            BIDIRECTIONAL => Some(Policy::Bidirectional(BidirectionalPolicyValue::Normal)),
            CONNECTION => Some(Policy::ConnectionTimeout(crate::limits::CONNECT_TIMEOUT)),
            _ => None,
        }))
    }

    fn policy(&self, place: usize) -> Option<Policy> {
        if !self.has(place) {
            return None;
        }
        let limit = self.limit(place).unwrap_or(Duration::MAX);
        let time = || self.time(place).unwrap_or_default();
        Some(match place {
            REBIND => Policy::Rebind(self.rebind()),
            SYNC_SCOPE => Policy::SyncScope(self.sync_scope()),
            REQUEST => Policy::RelativeRequestTimeout(limit),
            ROUND_TRIP => Policy::RelativeRoundtripTimeout(limit),
            CONNECTION => Policy::ConnectionTimeout(limit),
            PROTOCOLS => Policy::ClientProtocol(Protocols::of(self.number(place))),
            PRIVATE => Policy::PrivateConnection,
            BANDS => Policy::PriorityBandedConnection(PriorityBands::of(self.number(place))),
            BIDIRECTIONAL => Policy::Bidirectional(if self.is_bidirectional() {
                BidirectionalPolicyValue::Both
            } else {
                BidirectionalPolicyValue::Normal
            }),
            REQUEST_START => Policy::RequestStartTime(time()),
            REQUEST_END => Policy::RequestEndTime(time()),
            REPLY_START => Policy::ReplyStartTime(time()),
            _ => Policy::ReplyEndTime(time()),
        })
    }
}

impl Policy {
    /// Returns the number of its kind.
    #[must_use]
    pub const fn policy_type(&self) -> PolicyType {
        PLACES[self.place()]
    }

    const fn place(&self) -> usize {
        match self {
            Self::Rebind(_) => REBIND,
            Self::SyncScope(_) => SYNC_SCOPE,
            Self::RelativeRequestTimeout(_) => REQUEST,
            Self::RelativeRoundtripTimeout(_) => ROUND_TRIP,
            Self::ConnectionTimeout(_) => CONNECTION,
            Self::ClientProtocol(_) => PROTOCOLS,
            Self::PrivateConnection => PRIVATE,
            Self::PriorityBandedConnection(_) => BANDS,
            Self::Bidirectional(_) => BIDIRECTIONAL,
            Self::RequestStartTime(_) => REQUEST_START,
            Self::RequestEndTime(_) => REQUEST_END,
            Self::ReplyStartTime(_) => REPLY_START,
            Self::ReplyEndTime(_) => REPLY_END,
        }
    }

    /// Returns its value as a word.
    fn word(self) -> u64 {
        match self {
            Self::Rebind(mode) => mode as u64,
            Self::SyncScope(scope) => scope as u64,
            Self::ClientProtocol(protocols) => u64::from(protocols.number()),
            Self::PrivateConnection => 1,
            Self::PriorityBandedConnection(bands) => u64::from(bands.number()),
            Self::Bidirectional(value) => value as u64,
            Self::RelativeRequestTimeout(limit)
            | Self::RelativeRoundtripTimeout(limit)
            | Self::ConnectionTimeout(limit) => u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            Self::RequestStartTime(at)
            | Self::RequestEndTime(at)
            | Self::ReplyStartTime(at)
            | Self::ReplyEndTime(at) => at.time,
        }
    }

    /// Returns the part of its value that the word does not hold: inaccuracy and time zone of a point in time.
    const fn detail(self) -> u64 {
        match self {
            Self::RequestStartTime(at)
            | Self::RequestEndTime(at)
            | Self::ReplyStartTime(at)
            | Self::ReplyEndTime(at) => at.detail(),
            _ => 0,
        }
    }
}

const REBIND: usize = 0;
const SYNC_SCOPE: usize = 1;
const REQUEST: usize = 2;
const ROUND_TRIP: usize = 3;
const CONNECTION: usize = 4;
const PROTOCOLS: usize = 5;
const PRIVATE: usize = 6;
const BANDS: usize = 7;
const BIDIRECTIONAL: usize = 8;
const REQUEST_START: usize = 9;
const REQUEST_END: usize = 10;
const REPLY_START: usize = 11;
const REPLY_END: usize = 12;
pub(super) const COUNT: usize = 13;

/// The kinds of policies in the order of their words.
const PLACES: [PolicyType; COUNT] = [
    PolicyType::REBIND,
    PolicyType::SYNC_SCOPE,
    PolicyType::RELATIVE_REQ_TIMEOUT,
    PolicyType::RELATIVE_RT_TIMEOUT,
    PolicyType::CONNECTION_TIMEOUT,
    PolicyType::CLIENT_PROTOCOL,
    PolicyType::PRIVATE_CONNECTION,
    PolicyType::PRIORITY_BANDED_CONNECTION,
    PolicyType::BIDIRECTIONAL,
    PolicyType::REQUEST_START_TIME,
    PolicyType::REQUEST_END_TIME,
    PolicyType::REPLY_START_TIME,
    PolicyType::REPLY_END_TIME,
];

/// The first of the kinds whose values have a second word, and the number of such kinds.
const DETAILED: usize = REQUEST_START;
pub(super) const DETAILS: usize = COUNT - DETAILED;

/// Bit set of the start and end times of request and reply.
const TIMED: u64 = 1 << REQUEST_START | 1 << REQUEST_END | 1 << REPLY_START | 1 << REPLY_END;

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: [Policy; COUNT] = [
        Policy::Rebind(RebindMode::NoReconnect),
        Policy::SyncScope(SyncScope::None),
        Policy::RelativeRequestTimeout(Duration::from_millis(7)),
        Policy::RelativeRoundtripTimeout(Duration::ZERO),
        Policy::ConnectionTimeout(Duration::MAX),
        Policy::ClientProtocol(Protocols::of(3)),
        Policy::PrivateConnection,
        Policy::PriorityBandedConnection(PriorityBands::of(0)),
        Policy::Bidirectional(BidirectionalPolicyValue::Both),
        Policy::RequestStartTime(UtcT::new(1, 2, 3)),
        Policy::RequestEndTime(UtcT::new(u64::MAX, UtcT::INACCURACY_MAX, -1)),
        Policy::ReplyStartTime(UtcT::new(0, 0, 0)),
        Policy::ReplyEndTime(UtcT::new(4, 5, 6)),
    ];

    #[test]
    fn every_policy_comes_back_as_it_was_set() {
        let set = Overrides::default()
            .changed(&EVERY, SetOverrideType::SetOverride)
            .unwrap();
        assert_eq!(set.list(&[]), EVERY);
        for policy in EVERY {
            assert_eq!(set.list(&[policy.policy_type()]), [policy]);
            assert_eq!(set.in_force(policy.policy_type()), Ok(Some(policy)));
        }
        assert_eq!(set.connection(), None);
        assert_eq!(set.round_trip(), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_set_closer_to_the_call_wins_and_the_rest_shows_through() {
        let orb = Overrides::default()
            .changed(&EVERY, SetOverrideType::SetOverride)
            .unwrap();
        let closer = Policy::SyncScope(SyncScope::WithTarget);
        let thread = Overrides::default()
            .changed(&[closer], SetOverrideType::AddOverride)
            .unwrap();
        let both = thread.over(orb);
        assert_eq!(both.sync_scope(), SyncScope::WithTarget);
        assert_eq!(both.rebind(), RebindMode::NoReconnect);
        let added = orb
            .changed(&[closer], SetOverrideType::AddOverride)
            .unwrap();
        assert_eq!(added, both);
        let replaced = orb
            .changed(&[closer], SetOverrideType::SetOverride)
            .unwrap();
        assert_eq!(replaced, thread);
    }

    #[test]
    fn two_policies_of_one_kind_are_refused_with_the_standard_minor() {
        let twice = [Policy::SyncScope(SyncScope::None); 2];
        let refused = Overrides::default().changed(&twice, SetOverrideType::AddOverride);
        assert_eq!(
            refused,
            Err(raise::bad_param(minor::omg(30), Completion::No))
        );
    }

    #[test]
    fn lists_that_are_not_set_are_empty() {
        let bands = [PriorityBand {
            low: crate::Priority::MIN,
            high: crate::Priority::MAX,
        }];
        let policy = PriorityBands::new(&bands).unwrap();
        let set = Overrides::one(Policy::PriorityBandedConnection(policy));
        assert_eq!((set.bands(), set.protocols()), (&bands[..], &[][..]));
        assert_eq!(Overrides::default().bands(), []);
    }

    #[test]
    fn a_kind_that_is_not_known_is_inv_policy() {
        let asked = Overrides::default().in_force(PolicyType(4_711));
        assert_eq!(asked, Err(raise::inv_policy(0, Completion::No)));
    }
}
