//! CORBA priorities, native ones, and the mappings between them (RTCORBA 1.2: Priority, PriorityMapping).

use std::fmt;
use std::sync::Arc;

use crate::{Completion, SystemException, minor, raise};
use deckwatch_os::schedule::{self, Class};
use deckwatch_sync::Settable;

/// A CORBA priority, the same on every host: 0 to 32767, where the highest number is the most urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i16);

impl Priority {
    /// RTCORBA::minPriority.
    pub const MIN: Self = Self(0);
    /// RTCORBA::maxPriority.
    pub const MAX: Self = Self(i16::MAX);

    /// Returns the priority of this number; `None` for a negative one.
    #[must_use]
    pub const fn new(value: i16) -> Option<Self> {
        if value < 0 { None } else { Some(Self(value)) }
    }

    /// Returns its number, 0 to 32767.
    #[must_use]
    pub const fn value(self) -> i16 {
        self.0
    }
}

impl TryFrom<i16> for Priority {
    type Error = SystemException;

    /// # Errors
    /// BAD_PARAM for a number outside 0 to 32767.
    fn try_from(value: i16) -> Result<Self, SystemException> {
        Self::new(value).ok_or(raise::bad_param(minor::NONE, Completion::No))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A priority of the host's scheduler: 1 to 99 in the real-time classes, 0 in the time-sharing one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NativePriority(pub i16);

impl fmt::Display for NativePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The scheduling class of the native priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheduling {
    /// SCHED_OTHER, time sharing. It has only one native priority. CORBA priorities still select lanes and order
    /// queues, but all threads share the processors alike.
    Other,
    /// SCHED_FIFO.
    #[default]
    Fifo,
    /// SCHED_RR.
    RoundRobin,
}

impl Scheduling {
    /// Returns the lowest native priority of the class.
    #[must_use]
    pub const fn native_min(self) -> NativePriority {
        match self {
            Self::Other => NativePriority(0),
            Self::Fifo | Self::RoundRobin => NativePriority(1),
        }
    }

    /// Returns the highest native priority of the class.
    #[must_use]
    pub const fn native_max(self) -> NativePriority {
        match self {
            Self::Other => NativePriority(0),
            Self::Fifo | Self::RoundRobin => NativePriority(99),
        }
    }

    /// Returns the arguments for the scheduler; `None` for a native priority outside the class.
    pub(crate) fn class(self, native: NativePriority) -> Option<Class> {
        if native < self.native_min() || native > self.native_max() {
            return None;
        }
        let native = u8::try_from(native.0).ok()?;
        Some(match self {
            Self::Other => Class::Other,
            Self::Fifo => Class::Fifo(native),
            Self::RoundRobin => Class::RoundRobin(native),
        })
    }
}

/// Maps CORBA priorities to native ones and back: [`Linear`], [`Direct`], [`Continuous`], or one of the application. If
/// it returns `None`, no priority is mapped and DATA_CONVERSION is raised. All threads call it, also at the start of an
/// upcall: it must not block and must not call the ORB.
pub trait PriorityMapping: Send + Sync + 'static {
    /// Returns the native priority of a thread that works at `corba`.
    fn to_native(&self, corba: Priority) -> Option<NativePriority>;

    /// Returns the CORBA priority of a thread whose native one is `native`.
    fn to_corba(&self, native: NativePriority) -> Option<Priority>;
}

/// Maps each number to itself, if the class has it.
#[derive(Clone, Copy, Debug)]
pub struct Direct(
    /// The class of the native priorities.
    pub Scheduling,
);

impl PriorityMapping for Direct {
    fn to_native(&self, corba: Priority) -> Option<NativePriority> {
        within(self.0, i32::from(corba.0))
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        Priority::new(within(self.0, i32::from(native.0))?.0)
    }
}

/// Maps the whole range of CORBA priorities to the whole range of native ones, rounded down. The way back rounds up, so
/// that a native priority maps back to itself.
#[derive(Clone, Copy, Debug)]
pub struct Linear(
    /// The class of the native priorities.
    pub Scheduling,
);

impl PriorityMapping for Linear {
    fn to_native(&self, corba: Priority) -> Option<NativePriority> {
        let (min, max) = range(self.0);
        let native = min + (max - min) * i32::from(corba.0) / i32::from(i16::MAX);
        within(self.0, native)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let (min, max) = range(self.0);
        let above = i32::from(within(self.0, i32::from(native.0))?.0) - min;
        let corba = match max - min {
            0 => 0,
            steps => (i32::from(i16::MAX) * above + steps - 1) / steps,
        };
        Priority::new(i16::try_from(corba).ok()?)
    }
}

/// Maps CORBA priorities 0, 1, 2 ... to the native priorities from the lowest upwards.
#[derive(Clone, Copy, Debug)]
pub struct Continuous(
    /// The class of the native priorities.
    pub Scheduling,
);

impl PriorityMapping for Continuous {
    fn to_native(&self, corba: Priority) -> Option<NativePriority> {
        within(self.0, range(self.0).0 + i32::from(corba.0))
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        let (min, _) = range(self.0);
        let above = i32::from(within(self.0, i32::from(native.0))?.0) - min;
        Priority::new(i16::try_from(above).ok()?)
    }
}

/// The initial mapping of an ORB. The class it applies to may be chosen later.
#[derive(Clone, Default)]
pub(crate) enum MappingChoice {
    #[default]
    Linear,
    Direct,
    Continuous,
    Own(Arc<dyn PriorityMapping>),
}

impl MappingChoice {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "linear" => Self::Linear,
            "direct" => Self::Direct,
            "continuous" => Self::Continuous,
            _ => return None,
        })
    }

    pub(crate) fn make(self, scheduling: Scheduling) -> Arc<dyn PriorityMapping> {
        match self {
            Self::Linear => Arc::new(Linear(scheduling)),
            Self::Direct => Arc::new(Direct(scheduling)),
            Self::Continuous => Arc::new(Continuous(scheduling)),
            Self::Own(mapping) => mapping,
        }
    }
}

