//! All mutants of a file in one build: at each place, the program asks which mutant is chosen.
//!
//! A build for each mutant takes ten times as long as its tests. Here `a < b` becomes
//! `(if mutated(7) { a > b } else { a < b })`, so one build serves all mutants. The question shows, too, which tests reach
//! a mutant's place. A function loses its `const`, unless the
//! compiler calls it. Some mutants have no such form (those in a constant or in a chain of `let`), and some do not compile:
//! cargo-mutants builds these one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context, Result};
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A mutant as `cargo mutants --list --json` describes it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Mutant {
    /// With file, line and column.
    pub(super) name: String,
    pub(super) file: String,
    span: Extent,
    replacement: String,
    genre: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Extent {
    start: Place,
    end: Place,
}

/// Line and column (in characters), from 1.
#[derive(Clone, Debug, Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    /// Returns the position in octets.
    fn position(&self, text: &str) -> Option<usize> {
        let mut start = 0;
        let mut lines = text.split_inclusive('\n');
        for _ in 1..self.line {
            start += lines.next()?.len();
        }
        let line = lines.next()?;
        let ends = line.char_indices().map(|(position, _)| position);
        let column = ends.chain([line.len()]).nth(self.column - 1)?;
        Some(start + column)
    }
}

/// The name of the environment variable that chooses a mutant by its number; 0 and none choose none.
pub(super) const CHOSEN: &str = "DECKWATCH_MUTANT";

/// The name of the environment variable that names a file. The program appends the number of each mutant whose place
/// it reaches, once: four octets in the machine's order.
pub(super) const REACHED: &str = "DECKWATCH_MUTANTS_REACHED";

/// What a crate's `lib.rs` gets at its end, for mutants whose numbers are at most `last`.
pub(super) fn chooser(last: usize) -> String {
    format!(
        r#"
#[doc(hidden)]
pub fn mutated(number: u32) -> bool {{
    use std::io::Write as _;
    use std::sync::atomic::{{AtomicBool, Ordering}};
    static CHOSEN: std::sync::OnceLock<(u32, Option<std::fs::File>)> = std::sync::OnceLock::new();
    static REACHED: [AtomicBool; {last} + 1] = [const {{ AtomicBool::new(false) }}; {last} + 1];
    let (chosen, notes) = CHOSEN.get_or_init(|| {{
        let chosen = std::env::var("{CHOSEN}").ok().and_then(|text| text.parse().ok());
        let open = |path| std::fs::File::options().append(true).create(true).open(path).ok();
        (chosen.unwrap_or(0), std::env::var_os("{REACHED}").and_then(open))
    }});
    if let Some(mut notes) = notes.as_ref() {{
        if !REACHED[number as usize].swap(true, Ordering::Relaxed) {{
            let _ = notes.write_all(&number.to_ne_bytes());
        }}
    }}
    *chosen == number
}}
"#
    )
}

/// Returns the text with all mutants in it, each by its number, and the numbers of those that have a place. Functions
/// other than the named ones lose their `const`.
pub(super) fn with_all(
    text: &str,
    mutants: &[(u32, &Mutant)],
    constant: &BTreeSet<String>,
) -> Result<(String, BTreeSet<u32>)> {
    let file = syn::parse_file(text).context("cannot parse")?;
    let mut places = Places {
        constant: constant.clone(),
        ..Places::default()
    };
    places.visit_file(&file);
    let mut edits: BTreeMap<(usize, bool, std::cmp::Reverse<usize>), Edit> = BTreeMap::new();
    for range in &places.consts {
        let key = (range.start, true, std::cmp::Reverse(range.end));
        edits.insert(key, Edit::Without(range.clone()));
    }
    let mut placed = BTreeSet::new();
    for &(number, mutant) in mutants {
        let ends = (
            mutant.span.start.position(text),
            mutant.span.end.position(text),
        );
        let (Some(start), Some(end)) = ends else {
            continue;
        };
        let Some(edit) = places.edit(text, number, mutant, start..end) else {
            continue;
        };
        let range = edit.range();
        let key = (range.start, !range.is_empty(), std::cmp::Reverse(range.end));
        edits
            .entry(key)
            .and_modify(|known| known.join(&edit))
            .or_insert(edit);
        placed.insert(number);
    }
    let edits: Vec<Edit> = edits.into_values().collect();
    Ok((render(text, 0..text.len(), &edits), placed))
}

