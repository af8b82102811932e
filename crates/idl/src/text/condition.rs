//! Evaluates the expression of an `#if`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::NESTING_MAX;
use crate::text::diagnostic::quoted;
use crate::text::lexer::Kind;
use crate::text::preprocess::Token;
use crate::text::source::Sources;

/// The unread rest of the expression, and the macros that its names refer to.
pub(crate) struct Condition<'a> {
    pub(crate) tokens: &'a [Token],
    pub(crate) sources: &'a Sources,
    pub(crate) macros: &'a HashMap<String, Arc<[Token]>>,
}

impl Condition<'_> {
    /// Evaluates the whole expression.
    pub(crate) fn value(&mut self) -> Result<i64, String> {
        let value = self.binary(0, 0)?;
        match self.tokens.first() {
            None => Ok(value),
            Some(token) => Err(format!(
                "{} does not belong into a condition",
                quoted(self.sources.text(token.span))
            )),
        }
    }

    fn binary(&mut self, level: usize, depth: usize) -> Result<i64, String> {
        if level == LEVELS {
            return self.unary(depth);
        }
        let mut left = self.binary(level + 1, depth)?;
        while let Some((operator, count)) = self.operator(level) {
            self.tokens = &self.tokens[count..];
            let right = self.binary(level + 1, depth)?;
            left = apply(operator, left, right);
        }
        Ok(left)
    }

    /// Returns the next operator, if it is of this precedence level, and its number of tokens.
    fn operator(&self, level: usize) -> Option<(&'static str, usize)> {
        let kind = |index: usize| self.tokens.get(index).map(|token| token.kind);
        let adjoins = self
            .tokens
            .get(1)
            .is_some_and(|second| second.span.start == self.tokens[0].span.end);
        let second = kind(1).filter(|_| adjoins);
        match (level, kind(0)?, second) {
            (0, Kind::Bar, Some(Kind::Bar)) => Some(("||", 2)),
            (1, Kind::Ampersand, Some(Kind::Ampersand)) => Some(("&&", 2)),
            (2, Kind::Equals, Some(Kind::Equals)) => Some(("==", 2)),
            (2, Kind::Bang, Some(Kind::Equals)) => Some(("!=", 2)),
            (3, Kind::AngleOpen, Some(Kind::Equals)) => Some(("<=", 2)),
            (3, Kind::AngleClose, Some(Kind::Equals)) => Some((">=", 2)),
            (3, Kind::AngleOpen, _) => Some(("<", 1)),
            (3, Kind::AngleClose, _) => Some((">", 1)),
            (4, Kind::Plus, _) => Some(("+", 1)),
            (4, Kind::Minus, _) => Some(("-", 1)),
            (5, Kind::Star, _) => Some(("*", 1)),
            _ => None,
        }
    }

    fn unary(&mut self, depth: usize) -> Result<i64, String> {
        if depth > NESTING_MAX {
            return Err("this condition is nested too deeply".into());
        }
        let [token, rest @ ..] = self.tokens else {
            return Err("expected a condition".into());
        };
        self.tokens = rest;
        let text = self.sources.text(token.span);
        match token.kind {
            Kind::Bang => Ok(i64::from(self.unary(depth + 1)? == 0)),
            Kind::Minus => Ok(self.unary(depth + 1)?.wrapping_neg()),
            Kind::ParenOpen => {
                let value = self.binary(0, depth + 1)?;
                self.close()?;
                Ok(value)
            }
            Kind::Integer => integer(text),
            Kind::Word if text == "defined" => self.defined(),
            Kind::Word => match self.macros.get(text).map(|body| &**body) {
                Some([value]) if value.kind == Kind::Integer => {
                    integer(self.sources.text(value.span))
                }
                Some([]) => Err(format!("`{text}` is defined without a value")),
                Some(_) => Err(format!("`{text}` is not defined as a number")),
                None => Ok(0),
            },
            _ => Err(format!("{} does not belong into a condition", quoted(text))),
        }
    }

    fn defined(&mut self) -> Result<i64, String> {
        let open = self
            .tokens
            .first()
            .is_some_and(|token| token.kind == Kind::ParenOpen);
        let name = self
            .tokens
            .get(usize::from(open))
            .filter(|token| token.kind == Kind::Word);
        let name = name.ok_or("expected a name after `defined`")?;
        let value = self.macros.contains_key(self.sources.text(name.span));
        self.tokens = &self.tokens[1 + usize::from(open)..];
        if open {
            self.close()?;
        }
        Ok(i64::from(value))
    }

    fn close(&mut self) -> Result<(), String> {
        match self.tokens {
            [token, rest @ ..] if token.kind == Kind::ParenClose => {
                self.tokens = rest;
                Ok(())
            }
            _ => Err("expected `)` in this condition".into()),
        }
    }
}

/// Number of precedence levels of the binary operators.
const LEVELS: usize = 6;

fn apply(operator: &str, left: i64, right: i64) -> i64 {
    match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        _ => left.wrapping_mul(right),
    }
}

fn integer(text: &str) -> Result<i64, String> {
    let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16),
        None if text.len() > 1 && text.starts_with('0') => i64::from_str_radix(&text[1..], 8),
        None => text.parse(),
    };
    value.map_err(|_| format!("{} is not a number", quoted(text)))
}
