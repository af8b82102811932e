//! A drawing in SVG. It contains only shapes and their classes; the page's style sheet defines colours and line widths.

use std::fmt::Write;

use deckwatch_text::is_shown;

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A drawing that is being made.
#[derive(Debug)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// Makes an empty drawing of `width` by `height` pixels. `label` describes it in words.
    pub(crate) fn new(width: f64, height: f64, class: &str, label: &str) -> Self {
        let mut svg = Self { out: String::new() };
        let (w, h) = (px(width), px(height));
        let _ = write!(
            svg.out,
            r#"<svg class="{class}" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label=""#
        );
        svg.escaped(label);
        svg.out.push_str("\">");
        svg
    }

    /// Adds a straight line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.out,
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            px(from.0),
            px(from.1),
            px(to.0),
            px(to.1)
        );
    }

    /// Adds a rectangle. A title that is not empty is shown when the user points at it.
    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let _ = write!(
            self.out,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}""#,
            px(at.0),
            px(at.1),
            px(size.0.max(0.0)),
            px(size.1.max(0.0))
        );
        self.titled("rect", title);
    }

    /// Adds a rectangle of the given opacity, in hundredths.
    pub(crate) fn shade(&mut self, class: &str, at: (f64, f64), size: (f64, f64), hundredths: u32) {
        let _ = write!(
            self.out,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"/>"#,
            px(at.0),
            px(at.1),
            px(size.0),
            px(size.1),
            f64::from(hundredths.min(100)) / 100.0
        );
    }

    /// Adds a dot.
    pub(crate) fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, title: &str) {
        let _ = write!(
            self.out,
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}""#,
            px(at.0),
            px(at.1),
            px(radius)
        );
        self.titled("circle", title);
    }

    /// Adds separate straight lines as one element.
    pub(crate) fn strokes(
        &mut self,
        class: &str,
        strokes: impl Iterator<Item = ((f64, f64), (f64, f64))>,
    ) {
        let mut path = String::new();
        for (from, to) in strokes {
            let (x, y) = (px(from.0), px(from.1));
            let _ = write!(path, "M{x} {y}L{} {}", px(to.0), px(to.1));
        }
        if !path.is_empty() {
            let _ = write!(self.out, r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// Adds a line through `points`. `label` is its name for the page's script.
    pub(crate) fn trace(&mut self, class: &str, label: &str, points: &[(f64, f64)]) {
        let Some((first, rest)) = points.split_first() else {
            return;
        };
        let _ = write!(self.out, r#"<path class="{class}""#);
        if !label.is_empty() {
            self.out.push_str(r#" data-label=""#);
            self.escaped(label);
            self.out.push('"');
        }
        let _ = write!(self.out, r#" d="M{} {}L"#, px(first.0), px(first.1));
        for (index, point) in rest.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            let _ = write!(self.out, "{space}{} {}", px(point.0), px(point.1));
        }
        if rest.is_empty() {
            let _ = write!(self.out, "{} {}", px(first.0), px(first.1));
        }
        self.out.push_str("\"/>");
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        let _ = write!(
            self.out,
            r#"<text class="{class}" x="{}" y="{}""#,
            px(at.0),
            px(at.1)
        );
        if anchor != Anchor::Start {
            let _ = write!(self.out, r#" text-anchor="{}""#, anchor.name());
        }
        self.out.push('>');
        self.escaped(text);
        self.out.push_str("</text>");
    }

    /// Adds an empty group that carries data for the page's script.
    pub(crate) fn data(&mut self, json: &serde_json::Value) {
        self.out.push_str(r#"<g class="axes" data-axes=""#);
        self.escaped(&json.to_string());
        self.out.push_str("\"></g>");
    }

    /// Returns the finished drawing.
    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</svg>");
        self.out
    }

    fn titled(&mut self, element: &str, title: &str) {
        if title.is_empty() {
            self.out.push_str("/>");
        } else {
            self.out.push_str("><title>");
            self.escaped(title);
            let _ = write!(self.out, "</title></{element}>");
        }
    }

    fn escaped(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                letter if is_shown(letter) => self.out.push(letter),
                _ => self.out.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }
}

/// Returns the maximum width of a text of the figures' size in pixels, for the widest of the usual fonts, in bold.
pub(crate) fn text_width(text: &str) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | '.' | ',' | ':' | '\'' | '(' | ')' | ' '
        | '\u{202f}' => 4.6,
        'm' | 'w' | 'M' | 'W' | '%' | '→' | '…' => 11.5,
        letter if letter.is_uppercase() => 8.8,
        _ => 7.8,
    };
    text.chars().map(letter).sum()
}

/// Formats a coordinate with at most one decimal, as short as possible.
fn px(value: f64) -> String {
    let tenths = (value * 10.0).round() as i64;
    if tenths % 10 == 0 {
        (tenths / 10).to_string()
    } else {
        format!(
            "{}{}.{}",
            if tenths < 0 { "-" } else { "" },
            (tenths / 10).abs(),
            (tenths % 10).abs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped_everywhere() {
        let hostile = r#"</svg><script>alert("x")</script>'&"#;
        let mut svg = Svg::new(1.0, 1.0, "c", hostile);
        svg.text("t", Anchor::End, (0.0, 0.0), hostile);
        svg.rect("r", (0.0, 0.0), (1.0, 1.0), hostile);
        svg.trace("p", hostile, &[(0.0, 0.0)]);
        svg.data(&serde_json::json!({ "label": hostile }));
        let out = svg.finish();
        assert!(!out.contains("<script"), "{out}");
        assert_eq!(out.matches("</svg>").count(), 1);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(px(12.0), "12");
        assert_eq!(px(12.34), "12.3");
        assert_eq!(px(-0.26), "-0.3");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
    }
}