/// The mutants to which a compiler's complaint belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Concerned {
    /// The complaint is about the code of this mutant.
    One(u32),
    /// It is about code around or near these.
    Some(BTreeSet<u32>),
}

/// Returns the mutants to which a compiler's complaint about a range of the text belongs.
pub(super) fn concerned(text: &str, complaint: &Range<usize>) -> Concerned {
    let marks: Vec<(usize, usize, u32)> = text
        .match_indices("/*<")
        .filter_map(|(start, _)| {
            let number: u32 = text[start + 3..].split_once("*/")?.0.parse().ok()?;
            let end = start + text[start..].find(&format!("/*{number}>*/"))?;
            Some((start, end, number))
        })
        .collect();
    let inside =
        |&&(start, end, _): &&(usize, usize, u32)| start <= complaint.start && complaint.end <= end;
    if let Some(&(.., number)) = marks.iter().find(inside) {
        return Concerned::One(number);
    }
    let touched = marks
        .iter()
        .filter(|(start, end, _)| *start < complaint.end && complaint.start < *end);
    let touched: BTreeSet<u32> = touched.map(|&(.., number)| number).collect();
    if !touched.is_empty() {
        return Concerned::Some(touched);
    }
    let before = marks.iter().rfind(|(_, end, _)| *end <= complaint.start);
    let after = marks.iter().find(|(start, ..)| *start >= complaint.end);
    let near = [before, after].into_iter().flatten();
    Concerned::Some(near.map(|&(.., number)| number).collect())
}

/// A change of the text.
enum Edit {
    /// Other texts in place of an expression.
    Instead {
        range: Range<usize>,
        others: Vec<(u32, String)>,
    },
    /// Text in front of a position.
    Before { position: usize, text: String },
    /// Nothing.
    Without(Range<usize>),
}

impl Edit {
    fn range(&self) -> Range<usize> {
        match self {
            Self::Instead { range, .. } => range.clone(),
            Self::Before { position, .. } => *position..*position,
            Self::Without(range) => range.clone(),
        }
    }

    /// Adds the change of another mutant of the same range.
    fn join(&mut self, more: &Self) {
        match (self, more) {
            (Self::Instead { others, .. }, Self::Instead { others: more, .. }) => {
                others.extend_from_slice(more);
            }
            (Self::Before { text, .. }, Self::Before { text: more, .. }) => text.push_str(more),
            _ => unreachable!("an expression is not empty"),
        }
    }
}

fn marked(number: u32, text: &str) -> String {
    format!("/*<{number}*/ {text} /*{number}>*/")
}

/// Renders a range; `edits` are those in it, an outer one in front of its inner ones.
fn render(text: &str, range: Range<usize>, edits: &[Edit]) -> String {
    let mut rendered = String::new();
    let (mut position, mut next) = (range.start, 0);
    while let Some(edit) = edits.get(next) {
        let changed = edit.range();
        rendered.push_str(&text[position..changed.start]);
        let rest = &edits[next + 1..];
        let inner = rest
            .iter()
            .take_while(|inner| inner.range().start < changed.end)
            .count();
        match edit {
            Edit::Before { text, .. } => rendered.push_str(text),
            Edit::Without(_) => {}
            Edit::Instead { others, .. } => {
                rendered.push('(');
                for (number, other) in others {
                    let other = marked(*number, other);
                    rendered.push_str(&format!("if crate::mutated({number}) {{ {other} }} else "));
                }
                let unchanged = render(text, changed.clone(), &rest[..inner]);
                rendered.push_str(&format!("{{ {unchanged} }})"));
            }
        }
        position = changed.end;
        next += 1 + inner;
    }
    rendered.push_str(&text[position..range.end]);
    rendered
}

