//! [`fold`]: warnings that differ only in the carrier's name, as one.

use crate::result::Warning;

/// Returns the warnings with those folded that differ only in the carrier: one line with the list of carriers. A carrier
/// is named behind `over` or `carrier`.
#[must_use]
pub fn fold(warnings: &[Warning], carriers: &[&str]) -> Vec<Warning> {
    let mut folded: Vec<Folded<'_>> = Vec::new();
    for warning in warnings {
        let (pieces, named) = split(&warning.text, carriers);
        let same = folded
            .iter_mut()
            .filter(|_| named.is_some())
            .find(|other| other.kind == warning.kind && other.pieces == pieces);
        match (same, named) {
            (Some(same), Some(named)) => same.carriers.push(named),
            (_, named) => folded.push(Folded {
                kind: &warning.kind,
                pieces,
                carriers: named.into_iter().collect(),
            }),
        }
    }
    folded.iter().map(Folded::warning).collect()
}

/// Warnings with the same text around the name of the carrier.
struct Folded<'w> {
    kind: &'w str,
    /// The text, cut at the names. Without carriers it is whole.
    pieces: Vec<&'w str>,
    carriers: Vec<&'w str>,
}

impl Folded<'_> {
    fn warning(&self) -> Warning {
        let mut names = self.carriers.clone();
        names.dedup();
        let list = match names.as_slice() {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            names => names.concat(),
        };
        Warning {
            kind: self.kind.to_owned(),
            text: self.pieces.join(&list),
        }
    }
}

/// Cuts a text at the name of its carrier. A text with two carriers is not cut.
fn split<'t>(text: &'t str, carriers: &[&str]) -> (Vec<&'t str>, Option<&'t str>) {
    let whole = (vec![text], None);
    let mut pieces = Vec::new();
    let (mut from, mut named, mut before) = (0, None, "");
    for word in text.split(' ') {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let name = word.trim_end_matches([',', '.', ':', ';']);
        if matches!(before, "over" | "carrier") && carriers.contains(&name) {
            if named.is_some_and(|other| other != name) {
                return whole;
            }
            named = Some(name);
            pieces.push(&text[from..start]);
            from = start + name.len();
        }
        before = word;
    }
    if named.is_none() {
        return whole;
    }
    pieces.push(&text[from..]);
    (pieces, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(kind: &str, text: &str) -> Warning {
        Warning {
            kind: kind.to_owned(),
            text: text.to_owned(),
        }
    }

    const CARRIERS: [&str; 4] = ["udp", "tcp", "event", "rt-event"];

    #[test]
    fn warnings_of_several_carriers_are_one_line_with_their_list() {
        let all = [
            warning("priority", "The packets of NAV over udp carry no priority."),
            warning("clock", "The clock jumped."),
            warning(
                "priority",
                "The packets of NAV over rt-event carry no priority.",
            ),
            warning(
                "priority",
                "The packets of SONAR over tcp carry no priority.",
            ),
            warning(
                "priority",
                "The packets of NAV over event carry no priority.",
            ),
        ];
        let texts: Vec<String> = fold(&all, &CARRIERS)
            .into_iter()
            .map(|it| it.text)
            .collect();
        let wanted = [
            "The packets of NAV over udp, rt-event and event carry no priority.",
            "The clock jumped.",
            "The packets of SONAR over tcp carry no priority.",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn what_differs_in_more_than_the_carrier_stays_apart() {
        let all = [
            warning("sends", "At A over udp: 3 sends returned an error."),
            warning("sends", "At A over tcp: 4 sends returned an error."),
            warning("other", "At A over tcp: 3 sends returned an error."),
            // No carriers of the run: the words mean something else.
            warning("sends", "It went over budget."),
            warning("sends", "It went over time."),
            warning("sends", "From over udp to over tcp."),
        ];
        assert_eq!(fold(&all, &CARRIERS), all);
    }

    #[test]
    fn a_carrier_that_is_named_twice_is_replaced_twice() {
        let of = |name: &str| {
            let text = format!(
                "At the consumer of NAV over {name}: The program of carrier {name} is slow."
            );
            warning("program", &text)
        };
        let folded = fold(&[of("udp"), of("tcp")], &CARRIERS);
        let wanted =
            "At the consumer of NAV over udp and tcp: The program of carrier udp and tcp is slow.";
        assert_eq!(folded, [warning("program", wanted)]);
    }
}
