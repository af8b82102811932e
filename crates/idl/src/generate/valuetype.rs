//! Generates valuetypes: a struct of the state, and the traits by which its values are held (`spec/mapping.md`).

use proc_macro2::TokenStream;
use quote::quote;

use super::data::Described;
use super::interface::{Declared, inputs, parameter_ident};
use super::names::{ident, snake_case};
use super::{Generator, Refused, tokens};
use crate::model::implied::EXCEPTION_HOLDER;
use crate::model::{DefId, Definition, DefinitionKind, Operation, Type, ValueForm, Valuetype};
use crate::text::source::Span;

impl<'m> Generator<'m> {
    /// Whether this is the value that reports an exception to a reply handler: the ORB has its own type for it.
    pub(super) fn is_exception_holder(&self, id: DefId) -> bool {
        self.model.definition(id).repository_id == EXCEPTION_HOLDER
    }

    /// Returns the handle of a value: `Arc<dyn PointValue>`, or `Arc<Boxed>`.
    pub(super) fn held(&mut self, id: DefId, at: &[String], span: Span) -> Result<String, Refused> {
        let form = match &self.model.definition(id).kind {
            DefinitionKind::Value(value) if value.interface.defined => &value.form,
            _ => return Err(self.refuse(span, "this valuetype is declared, but never defined")),
        };
        let dynamic = if matches!(form, ValueForm::Box(_)) {
            ""
        } else {
            "dyn "
        };
        let path = self.path(id, self.names.value(id).held.clone(), at, span)?;
        Ok(format!("{}<{dynamic}{path}>", self.paths.arc))
    }

    /// Returns the handle of a value of any type.
    pub(super) fn held_base(&self) -> String {
        format!(
            "{}<dyn {}::valuetype::ValueBase>",
            self.paths.arc, self.paths.cdr
        )
    }