fn range(scheduling: Scheduling) -> (i32, i32) {
    let bound = |native: NativePriority| i32::from(native.0);
    (
        bound(scheduling.native_min()),
        bound(scheduling.native_max()),
    )
}

fn within(scheduling: Scheduling, native: i32) -> Option<NativePriority> {
    let (min, max) = range(scheduling);
    let native = (min..=max).contains(&native).then_some(native)?;
    i16::try_from(native).ok().map(NativePriority)
}

/// The mapping of an ORB, and the class of its native priorities.
pub(crate) struct Mappings {
    scheduling: Scheduling,
    mapping: Settable<Arc<dyn PriorityMapping>>,
}

impl Mappings {
    pub(crate) fn new(scheduling: Scheduling, mapping: Arc<dyn PriorityMapping>) -> Self {
        Self {
            scheduling,
            mapping: Settable::new(mapping),
        }
    }

    /// The scheduling class of the native priorities.
    pub(crate) const fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// Replaces the mapping from now on.
    pub(crate) fn set(&self, mapping: Arc<dyn PriorityMapping>) {
        self.mapping.set(mapping);
    }

    /// Returns the mapping that is in use.
    pub(crate) fn mapping(&self) -> Arc<dyn PriorityMapping> {
        let mapping = self.mapping.get();
        mapping.expect("a mapping is set from the beginning")
    }

    /// Returns the arguments for the scheduler for a thread that works at this priority.
    ///
    /// # Errors
    /// DATA_CONVERSION with the standard's minor code 2 if the mapping has no native priority for it, or one outside
    /// the class.
    pub(crate) fn class(&self, priority: Priority) -> Result<Class, SystemException> {
        let native = self.mapping.read(|mapping| mapping.to_native(priority));
        let class = native
            .flatten()
            .and_then(|native| self.scheduling.class(native));
        class.ok_or(raise::data_conversion(
            minor::PRIORITY_UNMAPPABLE,
            Completion::No,
        ))
    }

