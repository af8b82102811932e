//! The criteria of a new channel: the names and types of omniEvents 2.6.

use std::time::Duration;

use deckwatch_cdr::Any;

use crate::cos_life_cycle::{
    CannotMeetCriteria, Criteria, GenericFactoryCreateObjectError, InvalidCriteria, NameValuePair,
};
use crate::limits;
use crate::shared::ChannelOptions;

/// What a client requests of a new channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requested {
    pub(super) options: ChannelOptions,
    /// Consumers that may pull (MaxNumProxies).
    pub(super) pullers_max: usize,
    /// The key of the channel in a `corbaloc` URL (InsName).
    pub(super) key: Option<String>,
    /// The repository id of the events that the channel passes on (FilterId); `None` for all.
    pub(super) type_id: Option<String>,
}

impl Requested {
    /// Reads the criteria; the others are as in `options`. Criteria with other names are ignored, and so are an empty
    /// string and a zero, except for the periods: omniEvents does the same.
    ///
    /// # Errors
    /// InvalidCriteria for a value of another type; CannotMeetCriteria for one out of the channel's bounds.
    pub(super) fn read(
        criteria: &[NameValuePair],
        options: ChannelOptions,
    ) -> Result<Self, GenericFactoryCreateObjectError> {
        let mut requested = Self {
            options,
            pullers_max: limits::PULLERS_MAX,
            key: None,
            type_id: None,
        };
        let mut period = None;
        for criterion in criteria {
            match criterion.name.as_str() {
                "PullRetryPeriod_ms" => {
                    period = Some(period_of(criterion, Duration::from_millis(1))?);
                }
                "PullRetryPeriod" => {
                    let seconds = period_of(criterion, Duration::from_secs(1))?;
                    period = period.or(Some(seconds));
                }
                "MaxQueueLength" => {
                    let len = &mut requested.options.queue_len;
                    set_count(len, criterion, limits::QUEUE_LEN_MAX)?;
                }
                "MaxNumProxies" => {
                    let max = &mut requested.pullers_max;
                    set_count(max, criterion, limits::PULLERS_MAX)?;
                }
                "InsName" => requested.key = text(criterion)?,
                "FilterId" => requested.type_id = text(criterion)?,
                // An event never waits for a cycle; a period of any length is kept.
                "CyclePeriod_ns" => drop(number(criterion)?),
                _ => {}
            }
        }
        requested.options.pull_period = period.unwrap_or(requested.options.pull_period);
        Ok(requested)
    }
}

fn period_of(
    criterion: &NameValuePair,
    unit: Duration,
) -> Result<Duration, GenericFactoryCreateObjectError> {
    let period = unit.saturating_mul(number(criterion)?);
    if period.is_zero() || period > limits::PULL_PERIOD_MAX {
        return Err(cannot_meet(criterion));
    }
    Ok(period)
}

fn set_count(
    count: &mut usize,
    criterion: &NameValuePair,
    max: usize,
) -> Result<(), GenericFactoryCreateObjectError> {
    match usize::try_from(number(criterion)?) {
        Ok(0) => Ok(()),
        Ok(requested) if requested <= max => {
            *count = requested;
            Ok(())
        }
        _ => Err(cannot_meet(criterion)),
    }
}

fn number(criterion: &NameValuePair) -> Result<u32, GenericFactoryCreateObjectError> {
    let number = criterion.value.extract::<u32>();
    number.map_err(|_| invalid(criterion))
}

/// A text that is not empty.
fn text(criterion: &NameValuePair) -> Result<Option<String>, GenericFactoryCreateObjectError> {
    let text = criterion.value.extract::<String>();
    let text = text.map_err(|_| invalid(criterion))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The error for a criterion of another type, and for a key that another channel has.
pub(super) fn invalid(criterion: &NameValuePair) -> GenericFactoryCreateObjectError {
    let invalid_criteria: Criteria = vec![criterion.clone()];
    InvalidCriteria { invalid_criteria }.into()
}

fn cannot_meet(criterion: &NameValuePair) -> GenericFactoryCreateObjectError {
    let unmet_criteria: Criteria = vec![criterion.clone()];
    CannotMeetCriteria { unmet_criteria }.into()
}

/// The criterion for a channel's key.
pub(super) fn key_criterion(key: &str) -> NameValuePair {
    NameValuePair {
        name: "InsName".to_owned(),
        value: Any::from_value(key).expect("a text fits an any"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: Any) -> NameValuePair {
        let name = name.to_owned();
        NameValuePair { name, value }
    }

    fn number_of(name: &str, value: u32) -> NameValuePair {
        of(name, Any::from_value(&value).unwrap())
    }

    fn read(criteria: &[NameValuePair]) -> Result<Requested, GenericFactoryCreateObjectError> {
        Requested::read(criteria, ChannelOptions::default())
    }

    #[test]
    fn criteria_of_omni_events_are_understood() {
        let requested = read(&[
            number_of("CyclePeriod_ns", 5),
            number_of("MaxQueueLength", 7),
            number_of("MaxNumProxies", 3),
            number_of("PullRetryPeriod_ms", 20),
            number_of("PullRetryPeriod", 9),
            number_of("MaxEventsPerConsumer", 1),
            key_criterion("nav"),
            of("FilterId", Any::from_value("IDL:Nav/NavData:1.0").unwrap()),
        ])
        .unwrap();
        assert_eq!(requested.options.queue_len, 7);
        assert_eq!(requested.options.pull_period, Duration::from_millis(20));
        assert_eq!(requested.pullers_max, 3);
        assert_eq!(requested.key.as_deref(), Some("nav"));
        assert_eq!(requested.type_id.as_deref(), Some("IDL:Nav/NavData:1.0"));
    }

    #[test]
    fn a_value_of_another_type_is_invalid_and_one_out_of_bounds_cannot_be_met() {
        let invalid = [
            of("MaxQueueLength", Any::from_value("many").unwrap()),
            of("CyclePeriod_ns", Any::from_value("short").unwrap()),
            number_of("InsName", 1),
        ];
        for criterion in invalid {
            let error = read(std::slice::from_ref(&criterion)).unwrap_err();
            assert_eq!(error, super::invalid(&criterion));
        }
        let unmet = [
            number_of("PullRetryPeriod_ms", 0),
            number_of("PullRetryPeriod", u32::MAX),
            number_of("MaxQueueLength", u32::MAX),
        ];
        for criterion in unmet {
            let error = read(std::slice::from_ref(&criterion)).unwrap_err();
            assert_eq!(error, cannot_meet(&criterion));
        }
    }

    #[test]
    fn the_longest_period_is_within_the_bound() {
        let longest = limits::PULL_PERIOD_MAX.as_secs() as u32;
        let requested = read(&[number_of("PullRetryPeriod", longest)]).unwrap();
        assert_eq!(requested.options.pull_period, limits::PULL_PERIOD_MAX);
        assert!(read(&[number_of("PullRetryPeriod", longest + 1)]).is_err());
    }

    #[test]
    fn empty_and_unknown_criteria_are_ignored() {
        let criteria = [
            number_of("MaxQueueLength", 0),
            key_criterion(""),
            number_of("Colour", 1),
        ];
        let untouched = read(&[]).unwrap();
        assert_eq!(read(&criteria).unwrap(), untouched);
    }
}