    pub(super) fn valuetype(
        &mut self,
        id: DefId,
        definition: &Definition,
        value: &'m Valuetype,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        if !value.interface.defined || self.is_exception_holder(id) {
            return Ok(TokenStream::new());
        }
        if let ValueForm::Box(boxed) = &value.form {
            return self.value_box(id, definition, boxed, at);
        }
        let all = self.declared(id, value);
        let errors = self.error_enums(&all, id, at)?;
        let operations = self.value_operations(id, definition, value, &all, at)?;
        let init = self.init(id, definition, value, &all, at)?;
        let held = self.held_trait(id, definition, value, at)?;
        let state = match value.form {
            ValueForm::Abstract => TokenStream::new(),
            _ => self.state(id, definition, value, at)?,
        };
        Ok(quote! { #state #held #operations #init #errors })
    }

    fn declared(&self, id: DefId, value: &'m Valuetype) -> Vec<Declared<'m>> {
        let operations = value.interface.operations.iter().enumerate();
        operations
            .map(|(index, operation)| Declared {
                interface: id,
                index,
                operation,
            })
            .collect()
    }

    fn value_box(
        &mut self,
        id: DefId,
        definition: &Definition,
        boxed: &Type,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL value box", definition);
        let (name, cdr) = (ident(self.names.name(id)), self.paths.cdr.tokens());
        let derives = self.state_derives(&[boxed]);
        let ty = tokens(&self.owned(boxed, at, definition.span)?);
        let code = tokens(&self.described(id, at, &mut Vec::new())?.whole());
        let repository_id = &definition.repository_id;
        Ok(quote! {
            #doc
            #derives
            pub struct #name(pub #ty);
            #cdr::valuetype! { box #name #repository_id #ty, code #code }
        })
    }

    /// Generates the struct of the state.
    fn state(
        &mut self,
        id: DefId,
        definition: &Definition,
        value: &Valuetype,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("State of IDL valuetype", definition);
        let (name, cdr) = (ident(self.names.name(id)), self.paths.cdr.tokens());
        let fields: Vec<_> = self
            .names
            .value(id)
            .fields
            .iter()
            .map(|field| ident(field))
            .collect();
        let mut own = Vec::new();
        for (part, field) in value.state.iter().zip(&fields[1..]) {
            let ty = tokens(&self.owned(&part.member.ty, at, part.member.span)?);
            let doc = self.part_doc(&format!("`{}`.", part.member.name), part.member.span);
            let visibility = if part.is_public {
                quote! { pub }
            } else {
                quote! { pub(crate) }
            };
            own.push((
                quote! { #doc #visibility #field: #ty },
                quote! { #field: #ty },
            ));
        }
        let base = match value.base {
            Some(base) => {
                let path =
                    self.path(base, self.names.name(base).to_owned(), at, definition.span)?;
                Some((&fields[0], tokens(&path)))
            }
            None => None,
        };
        let derives = self.state_derives(&self.state_types(value));
        let members = own.iter().map(|(member, _)| member);
        let base_member = base.iter().map(|(field, ty)| {
            quote! { #[doc = " The state of the base."] pub #field: #ty, }
        });
        let deref = base.iter().map(|(field, ty)| {
            quote! { #cdr::valuetype! { @deref #name #field: #ty } }
        });
        let base_field = base.iter().map(|(field, ty)| quote! { #field: #ty });
        let fields = own.iter().map(|(_, field)| field);
        let (held, impls) = self.held_as(id, &name, value, at, definition.span)?;
        let ids = self.ids(id);
        let form = tokens(match value.form {
            ValueForm::Truncatable => "Truncatable",
            ValueForm::Custom => "Custom",
            _ => "Plain",
        });
        let code = tokens(&self.described(id, at, &mut Vec::new())?.whole());
        Ok(quote! {
            #doc
            #derives
            pub struct #name { #(#base_member)* #(#members),* }
            #(#deref)*
            #impls
            #cdr::valuetype! {
                #name as [#(dyn #held),*] ids [#(#ids),*] #form { #(#base_field)* } { #(#fields),* } code #code
            }
        })
    }

    /// Implements the traits that a struct is held by, its own and its ancestors'. Also returns them.
    fn held_as(
        &mut self,
        id: DefId,
        name: &proc_macro2::Ident,
        value: &Valuetype,
        at: &[String],
        span: Span,
    ) -> Result<(Vec<TokenStream>, TokenStream), Refused> {
        let (mut held, mut impls) = (Vec::new(), TokenStream::new());
        for id in [id]
            .into_iter()
            .chain(value.interface.ancestors.iter().copied())
        {
            let DefinitionKind::Value(ancestor) = &self.model.definition(id).kind else {
                continue;
            };
            let path = tokens(&self.path(id, self.names.value(id).held.clone(), at, span)?);
            let state = if ancestor.form == ValueForm::Abstract {
                TokenStream::new()
            } else {
                let state = tokens(&self.path(id, self.names.name(id).to_owned(), at, span)?);
                let accessor = self.accessor(id);
                quote! { fn #accessor(&self) -> &#state { self } }
            };
            impls.extend(quote! { impl #path for #name { #state } });
            held.push(path);
        }
        Ok((held, impls))
    }

    /// The method that lends the state of a value as this type: `as_point`.
    fn accessor(&self, id: DefId) -> proc_macro2::Ident {
        ident(&format!(
            "as_{}",
            snake_case(&self.model.definition(id).name)
        ))
    }

    /// The types of the state, those of the bases too.
    fn state_types<'a>(&'a self, value: &'a Valuetype) -> Vec<&'a Type> {
        let own = value.state.iter().map(|part| &part.member.ty);
        let base = value.base.map(|base| &self.model.definition(base).kind);
        match base {
            Some(DefinitionKind::Value(base)) => self.state_types(base),
            _ => Vec::new(),
        }
        .into_iter()
        .chain(own.map(|ty| self.model.resolve(ty)))
        .collect()
    }

    fn state_derives(&self, types: &[&Type]) -> TokenStream {
        let has_default = types
            .iter()
            .all(|ty| self.abilities(ty).default && !self.is_long_array(ty));
        let default = has_default.then(|| quote! { Default, });
        quote! { #[derive(Clone, Debug, #default PartialEq)] }
    }

    /// Repository ids: the type's own, and those of the bases that it may be truncated to.
    fn ids(&self, id: DefId) -> Vec<String> {
        let definition = self.model.definition(id);
        let mut ids = vec![definition.repository_id.clone()];
        if let DefinitionKind::Value(value) = &definition.kind
            && value.form == ValueForm::Truncatable
            && let Some(base) = value.base
        {
            ids.extend(self.ids(base));
        }
        ids
    }

    /// Generates the trait by which values are held.
    fn held_trait(
        &mut self,
        id: DefId,
        definition: &Definition,
        value: &Valuetype,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (held, cdr) = (ident(&self.names.value(id).held), self.paths.cdr.tokens());
        let doc = format!(
            " A value of IDL valuetype `{}`, or of one derived from it.",
            definition.scoped_name
        );
        let mut bounds = Vec::new();
        let parents = value.base.iter().chain(&value.abstract_bases);
        for &parent in parents {
            let name = self.names.value(parent).held.clone();
            bounds.push(tokens(&self.path(parent, name, at, definition.span)?));
        }
        if bounds.is_empty() {
            bounds.push(quote! { #cdr::valuetype::ValueBase });
        }
        for &interface in &value.supports {
            let name = self.names.name(interface).to_owned();
            bounds.push(tokens(&self.path(interface, name, at, definition.span)?));
        }
        if self.own_operations(value).next().is_some() {
            let operations = ident(&self.names.value(id).operations);
            bounds.push(quote! { #operations });
        }
        let repository_id = &definition.repository_id;
        if value.form == ValueForm::Abstract {
            let code = tokens(&self.described(id, at, &mut Vec::new())?.whole());
            return Ok(quote! {
                #[doc = #doc]
                pub trait #held: #(#bounds)+* {}
                #cdr::valuetype! { @abstract #held #repository_id code #code }
            });
        }
        let (name, accessor) = (ident(self.names.name(id)), self.accessor(id));
        let lent = format!(" The state of `{}`.", definition.scoped_name);
        Ok(quote! {
            #[doc = #doc]
            pub trait #held: #(#bounds)+* {
                #[doc = #lent]
                fn #accessor(&self) -> &#name;
            }
            #cdr::valuetype! { @held #held #accessor #name #repository_id }
        })
    }

    fn own_operations<'v>(&self, value: &'v Valuetype) -> impl Iterator<Item = &'v Operation> {
        let operations = value.interface.operations.iter().enumerate();
        operations
            .filter(|(index, _)| !value.factories.contains(index))
            .map(|(_, operation)| operation)
    }

    /// Generates the trait of the operations, which the user implements for the struct.
    fn value_operations(
        &mut self,
        id: DefId,
        definition: &Definition,
        value: &Valuetype,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let mut methods = Vec::new();
        self.is_in_local = true;
        for &declared in all {
            if value.factories.contains(&declared.index) {
                continue;
            }
            let doc = self.part_doc(
                &self.operation_heading(declared.operation),
                declared.operation.whole,
            );
            let signature = self.service_signature(declared, at);
            match signature {
                Ok(signature) => methods.push(quote! { #doc #signature; }),
                Err(refused) => {
                    self.is_in_local = false;
                    return Err(refused);
                }
            }
        }
        self.is_in_local = false;
        if methods.is_empty() {
            return Ok(TokenStream::new());
        }
        let name = ident(&self.names.value(id).operations);
        let doc = format!(
            " The operations of IDL valuetype `{}`: implement them for its struct, and for those derived from it.",
            definition.scoped_name
        );
        Ok(quote! { #[doc = #doc] pub trait #name { #(#methods)* } })
    }

    /// Generates the trait of the factories.
    fn init(
        &mut self,
        id: DefId,
        definition: &Definition,
        value: &Valuetype,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let mut functions = Vec::new();
        for &declared in all {
            if !value.factories.contains(&declared.index) {
                continue;
            }
            let operation = declared.operation;
            let mut parameters = Vec::new();
            for parameter in inputs(operation) {
                let name = parameter_ident(&parameter.name);
                let ty = tokens(&self.argument(&parameter.ty, at, operation.span, "")?);
                parameters.push(quote! { #name: #ty });
            }
            let error = self.error_type(declared, at)?;
            let result = self.result(&quote! { Self }, declared, &error);
            let method = self.method(declared);
            let doc = self.part_doc(
                &format!("IDL factory `{}`.", operation.name),
                operation.whole,
            );
            functions.push(quote! { #doc fn #method(#(#parameters),*) -> #result; });
        }
        if functions.is_empty() {
            return Ok(TokenStream::new());
        }
        let name = ident(&self.names.value(id).init);
        let doc = format!(
            " The factories of IDL valuetype `{}`: implement them for its struct.",
            definition.scoped_name
        );
        Ok(quote! { #[doc = #doc] pub trait #name: Sized { #(#functions)* } })
    }

    /// Returns an expression that builds the TypeCode.
    pub(super) fn described_value(
        &mut self,
        definition: &Definition,
        value: &Valuetype,
        at: &[String],
        around: &mut Vec<DefId>,
    ) -> Result<Described, Refused> {
        let cdr = self.paths.cdr.clone();
        let (id, name) = (&definition.repository_id, &definition.name);
        if let ValueForm::Box(boxed) = &value.form {
            let boxed = self.type_code(boxed, at, definition.span, around)?;
            return Ok(Described::Whole(format!(
                "{cdr}::TypeCode::value_box({id:?}, {name:?}, &{boxed})"
            )));
        }
        let modifier = match value.form {
            ValueForm::Custom => "Custom",
            ValueForm::Abstract => "Abstract",
            ValueForm::Truncatable => "Truncatable",
            _ => "None",
        };
        let base = match value.base {
            Some(base) => {
                let code = self.type_code(&Type::Named(base), at, definition.span, around)?;
                format!("Some(&{code})")
            }
            None => "None".to_owned(),
        };
        let mut parts = Vec::new();
        for part in &value.state {
            let code = self.type_code(&part.member.ty, at, part.member.span, around)?;
            parts.push(format!(
                "{cdr}::generated::state({:?}, &{code}, {})",
                part.member.name, part.is_public
            ));
        }
        let head = format!(
            "{cdr}::TypeCode::value({id:?}, {name:?}, {cdr}::typecode::ValueModifier::{modifier}, {base}, "
        );
        Ok(Described::List { head, parts })
    }

    /// Whether values of the type may contain values that can be shared.
    pub(super) fn may_share(&self, ty: &Type) -> bool {
        self.traits.shares(self.model, ty)
    }
}