/// The places of a file at which a mutant can be chosen at run time.
#[derive(Default)]
struct Places {
    /// By the start of what the mutant replaces: the expression to choose.
    expressions: BTreeMap<(&'static str, usize), Range<usize>>,
    /// By the start of a match arm: its arrow.
    arrows: BTreeMap<usize, usize>,
    /// By the start of its first statement: the body of a function.
    bodies: BTreeSet<usize>,
    /// The functions that stay `const`, by name.
    constant: BTreeSet<String>,
    /// The words `const` of other functions.
    consts: Vec<Range<usize>>,
    /// The outermost of the binary expressions that are operands of each other.
    chain: Option<Range<usize>>,
}

impl Places {
    fn edit(
        &self,
        text: &str,
        number: u32,
        mutant: &Mutant,
        replaced: Range<usize>,
    ) -> Option<Edit> {
        let start = replaced.start;
        match mutant.genre.as_str() {
            "FnValue" => {
                let result = marked(number, &format!("return {};", mutant.replacement));
                self.bodies.contains(&start).then(|| Edit::Before {
                    position: start,
                    text: format!("if crate::mutated({number}) {{ {result} }} "),
                })
            }
            "MatchArm" => self.arrows.get(&start).map(|&position| Edit::Before {
                position,
                text: marked(number, &format!("if !crate::mutated({number})")),
            }),
            genre => {
                let key = GENRES.into_iter().find(|known| *known == genre)?;
                let range = self.expressions.get(&(key, start))?.clone();
                let (before, after) = (&text[range.start..start], &text[replaced.end..range.end]);
                let other = format!("{before}{}{after}", mutant.replacement);
                Some(Edit::Instead {
                    range,
                    others: vec![(number, other)],
                })
            }
        }
    }

    fn add(&mut self, genre: &'static str, start: usize, range: Range<usize>) {
        self.expressions.insert((genre, start), range);
    }

    /// Returns true if a function asks which mutant is chosen. One that stays `const` cannot.
    fn can_ask(&mut self, signature: &syn::Signature) -> bool {
        let Some(word) = &signature.constness else {
            return true;
        };
        let can = !self.constant.contains(&signature.ident.to_string());
        if can {
            self.consts.push(word.span().byte_range());
        }
        can
    }

