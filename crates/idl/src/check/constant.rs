//! Checks constants and unions, which need the values of expressions.

use std::collections::HashMap;

use crate::check::Checker;
use crate::check::budget::Budget;
use crate::check::scope::Target;
use crate::model::fixed::Decimal;
use crate::model::value::{self, Value};
use crate::model::{Basic, Case, DefId, DefinitionKind, Type, resolve};
use crate::parse::ast::{Case as AstCase, Expr, ExprKind, Name, TypeKind, TypeSpec};
use crate::text::diagnostic::Diagnostic;
use crate::text::source::Span;

impl Checker<'_> {
    pub(crate) fn constant(
        &mut self,
        spec: &TypeSpec,
        name: &Name,
        expression: &Expr,
        whole: Span,
    ) {
        // A constant of type `fixed` takes its digits and scale from the value.
        let bare = matches!(spec.kind, TypeKind::Fixed(None));
        let ty = if bare { None } else { self.type_of(spec) };
        if ty.is_none() && !bare {
            return;
        }
        let resolved = ty.as_ref().map(|ty| resolve(&self.definitions, ty).clone());
        let target = match &resolved {
            Some(Type::Basic(basic)) => Some(*basic),
            _ => None,
        };
        let checked = self
            .evaluate(expression, target)
            .and_then(|value| match &resolved {
                Some(resolved) => self.coerce(value, resolved, expression.span),
                None => Ok(value),
            });
        match checked {
            Ok(value) => {
                if let Value::String(text) | Value::WideString(text) = &value
                    && !self.take(Budget::Constants, text.len(), expression.span)
                {
                    return;
                }
                let ty = match (ty, &value) {
                    (Some(ty), _) => ty,
                    (None, Value::Fixed(value)) => fixed_type(value),
                    (None, other) => {
                        let text =
                            format!("expected a fixed-point number, found {}", other.kind_name());
                        return self.error(Diagnostic::new(expression.span, text));
                    }
                };
                self.define(name, whole, DefinitionKind::Constant(ty, value));
            }
            Err(error) => {
                self.error(error);
                // The name is defined nevertheless, so that its uses are not reported too.
                let ty = ty.unwrap_or(Type::Basic(Basic::Long));
                self.define(name, whole, DefinitionKind::Constant(ty, Value::Integer(1)));
            }
        }
    }

    /// Evaluates an expression that must be an integer of at least 1, such as a bound.
    pub(crate) fn positive(&mut self, expression: &Expr) -> Option<u32> {
        let value = self.unsigned(expression)?;
        if value == 0 {
            self.error(Diagnostic::new(
                expression.span,
                "expected a number of at least 1, found 0",
            ));
            return None;
        }
        Some(value)
    }

    /// Evaluates an expression that must fit `unsigned long`.
    pub(crate) fn unsigned(&mut self, expression: &Expr) -> Option<u32> {
        let ty = Type::Basic(Basic::ULong);
        let value = self
            .evaluate(expression, Some(Basic::ULong))
            .and_then(|v| self.coerce(v, &ty, expression.span));
        match value {
            Ok(Value::Integer(value)) => u32::try_from(value).ok(),
            Ok(_) => None,
            Err(error) => {
                self.error(error);
                None
            }
        }
    }

    /// Evaluates an expression; `target` is the type that the value is for.
    fn evaluate(&mut self, expression: &Expr, target: Option<Basic>) -> Result<Value, Diagnostic> {
        let at = |message: String| Diagnostic::new(expression.span, message);
        match &expression.kind {
            ExprKind::Literal(literal) => Value::of(literal).map_err(at),
            ExprKind::Unary(operator, operand) => {
                let operand = self.evaluate(operand, target)?;
                value::unary(*operator, operand, target).map_err(at)
            }
            ExprKind::Binary(operator, left, right) => {
                let left = self.evaluate(left, target)?;
                let right = self.evaluate(right, target)?;
                value::binary(*operator, left, right).map_err(at)
            }
            ExprKind::Name(name) => {
                match self.scopes.lookup(self.scope, name, &self.definitions)? {
                    Target::Enumerator(id, index) => Ok(Value::Enumerator(id, index)),
                    Target::Definition(id) => match &self.definition(id).kind {
                        DefinitionKind::Constant(_, value) => Ok(value.clone()),
                        _ => Err(at(format!("`{name}` is not a constant"))
                            .note(self.definition(id).span, "it is defined here")),
                    },
                    Target::Other(what) => Err(at(format!("`{name}` is {what}, not a constant"))),
                }
            }
        }
    }

    /// Converts a value to the type, or returns an error if it is not of that type.
    fn coerce(&self, value: Value, ty: &Type, span: Span) -> Result<Value, Diagnostic> {
        let wrong = |expected: &str, value: &Value| {
            Diagnostic::new(
                span,
                format!("expected {expected}, found {}", value.kind_name()),
            )
        };
        match (ty, value) {
            (Type::Basic(basic), Value::Integer(value)) if value::range(*basic).is_some() => {
                let (min, max) = value::range(*basic).unwrap_or_default();
                if (min..=max).contains(&value) {
                    return Ok(Value::Integer(value));
                }
                Err(Diagnostic::new(
                    span,
                    format!("{value} is out of the range of this type, {min} to {max}"),
                ))
            }
            #[allow(clippy::cast_precision_loss)]
            (
                Type::Basic(Basic::Float | Basic::Double | Basic::LongDouble),
                Value::Integer(value),
            ) => Ok(Value::Float(value as f64)),
            (Type::Basic(Basic::Float), Value::Float(value))
                if value.abs() > f64::from(f32::MAX) =>
            {
                Err(Diagnostic::new(
                    span,
                    format!("{value:?} is out of the range of `float`"),
                ))
            }
            (
                Type::Basic(Basic::Float | Basic::Double | Basic::LongDouble),
                value @ Value::Float(_),
            )
            | (Type::Basic(Basic::Boolean), value @ Value::Boolean(_))
            | (Type::Basic(Basic::Char), value @ Value::Char(_))
            | (Type::Basic(Basic::WideChar), value @ Value::WideChar(_)) => Ok(value),
            (Type::Basic(Basic::Boolean), Value::Integer(value @ (0 | 1))) => {
                Ok(Value::Boolean(value == 1))
            }
            (Type::String(bound), Value::String(text)) => {
                bounded(&text, *bound, span).map(|()| Value::String(text))
            }
            (Type::WideString(bound), Value::WideString(text)) => {
                bounded(&text, *bound, span).map(|()| Value::WideString(text))
            }
            (Type::Fixed { digits, scale }, Value::Fixed(value)) => {
                let whole = u32::from(*digits) - u32::from(*scale);
                if value.digit_count() - value.scale() > whole || value.scale() > u32::from(*scale)
                {
                    return Err(Diagnostic::new(
                        span,
                        format!("{value} does not fit `fixed<{digits},{scale}>`"),
                    ));
                }
                Ok(Value::Fixed(value))
            }
            (Type::Named(id), Value::Enumerator(of, index)) if *id == of => {
                Ok(Value::Enumerator(of, index))
            }
            (ty, value) => Err(wrong(&self.expected(ty), &value)),
        }
    }

    fn expected(&self, ty: &Type) -> String {
        match ty {
            Type::Basic(Basic::Boolean) => "TRUE or FALSE".into(),
            Type::Basic(Basic::Char) => "a character".into(),
            Type::Basic(Basic::WideChar) => "a wide character (`L'x'`)".into(),
            Type::Basic(Basic::Float | Basic::Double | Basic::LongDouble) => {
                "a floating-point number".into()
            }
            Type::Basic(basic) if value::range(*basic).is_some() => "an integer".into(),
            Type::String(_) => "a string".into(),
            Type::WideString(_) => "a wide string (`L\"x\"`)".into(),
            Type::Fixed { .. } => "a fixed-point number (`1.5d`)".into(),
            Type::Named(id) if matches!(self.definition(*id).kind, DefinitionKind::Enum(_)) => {
                format!("an enumerator of `{}`", self.definition(*id).name)
            }
            _ => "a type that constants may have".into(),
        }
    }

    pub(crate) fn union(
        &mut self,
        name: &Name,
        whole: Span,
        discriminator: &TypeSpec,
        cases: &[AstCase],
    ) -> DefId {
        let id = self.declare_union(name, whole);
        let mut checked = Vec::new();
        let mut switch = None;
        self.within(id, |checker| {
            switch = checker.discriminator(discriminator);
            let mut seen = HashMap::new();
            for case in cases {
                let labels = checker.labels(case, switch.as_ref(), &mut seen);
                let ty = checker.complete_type(&case.ty);
                if let Some(member) = checker.member(&ty, &case.declarator) {
                    checked.push(Case {
                        labels,
                        name: member.name,
                        ty: member.ty,
                        span: member.span,
                    });
                }
            }
            checker.check_default(switch.as_ref(), seen.len(), cases);
        });
        if cases.is_empty() {
            self.error(Diagnostic::new(name.span, "a union has at least one case"));
        }
        if let DefinitionKind::Union(union) = self.kind_mut(id) {
            union.discriminator = switch.unwrap_or(Type::Basic(Basic::Long));
            union.cases = checked;
            union.defined = true;
        }
        self.definitions[id.0 as usize].whole = whole;
        id
    }

    fn discriminator(&mut self, spec: &TypeSpec) -> Option<Type> {
        let ty = self.type_of(spec)?;
        let fits = match resolve(&self.definitions, &ty) {
            Type::Basic(Basic::Boolean | Basic::Char | Basic::WideChar) => true,
            Type::Basic(basic) => value::range(*basic).is_some(),
            Type::Named(id) => matches!(self.definition(*id).kind, DefinitionKind::Enum(_)),
            _ => false,
        };
        if !fits {
            let text = "a union switches on an integer, character, boolean or enum";
            self.error(Diagnostic::new(spec.span, text));
            return None;
        }
        Some(ty)
    }

    fn labels(
        &mut self,
        case: &AstCase,
        switch: Option<&Type>,
        seen: &mut HashMap<String, Span>,
    ) -> Vec<Option<Value>> {
        let mut labels = Vec::new();
        for (label, span) in &case.labels {
            let value = match label {
                None => None,
                Some(expression) => match self.label(expression, switch) {
                    Ok(value) => Some(value),
                    Err(error) => {
                        self.error(error);
                        continue;
                    }
                },
            };
            let key = value
                .as_ref()
                .map_or("default".to_owned(), ToString::to_string);
            if let Some(earlier) = seen.get(&key) {
                let error =
                    Diagnostic::new(*span, "this case is there twice").note(*earlier, "the first");
                self.error(error);
                continue;
            }
            seen.insert(key, *span);
            labels.push(value);
        }
        labels
    }

    fn label(&mut self, expression: &Expr, switch: Option<&Type>) -> Result<Value, Diagnostic> {
        let Some(ty) = switch.map(|ty| resolve(&self.definitions, ty).clone()) else {
            return Ok(Value::Integer(i128::from(expression.span.start)));
        };
        let target = if let Type::Basic(basic) = ty {
            Some(basic)
        } else {
            None
        };
        let value = match self.evaluate(expression, target) {
            Ok(value) => value,
            Err(error) => self.enumerator(expression, &ty).ok_or(error)?,
        };
        self.coerce(value, &ty, expression.span)
    }

    /// Returns the enumerator of an enum that is named without the enum's scope.
    fn enumerator(&self, expression: &Expr, ty: &Type) -> Option<Value> {
        let (ExprKind::Name(name), Type::Named(id)) = (&expression.kind, ty) else {
            return None;
        };
        let [part] = &name.parts[..] else { return None };
        // Enumerators are names of the scope around their enum.
        let scope = self.scopes.scope_of(self.definition(*id).parent)?;
        match self.scopes.own(scope, &part.text)? {
            Target::Enumerator(of, index) if of == *id => Some(Value::Enumerator(of, index)),
            _ => None,
        }
    }

    /// Checks that a `default` label has a discriminator value left that no other label takes.
    fn check_default(&mut self, switch: Option<&Type>, labels: usize, cases: &[AstCase]) {
        let values = match switch.map(|ty| resolve(&self.definitions, ty)) {
            Some(Type::Basic(Basic::Boolean)) => 2,
            Some(Type::Basic(Basic::Char)) => 256,
            Some(Type::Basic(basic)) => {
                value::range(*basic).map_or(i128::MAX, |(min, max)| max - min + 1)
            }
            Some(Type::Named(id)) => match &self.definition(*id).kind {
                DefinitionKind::Enum(enumerators) => enumerators.len() as i128,
                _ => i128::MAX,
            },
            _ => i128::MAX,
        };
        let default = cases
            .iter()
            .flat_map(|case| &case.labels)
            .find(|(label, _)| label.is_none());
        if let Some((_, span)) = default
            && labels as i128 > values
        {
            self.error(Diagnostic::new(
                *span,
                "no value is left for `default`: every one has its case",
            ));
        }
    }
}

fn fixed_type(value: &Decimal) -> Type {
    Type::Fixed {
        digits: value.digit_count() as u16,
        scale: value.scale() as u16,
    }
}

fn bounded(text: &str, bound: Option<u32>, span: Span) -> Result<(), Diagnostic> {
    let count = text.chars().count();
    match bound {
        Some(bound) if count > bound as usize => Err(Diagnostic::new(
            span,
            format!("this has {count} characters, and its type has room for {bound}"),
        )),
        _ => Ok(()),
    }
}
