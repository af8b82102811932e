//! Generates structs, exceptions, typedefs and constants.

use std::collections::HashSet;

use deckwatch_cdr::LongDouble;
use proc_macro2::TokenStream;
use quote::quote;

use super::names::{ident, snake_case, unique};
use super::plain::Plain;
use super::{Generator, Refused, tokens};
use crate::model::value::Value;
use crate::model::{Basic, DefId, Definition, DefinitionKind, Member, Structure, Type};
use crate::text::source::Span;

impl Generator<'_> {
    pub(crate) fn structure(
        &mut self,
        id: DefId,
        definition: &Definition,
        structure: &Structure,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL struct", definition);
        self.record(id, &doc, structure, at)
    }

    pub(crate) fn exception(
        &mut self,
        id: DefId,
        definition: &Definition,
        structure: &Structure,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL exception", definition);
        let record = self.record(id, &doc, structure, at)?;
        let name = ident(self.names.name(id));
        let cdr = tokens(&self.paths.cdr);
        let repository_id = &definition.repository_id;
        let text = format!("{} was raised", definition.scoped_name);
        Ok(quote! {
            #record

            impl #cdr::UserException for #name {
                const REPOSITORY_ID: &'static str = #repository_id;
            }

            impl ::std::fmt::Display for #name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str(#text)
                }
            }

            impl ::std::error::Error for #name {}
        })
    }

    /// Generates a Rust struct and the code that marshals it.
    fn record(
        &mut self,
        id: DefId,
        doc: &TokenStream,
        structure: &Structure,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
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
        let default = self.default(id, structure);
        let is_struct = matches!(self.model.definition(id).kind, DefinitionKind::Struct(_));
        let plain = match is_struct {
            true => self.plain(&name, structure, &fields),
            false => Plain::default(),
        };
        let marshalling = self.marshal_record(&name, &fields, &plain);
        let (attributes, plain) = (plain.attributes, plain.itself);
        let typed = self.typed(id, &name, at)?;
        let body = if fields.is_empty() {
            quote! { ; }
        } else {
            let members = fields.iter().map(|(member, field, ty)| {
                let doc = self.part_doc(&format!("`{}`.", member.name), member.span);
                quote! { #doc pub #field: #ty }
            });
            quote! { { #(#members),* } }
        };
        Ok(quote! {
            #doc
            #derives
            #attributes
            pub struct #name #body
            #default
            #marshalling
            #plain
            #typed
        })
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
    fn default(&self, id: DefId, structure: &Structure) -> TokenStream {
        let members = &structure.members;
        let derived = !members.iter().any(|member| self.is_long_array(&member.ty));
        if derived
            || !members
                .iter()
                .all(|member| self.abilities(&member.ty).default)
        {
            return TokenStream::new();
        }
        let name = ident(self.names.name(id));
        let trait_path = tokens(&self.prelude("Default"));
        let values = members
            .iter()
            .zip(field_names(members))
            .map(|(member, field)| {
                let (field, value) = (ident(&field), self.default_value(&member.ty));
                quote! { #field: #value }
            });
        quote! {
            impl #trait_path for #name {
                fn default() -> Self {
                    Self { #(#values),* }
                }
            }
        }
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
    fn marshal_record(
        &self,
        name: &proc_macro2::Ident,
        fields: &[(&Member, proc_macro2::Ident, TokenStream)],
        plain: &Plain,
    ) -> TokenStream {
        let is_checked =
            |member: &Member| self.exceeds(&quote! { value }, &member.ty, true).is_some();
        if fields.iter().any(|(member, _, _)| is_checked(member)) {
            let write = self.write_record(name, fields, &plain.write);
            let parse = self.parse_record(name, fields, &plain.parse);
            return quote! { #write #parse };
        }
        let cdr = tokens(&self.paths.cdr);
        let lines: Vec<TokenStream> = fields
            .iter()
            .map(|(_, field, _)| quote! { #cdr::Write::write(&self.#field, w)?; })
            .collect();
        let last = self.write_last(fields, &lines);
        let (write, parse) = (&plain.write, &plain.parse);
        let fixed = self.may_stand_within(fields).then(|| quote! { fixed });
        let fields = fields.iter().map(|(_, field, ty)| quote! { #field: #ty });
        quote! {
            #cdr::record! { #fixed #name { #(#fields),* } write { #write #last } parse { #parse } }
        }
    }

    fn write_record(
        &self,
        name: &proc_macro2::Ident,
        fields: &[(&Member, proc_macro2::Ident, TokenStream)],
        slices: &TokenStream,
    ) -> TokenStream {
        let cdr = tokens(&self.paths.cdr);
        let mut lines: Vec<TokenStream> = Vec::new();
        for (member, field, _) in fields {
            lines.extend(self.check_written(&quote! { self.#field }, &member.ty, true));
            lines.push(quote! { #cdr::Write::write(&self.#field, w)?; });
        }
        let writer = if fields.is_empty() {
            quote! { _ }
        } else {
            quote! { w }
        };
        let within = self.write_within(fields);
        let last = self.write_last(fields, &lines);
        quote! {
            impl #cdr::Write for #name {
                #within
                #[inline]
                fn write(&self, #writer: &mut #cdr::Writer<'_>) -> ::std::result::Result<(), #cdr::EncodeError> {
                    #(#lines)*
                    Ok(())
                }
                #last
                #slices
            }
        }
    }

    /// Generates `write_within`, which writes the struct in a write window, if no member's type uses the heap.
    /// `SIZE_MAX` is the sum of the members' sizes; the compiler evaluates whether it is small enough for a window.
    fn write_within(&self, fields: &[(&Member, proc_macro2::Ident, TokenStream)]) -> TokenStream {
        if !self.may_stand_within(fields) {
            return TokenStream::new();
        }
        let cdr = tokens(&self.paths.cdr);
        let sizes = fields
            .iter()
            .map(|(_, _, ty)| quote! { .saturating_add(<#ty as #cdr::Write>::SIZE_MAX) });
        let members = fields
            .iter()
            .map(|(_, field, _)| quote! { #cdr::Write::write_within(&self.#field, w); });
        quote! {
            const SIZE_MAX: usize = 0_usize #(#sizes)*;

            #[inline(always)]
            fn write_within(&self, w: &mut #cdr::WriteWindow<'_>) {
                #(#members)*
            }
        }
    }

    /// Generates `parse_within`, as [`Self::write_within`] does for writing.
    fn parse_within(&self, fields: &[(&Member, proc_macro2::Ident, TokenStream)]) -> TokenStream {
        if !self.may_stand_within(fields) {
            return TokenStream::new();
        }
        let cdr = tokens(&self.paths.cdr);
        let sizes = fields
            .iter()
            .map(|(_, _, ty)| quote! { .saturating_add(<#ty as #cdr::Parse<'a>>::SIZE_MAX) });
        let values = fields
            .iter()
            .map(|(_, field, ty)| quote! { #field: <#ty as #cdr::Parse<'a>>::parse_within(r) });
        quote! {
            const SIZE_MAX: usize = 0_usize #(#sizes)*;

            #[inline(always)]
            fn parse_within(r: &mut #cdr::ReadWindow<'_>) -> Self {
                Self { #(#values),* }
            }
        }
    }

    fn may_stand_within(&self, fields: &[(&Member, proc_macro2::Ident, TokenStream)]) -> bool {
        let all_fixed = fields
            .iter()
            .all(|(member, _, _)| self.abilities(&member.ty).copy);
        !fields.is_empty() && all_fixed
    }

    fn parse_record(
        &self,
        name: &proc_macro2::Ident,
        fields: &[(&Member, proc_macro2::Ident, TokenStream)],
        slices: &TokenStream,
    ) -> TokenStream {
        let cdr = tokens(&self.paths.cdr);
        let sizes = fields
            .iter()
            .map(|(_, _, ty)| quote! { <#ty as #cdr::Parse<'a>>::SIZE_MIN });
        let size = if fields.is_empty() {
            quote! { 1 }
        } else {
            quote! { #(#sizes)+* }
        };
        let checks = fields
            .iter()
            .filter_map(|(member, field, _)| self.check_read(&quote! { value.#field }, &member.ty));
        let checks: Vec<TokenStream> = checks.collect();
        let values = fields
            .iter()
            .map(|(_, field, ty)| quote! { #field: <#ty as #cdr::Parse<'a>>::parse(r)? });
        let value = if fields.is_empty() {
            quote! { Self }
        } else {
            quote! { Self { #(#values),* } }
        };
        let body = if checks.is_empty() {
            quote! { Ok(#value) }
        } else {
            quote! { let value = #value; #(#checks)* Ok(value) }
        };
        let reader = if fields.is_empty() {
            quote! { _ }
        } else {
            quote! { r }
        };
        let within = self.parse_within(fields);
        quote! {
            impl<'a> #cdr::Parse<'a> for #name {
                const SIZE_MIN: usize = #size;
                #within
                #[inline]
                fn parse(#reader: &mut #cdr::Reader<'a>) -> ::std::result::Result<Self, #cdr::DecodeError> {
                    #body
                }
                #slices
            }
        }
    }

    /// Generates `Typed`, whose TypeCode is built once.
    pub(crate) fn typed(
        &mut self,
        id: DefId,
        name: &proc_macro2::Ident,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let cdr = tokens(&self.paths.cdr);
        let code = tokens(&self.described(id, at, &mut Vec::new())?);
        Ok(quote! { #cdr::typed! { #name, #code } })
    }

    /// Generates an expression that builds the TypeCode of a struct, exception, union or enum from its parts.
    pub(crate) fn described(
        &mut self,
        id: DefId,
        at: &[String],
        around: &mut Vec<DefId>,
    ) -> Result<String, Refused> {
        let definition = self.model.definition(id);
        let (repository_id, name, cdr) = (
            &definition.repository_id,
            &definition.name,
            self.paths.cdr.clone(),
        );
        around.push(id);
        let code = match &definition.kind {
            DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                let mut members = Vec::new();
                for member in &structure.members {
                    let code = self.type_code(&member.ty, at, member.span, around)?;
                    members.push(format!(
                        "{cdr}::generated::member({:?}, &{code})",
                        member.name
                    ));
                }
                let exception = matches!(definition.kind, DefinitionKind::Exception(_));
                let constructor = if exception { "exception" } else { "structure" };
                format!(
                    "{cdr}::TypeCode::{constructor}({repository_id:?}, {name:?}, &[{}])",
                    members.join(", ")
                )
            }
            DefinitionKind::Union(union) => self.described_union(definition, union, at, around)?,
            DefinitionKind::Enum(enumerators) => {
                let names: Vec<String> = enumerators
                    .iter()
                    .map(|(name, _)| format!("{name:?}"))
                    .collect();
                format!(
                    "{cdr}::TypeCode::enumeration({repository_id:?}, {name:?}, &[{}])",
                    names.join(", ")
                )
            }
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
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL typedef", definition);
        let name = ident(self.names.name(id));
        let target = tokens(&self.owned(target, at, definition.span)?);
        Ok(quote! { #doc pub type #name = #target; })
    }

    pub(crate) fn constant(
        &mut self,
        id: DefId,
        definition: &Definition,
        ty: &Type,
        value: &Value,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL constant", definition);
        let name = ident(self.names.name(id));
        let owned = match value {
            Value::String(_) | Value::WideString(_) => "&str".to_owned(),
            _ => self.owned(ty, at, definition.span)?,
        };
        let owned = tokens(&owned);
        let value = tokens(&self.value(value, ty, at, definition.span)?);
        Ok(quote! { #doc pub const #name: #owned = #value; })
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
                format!("{path}::{}", ident(&self.enumerator(*id, *index)))
            }
        })
    }
}

pub(crate) fn field_names(members: &[Member]) -> Vec<String> {
    let mut taken = HashSet::new();
    members
        .iter()
        .map(|member| unique(snake_case(&member.name), &mut taken))
        .collect()
}
