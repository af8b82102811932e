//! The times when a thread was busy, and the layer charged for each.

use super::Parts;
use crate::sample::Layer;

/// Spans of time that do not overlap, each charged to a layer. Two binary searches find how much of an interval they
/// fill.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: i64,
    to_ns: i64,
    layer: Layer,
    /// The sum of all spans before this one.
    before: Parts,
}

impl Timeline {
    /// Builds a timeline from spans in any order. Where two spans overlap, the time belongs to the one that began
    /// first.
    #[must_use]
    pub fn new(mut spans: Vec<(i64, i64, Layer)>) -> Self {
        spans.sort_by_key(|&(from_ns, to_ns, _)| (from_ns, to_ns));
        let mut timeline = Self {
            spans: Vec::with_capacity(spans.len()),
        };
        let (mut until_ns, mut before) = (i64::MIN, Parts::default());
        for (from_ns, to_ns, layer) in spans {
            let from_ns = from_ns.max(until_ns);
            if to_ns > from_ns {
                timeline.spans.push(Span {
                    from_ns,
                    to_ns,
                    layer,
                    before,
                });
                before.add(layer, to_ns.saturating_sub(from_ns));
                until_ns = to_ns;
            }
        }
        timeline
    }

    /// Returns how much of an interval the spans fill, by layer.
    #[must_use]
    pub fn within(&self, from_ns: i64, to_ns: i64) -> Parts {
        if to_ns <= from_ns {
            Parts::default()
        } else {
            self.until(to_ns).less(&self.until(from_ns))
        }
    }

    /// Returns the spans: start, end, layer.
    pub(super) fn spans(&self) -> impl Iterator<Item = (i64, i64, Layer)> {
        let spans = self.spans.iter();
        spans.map(|span| (span.from_ns, span.to_ns, span.layer))
    }

    /// Returns the times that are in spans of both timelines, charged as here.
    pub(super) fn common(&self, other: &Self) -> Self {
        let mut common = Vec::new();
        let mut others = other.spans.iter().peekable();
        for span in &self.spans {
            while others.next_if(|next| next.to_ns <= span.from_ns).is_some() {}
            // The last span that begins within this one may reach into the next.
            for next in others.clone().take_while(|next| next.from_ns < span.to_ns) {
                let (from_ns, to_ns) = (span.from_ns.max(next.from_ns), span.to_ns.min(next.to_ns));
                common.push((from_ns, to_ns, span.layer));
            }
        }
        Self::new(common)
    }

    /// Returns the sum, by layer, of all span time before an instant.
    fn until(&self, instant_ns: i64) -> Parts {
        let begun = self.spans.partition_point(|span| span.from_ns < instant_ns);
        let Some(span) = begun.checked_sub(1).and_then(|index| self.spans.get(index)) else {
            return Parts::default();
        };
        let mut parts = span.before;
        parts.add(
            span.layer,
            span.to_ns.min(instant_ns).saturating_sub(span.from_ns),
        );
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(timeline: &Timeline, from_ns: i64, to_ns: i64) -> (i64, i64) {
        let parts = timeline.within(from_ns, to_ns);
        assert_eq!(
            parts.sum(),
            parts.of(Layer::Network) + parts.of(Layer::Application)
        );
        (parts.of(Layer::Network), parts.of(Layer::Application))
    }

    #[test]
    fn an_interval_is_charged_with_what_overlaps_it() {
        let timeline = Timeline::new(vec![
            (100, 200, Layer::Application),
            (10, 20, Layer::Network),
            (300, 310, Layer::Network),
        ]);
        assert_eq!(parts(&timeline, 0, 10), (0, 0));
        assert_eq!(parts(&timeline, 0, 1_000), (20, 100));
        assert_eq!(parts(&timeline, 15, 150), (5, 50));
        assert_eq!(parts(&timeline, 200, 300), (0, 0));
        assert_eq!(parts(&timeline, 150, 150), (0, 0));
        assert_eq!(parts(&timeline, 150, 15), (0, 0));
    }

    #[test]
    fn what_overlaps_is_charged_once() {
        let timeline = Timeline::new(vec![
            (0, 100, Layer::Network),
            (50, 150, Layer::Application),
            (60, 90, Layer::Network),
            (7, 3, Layer::Network),
        ]);
        assert_eq!(parts(&timeline, 0, 1_000), (100, 50));
    }

    #[test]
    fn what_two_timelines_have_in_common_is_in_both() {
        let spans = |spans: &[(i64, i64)]| {
            let of = |&(from_ns, to_ns)| (from_ns, to_ns, Layer::Network);
            Timeline::new(spans.iter().map(of).collect())
        };
        let one = spans(&[(0, 10), (20, 30), (40, 80)]);
        let other = spans(&[(5, 22), (25, 26), (50, 60), (70, 90)]);
        for common in [one.common(&other), other.common(&one)] {
            let found: Vec<_> = common.spans.iter().map(|s| (s.from_ns, s.to_ns)).collect();
            assert_eq!(found, [(5, 10), (20, 22), (25, 26), (50, 60), (70, 80)]);
        }
    }

    #[test]
    fn a_span_without_end_reaches_as_far_as_asked() {
        let timeline = Timeline::new(vec![(0, i64::MAX, Layer::Network)]);
        assert_eq!(parts(&timeline, -50, 50), (50, 0));
    }
}