    fn add_body(&mut self, block: &syn::Block) {
        if let Some(first) = block.stmts.first() {
            self.bodies.insert(first.span().byte_range().start);
        }
    }
}

const BINARY: &str = "BinaryOperator";
const UNARY: &str = "UnaryOperator";
const GUARD: &str = "MatchArmGuard";
const FIELD: &str = "StructField";
const GENRES: [&str; 4] = [BINARY, UNARY, GUARD, FIELD];

/// Returns true if the expression is a chain of `let`, which must stay the condition itself.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.can_ask(&item.sig) {
            self.add_body(&item.block);
            visit::visit_block(self, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.can_ask(&item.sig) {
            self.add_body(&item.block);
            visit::visit_block(self, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add_body(block);
            visit::visit_block(self, block);
        }
    }

    // What is computed while compiling cannot ask.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        let chain = self.chain.take();
        if let syn::Expr::Binary(binary) = expression {
            let whole = chain.clone().unwrap_or(binary.span().byte_range());
            if !has_let(expression) {
                let operator = binary.op.span().byte_range();
                self.add(BINARY, operator.start, whole.clone());
                self.chain = Some(whole.clone());
            }
            self.visit_expr(&binary.left);
            self.chain = (!has_let(expression)).then_some(whole);
            self.visit_expr(&binary.right);
        } else {
            visit::visit_expr(self, expression);
        }
        self.chain = chain;
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let range = unary.span().byte_range();
        self.add(UNARY, range.start, range);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let syn::Pat::Guard(guarded) = &arm.pat {
            if !has_let(&guarded.guard) {
                let range = guarded.guard.span().byte_range();
                self.add(GUARD, range.start, range);
            }
            self.visit_expr(&guarded.guard);
        } else {
            let arrow = arm.fat_arrow_token.span().byte_range().start;
            self.arrows.insert(arm.span().byte_range().start, arrow);
        }
        self.visit_expr(&arm.body);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        let range = literal.span().byte_range();
        for field in &literal.fields {
            self.add(FIELD, field.span().byte_range().start, range.clone());
        }
        visit::visit_expr_struct(self, literal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a mutant that replaces the text between the two marks `~`, and the text without them.
    fn mutant(marked: &str, genre: &str, replacement: &str) -> (String, Mutant) {
        let parts: Vec<&str> = marked.split('~').collect();
        let place = |before: &str| Place {
            line: 1 + before.matches('\n').count(),
            column: 1 + before.rsplit('\n').next().unwrap().chars().count(),
        };
        let span = Extent {
            start: place(parts[0]),
            end: place(&parts[..2].concat()),
        };
        let mutant = Mutant {
            name: String::new(),
            file: String::new(),
            span,
            replacement: replacement.to_owned(),
            genre: genre.to_owned(),
        };
        (parts.concat(), mutant)
    }

    fn changed(marked: &str, genre: &str, replacement: &str) -> Option<String> {
        let (text, mutant) = mutant(marked, genre, replacement);
        let constant = BTreeSet::from(["kept".to_owned()]);
        let (changed, placed) = with_all(&text, &[(7, &mutant)], &constant).unwrap();
        placed.contains(&7).then_some(changed)
    }

    #[test]
    fn an_operator_is_replaced_in_the_whole_of_its_chain() {
        let text = "fn f() -> bool { \"é\"; a ~&&~ b || g(c) }";
        assert_eq!(
            changed(text, BINARY, "||").as_deref(),
            Some(
                "fn f() -> bool { \"é\"; (if crate::mutated(7) { /*<7*/ a || b || g(c) /*7>*/ } else { a && b || g(c) }) }"
            )
        );
        let text = "fn f() {\n    a = ~-~b;\n}";
        assert_eq!(
            changed(text, UNARY, "").as_deref(),
            Some("fn f() {\n    a = (if crate::mutated(7) { /*<7*/ b /*7>*/ } else { -b });\n}")
        );
    }

    #[test]
    fn arms_guards_fields_and_bodies_have_a_place() {
        let arm = "fn f() { match a { ~1 => b,~ _ => c } }";
        assert_eq!(
            changed(arm, "MatchArm", "").as_deref(),
            Some("fn f() { match a { 1 /*<7*/ if !crate::mutated(7) /*7>*/=> b, _ => c } }")
        );
        let guard = "fn f() { match a { n if ~n < 1~ => b, _ => c } }";
        assert!(
            changed(guard, GUARD, "true")
                .unwrap()
                .contains("/*<7*/ true /*7>*/")
        );
        let field = "fn f() { A { ~b: 1,~ ..c } }";
        assert!(
            changed(field, FIELD, "")
                .unwrap()
                .contains("/*<7*/ A {  ..c } /*7>*/")
        );
        assert_eq!(
            changed("fn f() -> u8 { ~a.b()~ }", "FnValue", "0").as_deref(),
            Some("fn f() -> u8 { if crate::mutated(7) { /*<7*/ return 0; /*7>*/ } a.b() }")
        );
    }

    #[test]
    fn what_is_computed_while_compiling_is_left_alone() {
        assert_eq!(changed("const A: u8 = b ~+~ c;", BINARY, "-"), None);
        assert_eq!(changed("const fn kept() { b ~+~ c }", BINARY, "-"), None);
        assert_eq!(
            changed("pub const fn f() { ~-~b }", UNARY, "").as_deref(),
            Some("pub  fn f() { (if crate::mutated(7) { /*<7*/ b /*7>*/ } else { -b }) }")
        );
        let chain = "fn f() { if let A = b ~&&~ c {} }";
        assert_eq!(changed(chain, BINARY, "||"), None);
        let in_chain = "fn f() { if let A = b && c ~<~ d {} }";
        assert!(changed(in_chain, BINARY, ">").is_some());
    }

    #[test]
    fn a_complaint_belongs_to_the_mutant_around_it_or_the_nearest() {
        let text = "aa /*<1*/ bb /*1>*/ cc /*<2*/ dd /*2>*/ ee";
        let at = |word: &str| {
            let start = text.find(word).unwrap();
            concerned(text, &(start..start + 2))
        };
        let some = |numbers: &[u32]| Concerned::Some(numbers.iter().copied().collect());
        assert_eq!(at("bb"), Concerned::One(1));
        assert_eq!(at("cc"), some(&[1, 2]));
        assert_eq!(at("ee"), some(&[2]));
        assert_eq!(concerned(text, &(0..text.len())), some(&[1, 2]));
    }

    #[test]
    fn several_mutants_of_one_place_are_asked_for_in_turn() {
        let (text, first) = mutant("fn f() { (a ~<~ b) + c }", BINARY, ">");
        let (_, second) = mutant("fn f() { (a ~<~ b) + c }", BINARY, "==");
        let (_, outer) = mutant("fn f() { (a < b) ~+~ c }", BINARY, "-");
        let mutants = [(1, &first), (2, &second), (3, &outer)];
        let (changed, placed) = with_all(&text, &mutants, &BTreeSet::new()).unwrap();
        assert_eq!(placed.len(), 3);
        assert_eq!(
            changed,
            "fn f() { (if crate::mutated(3) { /*<3*/ (a < b) - c /*3>*/ } else { \
             ((if crate::mutated(1) { /*<1*/ a > b /*1>*/ } else if crate::mutated(2) { /*<2*/ a == b /*2>*/ } \
             else { a < b })) + c }) }"
        );
    }
}