    /// Sets the class and native priority of the calling thread to those mapped to this priority.
    ///
    /// # Errors
    /// As [`Mappings::class`]; NO_PERMISSION if the host does not permit it.
    pub(crate) fn enter(&self, priority: Priority) -> Result<(), SystemException> {
        schedule::set_class(self.class(priority)?)
            .map_err(|_| raise::no_permission(raise::own::PRIORITY_DENIED, Completion::No))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn natives(mapping: &dyn PriorityMapping, corba: &[i16]) -> Vec<Option<i16>> {
        let native = |&number: &i16| mapping.to_native(Priority::new(number)?);
        let natives = corba.iter().map(native);
        natives.map(|native| Some(native?.0)).collect()
    }

    fn corbas(mapping: &dyn PriorityMapping, natives: &[i16]) -> Vec<Option<i16>> {
        let corba = |&number: &i16| Some(mapping.to_corba(NativePriority(number))?.value());
        natives.iter().map(corba).collect()
    }

    #[test]
    fn linear_divides_the_whole_range_as_other_orbs_do() {
        let mapping = Linear(Scheduling::Fifo);
        let numbers = [0, 334, 335, 16_383, 16_384, 32_432, 32_433, 32_766, 32_767];
        let expected = [1, 1, 2, 49, 50, 97, 98, 98, 99].map(Some);
        assert_eq!(natives(&mapping, &numbers), expected);
        let expected = [None, Some(0), Some(335), Some(16_384), Some(32_767), None];
        assert_eq!(corbas(&mapping, &[0, 1, 2, 50, 99, 100]), expected);
    }

    #[test]
    fn linear_has_one_native_priority_in_the_time_sharing_class() {
        let mapping = Linear(Scheduling::Other);
        assert_eq!(natives(&mapping, &[0, 1, 32_767]), [Some(0); 3]);
        assert_eq!(corbas(&mapping, &[-1, 0, 1]), [None, Some(0), None]);
    }

    #[test]
    fn linear_brings_every_native_priority_back() {
        let mapping = Linear(Scheduling::RoundRobin);
        for native in (1..=99).map(NativePriority) {
            let corba = mapping.to_corba(native).expect("in the class");
            assert_eq!(mapping.to_native(corba), Some(native));
        }
    }

    #[test]
    fn direct_has_what_the_class_has() {
        let mapping = Direct(Scheduling::Fifo);
        let expected = [None, Some(1), Some(99), None];
        assert_eq!(natives(&mapping, &[0, 1, 99, 100]), expected);
        assert_eq!(corbas(&mapping, &[0, 1, 99, 100]), expected);
        assert_eq!(
            natives(&Direct(Scheduling::Other), &[0, 1]),
            [Some(0), None]
        );
    }

    #[test]
    fn continuous_begins_at_the_lowest() {
        let mapping = Continuous(Scheduling::Fifo);
        let expected = [Some(1), Some(99), None, None];
        assert_eq!(natives(&mapping, &[0, 98, 99, 32_767]), expected);
        assert_eq!(corbas(&mapping, &[0, 1, 99]), [None, Some(0), Some(98)]);
        assert_eq!(corbas(&Continuous(Scheduling::Other), &[0]), [Some(0)]);
    }

    #[test]
    fn a_negative_priority_is_none_and_bad_param() {
        assert_eq!(Priority::new(-1), None);
        let refused = raise::bad_param(minor::NONE, Completion::No);
        assert_eq!(Priority::try_from(i16::MIN), Err(refused));
        assert_eq!(Priority::try_from(i16::MAX), Ok(Priority::MAX));
    }

    #[test]
    fn a_mapping_of_ones_own_that_leaves_the_class_is_a_failed_conversion() {
        struct Ten;
        impl PriorityMapping for Ten {
            fn to_native(&self, corba: Priority) -> Option<NativePriority> {
                Some(NativePriority(corba.value() * 10))
            }
            fn to_corba(&self, native: NativePriority) -> Option<Priority> {
                Priority::new(native.0 / 10)
            }
        }
        let mappings = Mappings::new(Scheduling::Fifo, Arc::new(Linear(Scheduling::Fifo)));
        mappings.mapping.set(Arc::new(Ten));
        let class = |number| mappings.class(Priority::new(number).expect("not negative"));
        assert_eq!(class(3), Ok(Class::Fifo(30)));
        let failed = raise::data_conversion(minor::omg(2), Completion::No);
        assert_eq!(class(0), Err(failed));
        assert_eq!(class(10), Err(failed));
    }
}
