//! Recursive descent: type expressions and constant expressions.

use crate::limits::OPERATORS_MAX;
use crate::model::Basic;
use crate::parse::ast::{Expr, ExprKind, TypeKind, TypeSpec};
use crate::parse::{Parsed, Parser};
use crate::text::diagnostic::Diagnostic;
use crate::text::lexer::Kind;
use crate::text::literal::{Literal, literal};
use crate::text::operator::{Binary, Unary};
use crate::text::words::{self, Word};

impl Parser<'_> {
    /// Parses a type.
    pub(crate) fn type_spec(&mut self) -> Parsed<TypeSpec> {
        let start = self.token.span;
        let kind = self.nested(Self::type_kind)?;
        Ok(TypeSpec {
            kind,
            span: self.since(start),
        })
    }

    fn type_kind(&mut self) -> Parsed<TypeKind> {
        let start = self.token.span;
        if self.token.kind == Kind::Scope {
            return Ok(TypeKind::Named(self.scoped_name()?));
        }
        if self.token.kind != Kind::Word {
            return Err(self.report("a type"));
        }
        let Some(word) = words::keyword(self.text()) else {
            return Ok(TypeKind::Named(self.scoped_name()?));
        };
        let basic = match word {
            Word::Unsigned | Word::Long | Word::Short => {
                return self.integer_type().map(TypeKind::Basic);
            }
            Word::Float => Basic::Float,
            Word::Double => Basic::Double,
            Word::Boolean => Basic::Boolean,
            Word::Char => Basic::Char,
            Word::WideChar => Basic::WideChar,
            Word::Octet => Basic::Octet,
            Word::Any => Basic::Any,
            Word::Object => Basic::Object,
            Word::ValueBase => Basic::ValueBase,
            Word::String => return self.string_type(TypeKind::String),
            Word::WideString => return self.string_type(TypeKind::WideString),
            Word::Sequence => return self.sequence_type(),
            Word::Fixed => return self.fixed_type(),
            Word::Struct | Word::Union | Word::Enum => {
                let kind = match word {
                    Word::Struct => self.structure()?,
                    Word::Union => self.union()?,
                    _ => self.enumeration()?,
                };
                let item = crate::parse::ast::Item {
                    kind,
                    span: self.since(start),
                };
                return Ok(TypeKind::Defined(Box::new(item)));
            }
            Word::Void => {
                let error = Diagnostic::new(start, "`void` is only the result of an operation");
                return Err(self.error(error));
            }
            Word::Component
            | Word::Eventtype
            | Word::Factory
            | Word::Getraises
            | Word::Home
            | Word::Import
            | Word::Setraises
            | Word::Typeid
            | Word::Typeprefix => return Ok(TypeKind::Named(self.scoped_name()?)),
            _ => return Err(self.report("a type")),
        };
        self.advance();
        Ok(TypeKind::Basic(basic))
    }

    /// Parses an integer type or `long double`.
    fn integer_type(&mut self) -> Parsed<Basic> {
        let unsigned = self.eat_word(Word::Unsigned);
        if self.at_word(Word::Short) {
            self.advance();
            return Ok(if unsigned {
                Basic::UShort
            } else {
                Basic::Short
            });
        }
        if !self.at_word(Word::Long) {
            return Err(self.report("`short` or `long`"));
        }
        self.advance();
        if self.eat_word(Word::Long) {
            return Ok(if unsigned {
                Basic::ULongLong
            } else {
                Basic::LongLong
            });
        }
        if !unsigned && self.eat_word(Word::Double) {
            return Ok(Basic::LongDouble);
        }
        Ok(if unsigned { Basic::ULong } else { Basic::Long })
    }

    fn string_type(&mut self, make: fn(Option<Box<Expr>>) -> TypeKind) -> Parsed<TypeKind> {
        self.advance();
        if !self.eat(Kind::AngleOpen) {
            return Ok(make(None));
        }
        let bound = self.bound()?;
        self.close_angle()?;
        Ok(make(Some(Box::new(bound))))
    }

    fn sequence_type(&mut self) -> Parsed<TypeKind> {
        self.advance();
        self.expect(Kind::AngleOpen)?;
        let element = self.type_spec()?;
        let bound = if self.eat(Kind::Comma) {
            Some(Box::new(self.bound()?))
        } else {
            None
        };
        self.close_angle()?;
        Ok(TypeKind::Sequence(Box::new(element), bound))
    }

    fn fixed_type(&mut self) -> Parsed<TypeKind> {
        self.advance();
        if !self.eat(Kind::AngleOpen) {
            return Ok(TypeKind::Fixed(None));
        }
        let digits = self.bound()?;
        self.expect(Kind::Comma)?;
        let scale = self.bound()?;
        self.close_angle()?;
        Ok(TypeKind::Fixed(Some(Box::new((digits, scale)))))
    }

    fn close_angle(&mut self) -> Parsed<()> {
        if !matches!(self.token.kind, Kind::AngleClose | Kind::ShiftRight) {
            return Err(self.report("`>`"));
        }
        self.split_shift();
        Ok(())
    }

    /// Parses an expression between angle brackets, where `>>` must be in parentheses.
    fn bound(&mut self) -> Parsed<Expr> {
        self.binary(0, &mut 0, true)
    }

    /// Parses a constant expression.
    pub(crate) fn expression(&mut self) -> Parsed<Expr> {
        self.binary(0, &mut 0, false)
    }

    fn binary(&mut self, level: usize, operators: &mut usize, in_angles: bool) -> Parsed<Expr> {
        let Some(known) = LEVELS.get(level) else {
            return self.unary(operators);
        };
        let mut left = self.binary(level + 1, operators, in_angles)?;
        loop {
            let kind = self.token.kind;
            let Some((_, operator)) = known.iter().find(|(operator, _)| *operator == kind) else {
                return Ok(left);
            };
            if in_angles && kind == Kind::ShiftRight {
                return Ok(left);
            }
            self.count(operators)?;
            self.advance();
            let right = self.binary(level + 1, operators, in_angles)?;
            let span = left.span.to(right.span);
            left = Expr {
                kind: ExprKind::Binary(*operator, Box::new(left), Box::new(right)),
                span,
            };
        }
    }

    fn count(&mut self, operators: &mut usize) -> Parsed<()> {
        *operators += 1;
        if *operators <= OPERATORS_MAX {
            return Ok(());
        }
        let text = format!("this expression has more than {OPERATORS_MAX} operators");
        Err(self.error(Diagnostic::new(self.token.span, text)))
    }

    fn unary(&mut self, operators: &mut usize) -> Parsed<Expr> {
        let start = self.token.span;
        let operator = match self.token.kind {
            Kind::Minus => Unary::Minus,
            Kind::Plus => Unary::Plus,
            Kind::Tilde => Unary::Complement,
            _ => return self.primary(operators),
        };
        self.advance();
        let operand = self.nested(|parser| parser.unary(operators))?;
        Ok(Expr {
            span: start.to(operand.span),
            kind: ExprKind::Unary(operator, Box::new(operand)),
        })
    }

    fn primary(&mut self, operators: &mut usize) -> Parsed<Expr> {
        let start = self.token.span;
        let kind = match self.token.kind {
            Kind::ParenOpen => {
                self.advance();
                let inner = self.nested(|parser| parser.binary(0, operators, false))?;
                self.expect(Kind::ParenClose)?;
                return Ok(Expr {
                    kind: inner.kind,
                    span: self.since(start),
                });
            }
            Kind::Scope => ExprKind::Name(self.scoped_name()?),
            Kind::Word => match words::keyword(self.text()) {
                Some(Word::True) => {
                    self.advance();
                    ExprKind::Literal(Literal::Boolean(true))
                }
                Some(Word::False) => {
                    self.advance();
                    ExprKind::Literal(Literal::Boolean(false))
                }
                _ => ExprKind::Name(self.scoped_name()?),
            },
            _ => ExprKind::Literal(self.literal()?),
        };
        Ok(Expr {
            kind,
            span: self.since(start),
        })
    }

    /// Parses a literal. Adjacent string literals are joined.
    fn literal(&mut self) -> Parsed<Literal> {
        let kind = self.token.kind;
        let known = [
            Kind::Integer,
            Kind::Float,
            Kind::Fixed,
            Kind::Char,
            Kind::WideChar,
            Kind::String,
            Kind::WideString,
        ];
        if !known.contains(&kind) {
            return Err(self.report("a constant expression"));
        }
        let mut value = self.one_literal()?;
        while self.token.kind == kind && matches!(kind, Kind::String | Kind::WideString) {
            let more = self.one_literal()?;
            if let (
                Literal::String(text) | Literal::WideString(text),
                Literal::String(more) | Literal::WideString(more),
            ) = (&mut value, more)
            {
                text.push_str(&more);
            }
        }
        Ok(value)
    }

    fn one_literal(&mut self) -> Parsed<Literal> {
        let span = self.token.span;
        match literal(self.token.kind, self.text()) {
            Ok(value) => {
                self.advance();
                Ok(value)
            }
            Err(message) => Err(self.error(Diagnostic::new(span, message))),
        }
    }

    /// Parses a string literal.
    pub(crate) fn string(&mut self) -> Parsed<String> {
        if self.token.kind != Kind::String {
            return Err(self.report("a string"));
        }
        match self.literal()? {
            Literal::String(text) => Ok(text),
            _ => Err(self.report("a string")),
        }
    }
}

/// Binary operators by precedence, the lowest first.
const LEVELS: [&[(Kind, Binary)]; 6] = [
    &[(Kind::Bar, Binary::Or)],
    &[(Kind::Caret, Binary::Xor)],
    &[(Kind::Ampersand, Binary::And)],
    &[
        (Kind::ShiftLeft, Binary::ShiftLeft),
        (Kind::ShiftRight, Binary::ShiftRight),
    ],
    &[(Kind::Plus, Binary::Add), (Kind::Minus, Binary::Subtract)],
    &[
        (Kind::Star, Binary::Multiply),
        (Kind::Slash, Binary::Divide),
        (Kind::Percent, Binary::Remainder),
    ],
];
