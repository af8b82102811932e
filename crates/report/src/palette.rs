//! Colours by meaning: each carrier, each run and each layer has the same colour in the whole report.
//!
//! The hues of carriers and runs differ under any of the common colour blindnesses, and lines have labels. The layers
//! have the colours of Okabe and Ito, which are made for that.

use deckwatch_meter::result::{FlowResult, ResultDocument};
use deckwatch_meter::sample::Layer;

/// Name of each colour, with its value in the light and in the dark theme.
const THEME: [(&str, &str, &str); 25] = [
    ("page", "#f6f7f9", "#0f1216"),
    ("card", "#ffffff", "#171b21"),
    ("ink", "#16202c", "#e8ecf1"),
    ("soft", "#566273", "#a3afbd"),
    ("line", "#d9dfe6", "#2d343e"),
    ("grid", "#e8ecf1", "#252b34"),
    ("axis", "#9aa5b3", "#5d6876"),
    ("link", "#0b5cad", "#7cb8ff"),
    ("pass", "#0b6b3a", "#58d68d"),
    ("pass-back", "#e2f5ea", "#10301f"),
    ("fail", "#b3181f", "#ff8a80"),
    ("fail-back", "#fdeaea", "#3d1618"),
    ("unproven", "#855400", "#f5c04e"),
    ("unproven-back", "#fff4dc", "#33270c"),
    ("invalid", "#6a2c91", "#d7a8f5"),
    ("invalid-back", "#f5eafb", "#2c1938"),
    ("zone", "#fbdcdc", "#43191c"),
    ("c0", "#2470cc", "#5ca8ff"),
    ("c1", "#d95f1e", "#ff9a5c"),
    ("c2", "#0f9367", "#3fd19d"),
    ("c3", "#a87b00", "#e3c04a"),
    ("c4", "#8a3fb5", "#cf96f5"),
    ("c5", "#c2357a", "#ff86ba"),
    ("c6", "#2b8ca3", "#6fd3e8"),
    ("c7", "#5f6b7a", "#b4bfcc"),
];

/// Colour, and text colour that is readable on it, for each of [`Layer::ALL`].
const LAYERS: [(&str, &str); 8] = [
    ("#e69f00", "#000"),
    ("#cc79a7", "#000"),
    ("#56b4e9", "#000"),
    ("#0072b2", "#fff"),
    ("#f0e442", "#000"),
    ("#009e73", "#000"),
    ("#d55e00", "#000"),
    ("#8c8c8c", "#000"),
];

/// Returns the part of the style sheet that defines the colours.
pub(crate) fn style() -> String {
    let light: String = THEME
        .iter()
        .map(|(name, light, _)| format!("--{name}:{light};"))
        .collect();
    let dark: String = THEME
        .iter()
        .map(|(name, _, dark)| format!("--{name}:{dark};"))
        .collect();
    let mut out = format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n\
         @media print{{:root,:root[data-theme]:root,:root:not([data-theme=light]){{color-scheme:light;{light}}}}}\n"
    );
    for index in 0..RUN_COLOURS {
        out.push_str(&format!(".c{index}{{color:var(--c{index})}}\n"));
    }
    for (index, (fill, ink)) in LAYERS.iter().enumerate() {
        out.push_str(&format!(
            ".l{index}{{fill:{fill};background:{fill}}}.i{index}{{fill:{ink}}}\n"
        ));
    }
    out
}

/// Number of colours for runs or carriers.
pub(crate) const RUN_COLOURS: usize = 8;

/// Returns the class of a carrier: its index among the carriers of the program that measured it. For older documents,
/// it is the index of the carrier within the document. A carrier whose index has no colour gets one that no other
/// carrier of the document has, as long as there are any.
pub(crate) fn of_carrier(document: &ResultDocument, flow: &FlowResult) -> usize {
    let mut carriers: Vec<(&str, usize)> = Vec::new();
    for flow in &document.flows {
        if !carriers.iter().any(|(name, _)| *name == flow.carrier) {
            let place = flow.carrier_index.map(usize::from);
            carriers.push((&flow.carrier, place.unwrap_or(carriers.len())));
        }
    }
    let own = carriers.iter().map(|&(_, place)| place);
    let mut free: Vec<usize> = (0..RUN_COLOURS)
        .filter(|colour| !own.clone().any(|place| place == *colour))
        .rev()
        .collect();
    for (name, place) in carriers {
        let colour = match place {
            0..RUN_COLOURS => place,
            _ => free.pop().unwrap_or(place % RUN_COLOURS),
        };
        if name == flow.carrier {
            return colour;
        }
    }
    0
}

/// Returns the classes of a layer and of the text on it. The style sheet gives an unknown layer the last colour of the
/// carriers.
pub(crate) fn of_layer(layer: Option<Layer>) -> (String, String) {
    match layer {
        Some(layer) => (format!("l{}", layer as u8), format!("i{}", layer as u8)),
        None => ("unknown".to_owned(), "i0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the relative luminance of `#rrggbb`, as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let full = match colour.len() {
            4 => colour
                .chars()
                .skip(1)
                .flat_map(|c| [c, c])
                .collect::<String>(),
            _ => colour[1..].to_owned(),
        };
        let channel = |at: usize| {
            let value = f64::from(
                u8::from_str_radix(&full[at..at + 2], 16).expect("two hexadecimal digits"),
            ) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn colour(name: &str) -> (&'static str, &'static str) {
        THEME
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|(_, light, dark)| (*light, *dark))
            .expect("a colour of the theme")
    }

    #[test]
    fn text_is_readable_on_its_ground_in_both_themes() {
        for (ink, ground) in [
            ("ink", "card"),
            ("ink", "page"),
            ("soft", "card"),
            ("soft", "page"),
            ("link", "card"),
            ("pass", "pass-back"),
            ("fail", "fail-back"),
            ("unproven", "unproven-back"),
            ("invalid", "invalid-back"),
            ("fail", "zone"),
        ] {
            let (ink, ground) = (colour(ink), colour(ground));
            assert!(
                contrast(ink.0, ground.0) >= 4.5,
                "{ink:?} on {ground:?} in the light"
            );
            assert!(
                contrast(ink.1, ground.1) >= 4.5,
                "{ink:?} on {ground:?} in the dark"
            );
        }
    }

    #[test]
    fn lines_stand_out_from_the_card_in_both_themes() {
        let card = colour("card");
        for index in 0..RUN_COLOURS {
            let line = colour(&format!("c{index}"));
            assert!(contrast(line.0, card.0) >= 3.0, "c{index} in the light");
            assert!(contrast(line.1, card.1) >= 3.0, "c{index} in the dark");
        }
    }

    #[test]
    fn words_on_layers_are_readable() {
        for (fill, ink) in LAYERS {
            assert!(contrast(fill, ink) >= 4.5, "{ink} on {fill}");
        }
    }
}
