//! The names and TypeCodes of an operation, for a call without stubs.

use std::fmt::Write as _;

use anyhow::bail;
use deckwatch_cdr::value::{Value, write_value};
use deckwatch_cdr::{CharSet, Codec, TypeCode, Writer};
use deckwatch_idl::model::{Access, Mode, Operation, Type};
use deckwatch_idl::notation::{Notation, NotationError};

/// The TypeCodes of a request and of its replies.
pub(super) struct Signature {
    /// The name in messages to the user.
    pub(super) name: String,
    /// The operation name in the GIOP request.
    pub(super) wire_name: String,
    pub(super) oneway: bool,
    /// Whether the request carries a Context after its arguments. It is sent empty.
    pub(super) context: bool,
    /// `void` if the operation returns nothing.
    pub(super) result: TypeCode,
    pub(super) parameters: Vec<Parameter>,
    /// The exceptions of the `raises` clause, with their names.
    pub(super) raises: Vec<(String, TypeCode)>,
}

pub(super) struct Parameter {
    pub(super) mode: Mode,
    pub(super) name: String,
    pub(super) code: TypeCode,
}

impl Signature {
    /// Makes the signature of an operation of the IDL model.
    pub(super) fn of(notation: &Notation<'_>, operation: &Operation) -> anyhow::Result<Self> {
        let model = notation.model();
        let code = |ty: &Type, what: &str| match model.type_code_of(ty) {
            Some(code) => Ok(code),
            None => bail!(
                "`{}` cannot be called: {what} is a valuetype, an abstract or local interface or a native type, of which this command writes and reads no values",
                operation.name
            ),
        };
        let result = match &operation.result {
            Some(ty) => code(ty, "what it returns")?,
            None => TypeCode::void(),
        };
        let parameters = operation.parameters.iter().map(|parameter| {
            Ok(Parameter {
                mode: parameter.mode,
                name: parameter.name.clone(),
                code: code(
                    &parameter.ty,
                    &format!("its parameter `{}`", parameter.name),
                )?,
            })
        });
        let raises = operation.raises.iter().map(|id| {
            let name = model.definition(*id).scoped_name.clone();
            Ok((name, code(&Type::Named(*id), "an exception it raises")?))
        });
        Ok(Self {
            name: match operation.attribute {
                Some(Access::Get) => format!("attribute {}", operation.name),
                Some(Access::Set) => format!("attribute {} (to set it)", operation.name),
                None => operation.name.clone(),
            },
            wire_name: operation.wire_name.clone(),
            oneway: operation.oneway,
            context: !operation.contexts.is_empty(),
            result,
            parameters: parameters.collect::<anyhow::Result<_>>()?,
            raises: raises.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns the signature of an operation that every object has (CORBA 3.3 part 1, clause 8.3), or `None`.
    pub(super) fn of_every_object(name: &str) -> Option<Self> {
        let text = || Parameter {
            mode: Mode::In,
            name: "logical_type_id".to_owned(),
            code: TypeCode::unbounded_string(),
        };
        let (result, parameters) = match name {
            "_is_a" => (TypeCode::boolean(), vec![text()]),
            "_non_existent" | "_not_existent" => (TypeCode::boolean(), Vec::new()),
            "_repository_id" => (TypeCode::unbounded_string(), Vec::new()),
            "_interface" | "_component" => (TypeCode::object(), Vec::new()),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            wire_name: name.to_owned(),
            oneway: false,
            context: false,
            result,
            parameters,
            raises: Vec::new(),
        })
    }

    /// Returns the `in` and `inout` parameters.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(|parameter| parameter.mode != Mode::Out)
    }

    /// Returns name and type of each result: the return value first, then the `inout` and `out` parameters.
    pub(super) fn returned(&self) -> Vec<(&str, &TypeCode)> {
        let result = (self.result != TypeCode::void()).then_some(("return", &self.result));
        let parameters = self
            .parameters
            .iter()
            .filter(|parameter| parameter.mode != Mode::In);
        result
            .into_iter()
            .chain(parameters.map(|parameter| (parameter.name.as_str(), &parameter.code)))
            .collect()
    }

    /// Parses the argument texts. The error is a whole message for the user.
    pub(super) fn read(
        &self,
        notation: &Notation<'_>,
        texts: &[String],
    ) -> Result<Vec<Value>, String> {
        let parameters: Vec<&Parameter> = self.sent().collect();
        if parameters.len() != texts.len() {
            return Err(self.wrong_count(notation, &parameters, texts.len()));
        }
        let read = |(parameter, text): (&&Parameter, &String)| {
            let value = notation.read(&parameter.code, text);
            let value = value.map_err(|error| refusal(notation, parameter, text, &error))?;
            let mut octets = Vec::new();
            let mut w = Writer::new(&mut octets).with_codec(codec());
            let written = write_value(&parameter.code, &value, &mut w);
            let why = |error: deckwatch_cdr::EncodeError| NotationError {
                part: String::new(),
                message: error.to_string(),
                start: 0,
                end: text.len(),
            };
            written.map_err(|error| refusal(notation, parameter, text, &why(error)))?;
            Ok(value)
        };
        parameters.iter().zip(texts).map(read).collect()
    }

    fn wrong_count(
        &self,
        notation: &Notation<'_>,
        parameters: &[&Parameter],
        given: usize,
    ) -> String {
        let mut message = format!(
            "error: {} takes {} and {given} ",
            self.name,
            arguments(parameters.len())
        );
        message.push_str(if given == 1 {
            "is given\n"
        } else {
            "are given\n"
        });
        for parameter in parameters {
            let _ = writeln!(
                message,
                "  {} {}",
                notation.type_text(&parameter.code),
                parameter.name
            );
        }
        message
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        count => format!("{count} {}", crate::words::plural("argument", count)),
    }
}

/// Returns the message about a parameter's text that cannot be parsed, with the place of the fault.
fn refusal(
    notation: &Notation<'_>,
    parameter: &Parameter,
    text: &str,
    error: &NotationError,
) -> String {
    let expected = notation.type_text(&parameter.code);
    format!(
        "error: parameter `{}` ({expected}): {error}\n{}",
        parameter.name,
        error.excerpt(text)
    )
}

/// Returns the code sets that most peers negotiate: UTF-8 and UTF-16, in GIOP 1.2.
pub(super) const fn codec() -> Codec {
    Codec::DEFAULT.with_chars(CharSet::Utf8)
}
