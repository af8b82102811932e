//! Generates structs, exceptions, typedefs and constants.

use deckwatch_cdr::LongDouble;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::names::{Taken, ident, snake_case, unique};
use super::{Generator, Refused, tokens};
use crate::model::value::Value;
use crate::model::{Basic, DefId, Definition, DefinitionKind, Member, Structure, Type};
use crate::text::source::Span;

/// A member with its Rust name and type.
pub(super) type Field<'m> = (&'m Member, Ident, TokenStream);

/// A TypeCode expression.
pub(super) enum Described {
    /// What stands before the list of parts, and the parts.
    List { head: String, parts: Vec<String> },
    /// An expression without such a list.
    Whole(String),
}

impl Described {
    /// Returns the whole expression.
    pub(super) fn whole(self) -> String {
        match self {
            Self::List { head, parts } => format!("{head}&[{}])", parts.join(", ")),
            Self::Whole(text) => text,
        }
    }
}

impl Generator<'_> {
    pub(crate) fn structure(
        &mut self,
        id: DefId,
        definition: &Definition,
        structure: &Structure,
        at: &[String],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL struct", definition);
        self.record(id, &doc, structure, at)
    }

    pub(crate) fn exception(
        &mut self,
        id: DefId,
        definition: &Definition,
        structure: &Structure,
        at: &[String],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL exception", definition);
        self.record(id, &doc, structure, at)?;
        let name = ident(self.names.name(id));
        let cdr = self.paths.cdr.tokens();
        let repository_id = &definition.repository_id;
        let text = format!("{} was raised", definition.scoped_name);
        self.put(quote! {
            impl #cdr::UserException for #name {
                const REPOSITORY_ID: &'static str = #repository_id;
            }

            impl ::std::fmt::Display for #name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str(#text)
                }
            }

            impl ::std::error::Error for #name {}
        });
        Ok(())
    }

    /// Generates a Rust struct and the code that marshals it.
    fn record(
        &mut self,
        id: DefId,
        doc: &TokenStream,
        structure: &Structure,
        at: &[String],
    ) -> Result<(), Refused> {
        let mut fields = Vec::new();
        for (member, name) in structure
            .members
            .iter()
            .zip(field_names(&structure.members))
        {
            fields.push((
                member,
                ident(&name),
                tokens(&self.owned(&member.ty, at, member.span)?),
            ));
        }
        let name = ident(self.names.name(id));
        let derives = self.derives(structure);
        let is_plain = self.is_plain(id);
        let attributes = is_plain.then(|| self.plain_attributes());
        let head = quote! { #doc #derives #attributes pub struct #name };
        if fields.is_empty() {
            self.put(quote! { #head; });
        } else {
            self.out.open(head);
            for (member, field, ty) in &fields {
                let doc = self.part_doc(&format!("`{}`.", member.name), member.span);
                self.out.put(quote! { #doc pub #field: #ty, });
                self.room(member.span)?;
            }
            self.out.close();
        }
        self.default(&name, &fields);
        self.marshal_record(&name, &fields, is_plain);
        self.typed(id, &name, at)
    }

    fn derives(&self, structure: &Structure) -> TokenStream {
        let mut abilities: Vec<&str> = vec!["Clone"];
        let all = structure
            .members
            .iter()
            .map(|member| self.abilities(&member.ty))
            .collect::<Vec<_>>();
        if all.iter().all(|a| a.copy) {
            abilities.push("Copy");
        }
        abilities.push("Debug");
        if all.iter().all(|a| a.default)
            && !structure.members.iter().any(|m| self.is_long_array(&m.ty))
        {
            abilities.push("Default");
        }
        abilities.push("PartialEq");
        if all.iter().all(|a| a.eq) {
            abilities.extend(["Eq", "Hash"]);
        }
        let abilities = tokens(&abilities.join(", "));
        quote! { #[derive(#abilities)] }
    }

    /// Generates `Default` if it cannot be derived because an array is too long.
    fn default(&mut self, name: &Ident, fields: &[Field<'_>]) {
        let derived = !fields
            .iter()
            .any(|(member, _, _)| self.is_long_array(&member.ty));
        let can = |(member, _, _): &Field<'_>| self.abilities(&member.ty).default;
        if derived || !fields.iter().all(can) {
            return;
        }
        let trait_path = tokens(&self.prelude("Default"));
        self.out.open(quote! { impl #trait_path for #name });
        self.out.open(quote! { fn default() -> Self });
        self.out.open(quote! { Self });
        for (member, field, _) in fields {
            let value = self.default_value(&member.ty);
            self.out.put(quote! { #field: #value, });
        }
        (0..3).for_each(|_| self.out.close());
    }

    fn default_value(&self, ty: &Type) -> TokenStream {
        match self.model.resolve(ty) {
            Type::Array { element, .. } if self.is_long_array(ty) => {
                let element = self.default_value(element);
                quote! { ::std::array::from_fn(|_| #element) }
            }
            _ => quote! { ::std::default::Default::default() },
        }
    }

    /// Generates `Write` and `Parse`: with a macro, unless a member's bound must be checked.
    fn marshal_record(&mut self, name: &Ident, fields: &[Field<'_>], is_plain: bool) {
        let is_checked =
            |member: &Member| self.exceeds(&quote! { value }, &member.ty, true).is_some();
        if fields.iter().any(|(member, _, _)| is_checked(member)) {
            self.write_record(name, fields);
            return self.parse_record(name, fields);
        }
        let cdr = self.paths.cdr.tokens();
        let kind = match () {
            () if is_plain => quote! { plain },
            () if self.may_stand_within(fields) => quote! { fixed },
            () => quote! {},
        };
        self.out.open(quote! { #cdr::record! });
        self.out.open(quote! { #kind #name });
        for (_, field, ty) in fields {
            self.out.put(quote! { #field: #ty, });
        }
        self.out.close();
        self.write_last(fields);
        self.out.close();
    }

    /// Generates the lines that write the members.
    fn write_lines(&mut self, fields: &[Field<'_>]) {
        let cdr = self.paths.cdr.tokens();
        for (member, field, _) in fields {
            let check = self.check_written(&quote! { self.#field }, &member.ty, true);
            self.out
                .put(quote! { #check #cdr::Write::write(&self.#field, w)?; });
        }
    }

    fn write_record(&mut self, name: &Ident, fields: &[Field<'_>]) {
        let cdr = self.paths.cdr.tokens();
        self.out.open(quote! { impl #cdr::Write for #name });
        if self.may_stand_within(fields) {
            self.write_within(fields);
        }
        self.out.open(quote! {
            #[inline]
            fn write(&self, w: &mut #cdr::Writer<'_>) -> ::std::result::Result<(), #cdr::EncodeError>
        });
        self.write_lines(fields);
        self.put(quote! { Ok(()) });
        self.out.close();
        self.write_last(fields);
        self.out.close();
    }

    /// Generates `write_last`: as the lines of `write` write the members, but the last member's octets can stay
    /// unwritten. Generates nothing if the last member's type has no such octets.
    fn write_last(&mut self, fields: &[Field<'_>]) {
        let Some(((member, field, _), before)) = fields.split_last() else {
            return;
        };
        if !self.may_leave(&member.ty) {
            return;
        }
        let cdr = self.paths.cdr.tokens();
        self.out.open(quote! {
            fn write_last(
                &self,
                w: &mut #cdr::Writer<'_>,
            ) -> ::std::result::Result<#cdr::Unwritten<'_>, #cdr::EncodeError>
        });
        self.write_lines(before);
        let check = self.check_written(&quote! { self.#field }, &member.ty, true);
        self.put(quote! { #check #cdr::Write::write_last(&self.#field, w) });
        self.out.close();
    }

    /// Generates `write_within`, which writes the struct in a write window, if no member's type uses the heap.
    /// `SIZE_MAX` is the sum of the members' sizes; the compiler evaluates whether it is small enough for a window.
    fn write_within(&mut self, fields: &[Field<'_>]) {
        let cdr = self.paths.cdr.tokens();
        let size = |ty: &TokenStream| quote! { <#ty as #cdr::Write>::SIZE_MAX, };
        self.sizes("SIZE_MAX", fields, size);
        self.out.open(quote! {
            #[inline(always)]
            fn write_within(&self, w: &mut #cdr::WriteWindow<'_>)
        });
        for (_, field, _) in fields {
            self.out
                .put(quote! { #cdr::Write::write_within(&self.#field, w); });
        }
        self.out.close();
    }

    /// Generates a constant: the sum of the members' sizes. A list has no depth, unlike a chain of additions.
    fn sizes(
        &mut self,
        name: &str,
        fields: &[Field<'_>],
        size: impl Fn(&TokenStream) -> TokenStream,
    ) {
        let (cdr, name) = (self.paths.cdr.tokens(), ident(name));
        self.out
            .enter(quote! { const #name: usize = #cdr::generated::sum }, "(&[");
        for (_, _, ty) in fields {
            self.out.put(size(ty));
        }
        self.out.leave("]);");
    }

    /// Generates `parse_within`, as [`Self::write_within`] does for writing.
    fn parse_within(&mut self, fields: &[Field<'_>]) {
        let cdr = self.paths.cdr.tokens();
        let size = |ty: &TokenStream| quote! { <#ty as #cdr::Parse<'a>>::SIZE_MAX, };
        self.sizes("SIZE_MAX", fields, size);
        self.out.open(quote! {
            #[inline(always)]
            fn parse_within(r: &mut #cdr::ReadWindow<'_>) -> Self
        });
        self.out.open(quote! { Self });
        for (_, field, ty) in fields {
            self.out
                .put(quote! { #field: <#ty as #cdr::Parse<'a>>::parse_within(r), });
        }
        self.out.close();
        self.out.close();
    }

    fn may_stand_within(&self, fields: &[Field<'_>]) -> bool {
        let all_fixed = fields
            .iter()
            .all(|(member, _, _)| self.abilities(&member.ty).copy);
        !fields.is_empty() && all_fixed
    }

    fn parse_record(&mut self, name: &Ident, fields: &[Field<'_>]) {
        let cdr = self.paths.cdr.tokens();
        self.out.open(quote! { impl<'a> #cdr::Parse<'a> for #name });
        let size = |ty: &TokenStream| quote! { <#ty as #cdr::Parse<'a>>::SIZE_MIN, };
        self.sizes("SIZE_MIN", fields, size);
        if self.may_stand_within(fields) {
            self.parse_within(fields);
        }
        self.out.open(quote! {
            #[inline]
            fn parse(r: &mut #cdr::Reader<'a>) -> ::std::result::Result<Self, #cdr::DecodeError>
        });
        self.out.open(quote! { let value = Self });
        for (_, field, ty) in fields {
            self.out
                .put(quote! { #field: <#ty as #cdr::Parse<'a>>::parse(r)?, });
        }
        self.out.leave("};");
        for (member, field, _) in fields {
            let check = self.check_read(&quote! { value.#field }, &member.ty);
            self.put(check.unwrap_or_default());
        }
        self.put(quote! { Ok(value) });
        self.out.close();
        self.out.close();
    }

    /// Generates `Typed`, whose TypeCode is built once.
    pub(crate) fn typed(&mut self, id: DefId, name: &Ident, at: &[String]) -> Result<(), Refused> {
        let cdr = self.paths.cdr.tokens();
        let code = self.described(id, at, &mut Vec::new())?;
        self.out.open(quote! { #cdr::typed! });
        let Described::List { head, parts } = code else {
            let code = tokens(&code.whole());
            self.put(quote! { #name, #code });
            self.out.close();
            return Ok(());
        };
        // The head has the constructor's path, its open bracket and its first arguments.
        let (constructor, arguments) = head.split_once('(').unwrap_or((&head, ""));
        let constructor = tokens(constructor);
        self.out
            .enter(quote! { #name, #constructor }, &format!("({arguments}&["));
        for part in parts {
            self.out.put(tokens(&format!("{part},")));
        }
        self.out.leave("])");
        self.out.close();
        Ok(())
    }

    /// Returns an expression that builds the TypeCode of a struct, exception, union or enum from its parts.
    pub(super) fn described(
        &mut self,
        id: DefId,
        at: &[String],
        around: &mut Vec<DefId>,
    ) -> Result<Described, Refused> {
        let model = self.model;
        let definition = model.definition(id);
        let (repository_id, name, cdr) = (
            &definition.repository_id,
            &definition.name,
            self.paths.cdr.clone(),
        );
        around.push(id);
        let code = match &definition.kind {
            DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                let mut parts = Vec::new();
                for member in &structure.members {
                    let code = self.type_code(&member.ty, at, member.span, around)?;
                    parts.push(format!(
                        "{cdr}::generated::member({:?}, &{code})",
                        member.name
                    ));
                }
                let exception = matches!(definition.kind, DefinitionKind::Exception(_));
                let constructor = if exception { "exception" } else { "structure" };
                let head = format!("{cdr}::TypeCode::{constructor}({repository_id:?}, {name:?}, ");
                Described::List { head, parts }
            }
            DefinitionKind::Union(union) => self.described_union(definition, union, at, around)?,
            DefinitionKind::Enum(enumerators) => Described::List {
                head: format!("{cdr}::TypeCode::enumeration({repository_id:?}, {name:?}, "),
                parts: enumerators
                    .iter()
                    .map(|(name, _)| format!("{name:?}"))
                    .collect(),
            },
            DefinitionKind::Value(value) => self.described_value(definition, value, at, around)?,
            _ => return Err(self.refuse(definition.span, "this has no TypeCode of its own")),
        };
        around.pop();
        Ok(code)
    }

    pub(crate) fn alias(
        &mut self,
        id: DefId,
        definition: &Definition,
        target: &Type,
        at: &[String],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL typedef", definition);
        let name = ident(self.names.name(id));
        let target = tokens(&self.owned(target, at, definition.span)?);
        self.put(quote! { #doc pub type #name = #target; });
        Ok(())
    }

    pub(crate) fn constant(
        &mut self,
        id: DefId,
        definition: &Definition,
        ty: &Type,
        value: &Value,
        at: &[String],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL constant", definition);
        let name = ident(self.names.name(id));
        let owned = match value {
            Value::String(_) | Value::WideString(_) => "&str".to_owned(),
            _ => self.owned(ty, at, definition.span)?,
        };
        let owned = tokens(&owned);
        let value = tokens(&self.value(value, ty, at, definition.span)?);
        self.put(quote! { #doc pub const #name: #owned = #value; });
        Ok(())
    }

    /// Returns a constant's value as an expression. The expression of a label is also a pattern.
    pub(crate) fn value(
        &mut self,
        value: &Value,
        ty: &Type,
        at: &[String],
        span: Span,
    ) -> Result<String, Refused> {
        let cdr = &self.paths.cdr;
        Ok(match value {
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Float(value) if *self.model.resolve(ty) == Type::Basic(Basic::LongDouble) => {
                format!("{cdr}::LongDouble({:#x})", LongDouble::from(*value).0)
            }
            Value::Float(value) if *self.model.resolve(ty) == Type::Basic(Basic::Float) => {
                format!("{:?}", *value as f32)
            }
            Value::Float(value) => format!("{value:?}"),
            Value::Char(value) => format!("{cdr}::Char({:#04x})", u32::from(*value)),
            Value::WideChar(value) => format!("{value:?}"),
            Value::String(value) | Value::WideString(value) => format!("{value:?}"),
            Value::Fixed(value) => {
                let scale = match self.model.resolve(ty) {
                    Type::Fixed { scale, .. } => u32::from(*scale),
                    _ => value.scale(),
                };
                let units = value.digits() * 10_i128.pow(scale.saturating_sub(value.scale()));
                format!(
                    "match {cdr}::Fixed::from_units({units}) {{ Ok(value) => value, Err(_) => unreachable!() }}"
                )
            }
            Value::Enumerator(id, index) => {
                let path = self.path(*id, self.names.name(*id).to_owned(), at, span)?;
                format!(
                    "{path}::{}",
                    ident(&self.names.enumerators(*id)[*index as usize])
                )
            }
        })
    }
}

pub(crate) fn field_names(members: &[Member]) -> Vec<String> {
    let mut taken = Taken::new();
    members
        .iter()
        .map(|member| unique(snake_case(&member.name), &mut taken))
        .collect()
}
