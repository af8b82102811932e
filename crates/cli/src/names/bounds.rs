//! How much of a naming service is listed. A service may have names without end, or invent them.

use std::time::{Duration, Instant};

use deckwatch_naming::user::text;
use deckwatch_orb::cos_naming::{Binding, BindingIteratorRef, NamingContextRef};
use deckwatch_orb::{ObjectRef, SystemException};

use crate::mission_args::duration;

/// Number of bindings requested in one call.
const LIST_STEP: u32 = 500;

/// The longest time for one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Octets of all names together: a service may also invent long ones. At the default of `--max` they are names of
/// some hundred octets.
const OCTETS_MAX: usize = 64 << 20;

/// Names that a command searches.
const SEARCHED_MAX: usize = 100_000;

/// The longest time for which a command searches names.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(60);

/// Bounds that the user sets.
#[derive(Clone, clap::Args)]
pub(crate) struct BoundArgs {
    /// List at most this many names
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    max: usize,
    /// List for at most this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    within: Duration,
}

impl BoundArgs {
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            has_options: true,
            ..Bounds::new(self.max, self.within)
        }
    }
}

/// What is left of the bounds of one command.
pub(crate) struct Bounds {
    names: usize,
    names_max: usize,
    octets: usize,
    within: Duration,
    until: Option<Instant>,
    cut: Option<String>,
    /// Whether the command has the options that raise the bounds.
    has_options: bool,
}

impl Bounds {
    pub(crate) fn new(names_max: usize, within: Duration) -> Self {
        Self {
            names: names_max,
            names_max,
            octets: OCTETS_MAX,
            within,
            // `None` if the clock cannot count so far ahead; the list then has no limit of time.
            until: Instant::now().checked_add(within),
            cut: None,
            has_options: false,
        }
    }

    /// The bounds of a command that searches names.
    pub(crate) fn of_search() -> Self {
        Self::new(SEARCHED_MAX, SEARCH_TIME_MAX)
    }

    /// Why the list is not complete, and which option raises the bound; `None` if it is complete.
    pub(crate) fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Counts the octets of a name. Returns false if all names together are too long.
    pub(crate) fn take_octets(&mut self, count: usize) -> bool {
        match self.octets.checked_sub(count) {
            Some(left) => {
                self.octets = left;
                true
            }
            None => {
                let words = format!(
                    "the names are longer than {} MiB together; list a context further down",
                    OCTETS_MAX >> 20
                );
                self.cut.get_or_insert(words);
                false
            }
        }
    }

    /// Returns false once the time is over.
    pub(crate) fn has_time(&mut self) -> bool {
        let is_over = self.until.is_some_and(|until| until <= Instant::now());
        if is_over {
            let words = format!("the service is not listed after {:?}", self.within);
            self.cut_at(words, "--within");
        }
        !is_over
    }

    /// Returns a reference whose calls end when the time is over.
    pub(crate) fn limited(&self, object: &ObjectRef) -> ObjectRef {
        let left = self.until.map_or(CALL_TIMEOUT, |until| {
            until.saturating_duration_since(Instant::now())
        });
        // A call that this ends is over only when the time is.
        let limit = (left + Duration::from_millis(1)).min(CALL_TIMEOUT);
        object.with_round_trip_timeout(Some(limit))
    }

    /// Returns the bindings of a context, sorted: not every service returns them in order. At a bound it returns
    /// those that it has.
    pub(crate) fn bindings(
        &mut self,
        context: &NamingContextRef,
    ) -> Result<Vec<Binding>, SystemException> {
        let mut bindings = Vec::new();
        if self.cut.is_some() || !self.has_time() {
            return Ok(bindings);
        }
        let listed = self.list(context, &mut bindings);
        // A call that ended with the time is no failure, nor is an iterator that is left before its end.
        if self.has_time() && self.cut.is_none() {
            listed?;
        }
        bindings.sort_by_cached_key(|binding| text(&binding.binding_name));
        Ok(bindings)
    }

    fn list(
        &mut self,
        context: &NamingContextRef,
        bindings: &mut Vec<Binding>,
    ) -> Result<(), SystemException> {
        let context = NamingContextRef::unchecked_narrow(self.limited(context.object()));
        let (first, rest) = context.list(LIST_STEP)?;
        let mut goes_on = self.keep(bindings, first.into_iter());
        let Some(rest) = rest else {
            return Ok(());
        };
        let limited = |bounds: &Self| {
            let object = bounds.limited(rest.object());
            BindingIteratorRef::unchecked_narrow(object)
        };
        while goes_on {
            let (more, next) = limited(self).next_n(LIST_STEP)?;
            // A part without a binding counts as one: an iterator may return them for ever.
            let is_empty = next.is_empty();
            goes_on =
                self.keep(bindings, next.into_iter()) && more && (!is_empty || self.take_name());
        }
        limited(self).destroy()
    }

    /// Keeps bindings up to a bound. Returns false if it is reached.
    fn keep(&mut self, kept: &mut Vec<Binding>, more: impl Iterator<Item = Binding>) -> bool {
        for binding in more {
            let octets: usize = binding
                .binding_name
                .iter()
                .map(|component| component.id.len() + component.kind.len())
                .sum();
            if !self.take_name() || !self.take_octets(octets) {
                return false;
            }
            kept.push(binding);
        }
        self.has_time()
    }

    fn cut_at(&mut self, words: String, option: &str) {
        let hint = if self.has_options {
            format!("; {option} raises the bound")
        } else {
            String::new()
        };
        self.cut.get_or_insert(words + &hint);
    }

    fn take_name(&mut self) -> bool {
        match self.names.checked_sub(1) {
            Some(left) => {
                self.names = left;
                true
            }
            None => {
                let words = format!("the list is cut at {} names", self.names_max);
                self.cut_at(words, "--max");
                false
            }
        }
    }
}
