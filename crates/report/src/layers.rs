//! The time of each layer, as a figure stacks it.

use std::collections::BTreeMap;

use deckwatch_meter::blame::Parts;
use deckwatch_meter::sample::Layer;

/// A part of a message's path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Name of the layer, or of several layers that a missing stamp merges.
    pub(crate) name: String,
    /// The layer that gives its colour: the first one.
    pub(crate) layer: Option<Layer>,
    /// Its duration in nanoseconds.
    pub(crate) ns: u64,
}

impl Segment {
    /// Makes a segment from a name in a result document.
    pub(crate) fn named(name: &str, ns: u64) -> Self {
        Self {
            name: name.to_owned(),
            layer: first_layer(name),
            ns,
        }
    }
}

/// Returns the segments of a map in a result document, in the order of the path.
pub(crate) fn of_map(map: &BTreeMap<String, u64>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = map
        .iter()
        .map(|(name, ns)| Segment::named(name, *ns))
        .collect();
    segments.sort_by_key(|segment| road_place(&segment.name));
    segments
}

/// Returns the segments of one message, in the order of the path. `names` are the names under which its flow reports
/// the layers.
pub(crate) fn of_parts(parts: &Parts, names: &[String]) -> Vec<Segment> {
    Layer::ALL
        .into_iter()
        .zip(names)
        .filter_map(|(layer, name)| {
            let ns @ 1.. = u64::try_from(parts.of(layer)).ok()? else {
                return None;
            };
            Some(Segment {
                name: name.clone(),
                layer: Some(layer),
                ns,
            })
        })
        .collect()
}

/// Returns the sort key of a segment's name: in the order of the path, unknown names last.
pub(crate) fn road_place(name: &str) -> (u8, String) {
    (
        first_layer(name).map_or(u8::MAX, |layer| layer as u8),
        name.to_owned(),
    )
}

/// Returns the first layer in a name, which may name several.
pub(crate) fn first_layer(name: &str) -> Option<Layer> {
    Layer::ALL
        .into_iter()
        .filter_map(|layer| name.find(layer.name()).map(|at| (at, layer)))
        .min_by_key(|(at, _)| *at)
        .map(|(_, layer)| layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(segments: &[Segment]) -> Vec<&str> {
        segments
            .iter()
            .map(|segment| segment.name.as_str())
            .collect()
    }

    #[test]
    fn parts_of_a_document_stand_in_order_of_the_road() {
        let map = BTreeMap::from([
            ("wake-up".to_owned(), 3),
            ("application".to_owned(), 4),
            ("network and channel".to_owned(), 2),
            ("sender".to_owned(), 1),
        ]);
        assert_eq!(
            names(&of_map(&map)),
            ["sender", "network and channel", "wake-up", "application"]
        );
    }

    #[test]
    fn parts_of_a_message_leave_out_what_took_no_time() {
        let mut parts = Parts::default();
        parts.add(Layer::WakeUp, 7);
        parts.add(Layer::Stack, 5);
        let segments = of_parts(&parts, &Layer::ALL.map(|layer| layer.name().to_owned()));
        assert_eq!(names(&segments), ["stack", "wake-up"]);
        assert_eq!(segments[1].ns, 7);
    }

    #[test]
    fn a_part_of_unknown_layers_stands_last_and_has_no_layer() {
        let map = BTreeMap::from([("a new layer".to_owned(), 3), ("sender".to_owned(), 1)]);
        let segments = of_map(&map);
        assert_eq!(
            segments[1],
            Segment {
                name: "a new layer".to_owned(),
                layer: None,
                ns: 3
            }
        );
    }
}
