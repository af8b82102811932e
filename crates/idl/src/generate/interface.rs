//! Generates interfaces: the service trait and the operations' errors. Other modules generate reference and skeleton.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::flat::template;
use super::names::{ident, snake_case};
use super::types::Passing;
use super::{Generator, Refused, tokens};
use crate::model::{
    Access, DefId, Definition, DefinitionKind, Flavour, Interface, Mode, Operation, Parameter, Type,
};

/// An operation with the interface that declares it.
#[derive(Clone, Copy)]
pub(super) struct Declared<'m> {
    pub(super) interface: DefId,
    pub(super) index: usize,
    pub(super) operation: &'m Operation,
}

impl<'m> Generator<'m> {
    pub(crate) fn interface(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &'m Interface,
        at: &[String],
    ) -> Result<(), Refused> {
        let all = self.all_operations(id, interface);
        if interface.flavour != Flavour::Plain {
            let made = self.trait_alone(id, definition, interface, &all, at)?;
            self.put(made);
            return Ok(());
        }
        if interface.defined {
            let service = self.service(id, definition, interface, &all, at)?;
            self.put(service);
            let errors = self.error_enums(&all, id, at)?;
            self.put(errors);
        }
        let reference = self.reference_type(id, definition, interface, &all, at)?;
        self.put(reference);
        if interface.defined {
            let skeleton = self.skeleton(id, definition, interface, &all, at)?;
            self.put(skeleton);
            let asynchronous = self.asynchronous_types(id, definition, interface, &all, at)?;
            self.put(asynchronous);
        }
        Ok(())
    }

    /// Generates a local or an abstract interface: only the trait that a servant implements. A local interface's
    /// operations are never marshalled. An abstract interface's operations are in the references and skeletons of
    /// derived interfaces.
    fn trait_alone(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        if !interface.defined {
            return Ok(TokenStream::new());
        }
        self.is_in_local = interface.flavour == Flavour::Local;
        let made = self.error_enums(all, id, at).and_then(|errors| {
            let service = self.service(id, definition, interface, all, at)?;
            Ok(quote! { #service #errors })
        });
        self.is_in_local = false;
        made
    }

    /// Returns the interface's own operations, then those of every ancestor.
    fn all_operations(&self, id: DefId, interface: &'m Interface) -> Vec<Declared<'m>> {
        let model = self.model;
        let ancestors =
            interface
                .ancestors
                .iter()
                .filter_map(|&id| match &model.definition(id).kind {
                    DefinitionKind::Interface(ancestor) => Some((id, ancestor)),
                    _ => None,
                });
        [(id, interface)]
            .into_iter()
            .chain(ancestors)
            .flat_map(|(interface, of)| {
                of.operations
                    .iter()
                    .enumerate()
                    .map(move |(index, operation)| Declared {
                        interface,
                        index,
                        operation,
                    })
            })
            .collect()
    }

    pub(super) fn method(&self, declared: Declared<'_>) -> Ident {
        ident(&self.names.interface(declared.interface).methods[declared.index])
    }

    /// Returns the error type of an operation: its own enum if it has a `raises` clause, otherwise a system exception.
    pub(super) fn error_type(
        &mut self,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        match self.names.interface(declared.interface).errors[declared.index].clone() {
            Some(name) => Ok(tokens(&self.path(
                declared.interface,
                name,
                at,
                declared.operation.span,
            )?)),
            None => {
                let orb = self.paths.orb.tokens();
                Ok(template!(self, [orb], quote! { #orb::SystemException }))
            }
        }
    }

    /// Returns the result type of an operation.
    pub(super) fn result(
        &mut self,
        reply: &TokenStream,
        declared: Declared<'_>,
        error: &TokenStream,
    ) -> TokenStream {
        if self.names.interface(declared.interface).errors[declared.index].is_none() {
            let orb = self.paths.orb.tokens();
            return template!(self, [orb, reply], quote! { #orb::Result<#reply> });
        }
        let result = tokens(&self.prelude("Result"));
        quote! { #result<#reply, #error> }
    }

    fn is_own(declared: &Declared<'_>, id: DefId) -> bool {
        declared.interface == id
    }

    // Errors.

    pub(super) fn error_enums(
        &mut self,
        all: &[Declared<'m>],
        id: DefId,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let mut out = TokenStream::new();
        for &declared in all.iter().filter(|declared| Self::is_own(declared, id)) {
            if !declared.operation.raises.is_empty() {
                out.extend(self.error_enum(declared, at)?);
            }
        }
        Ok(out)
    }

    fn error_enum(
        &mut self,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let orb = self.paths.orb.tokens();
        let name = self.error_type(declared, at)?;
        let mut variants = Vec::new();
        for &raised in &declared.operation.raises {
            let path = self.path(
                raised,
                self.names.name(raised).to_owned(),
                at,
                declared.operation.span,
            )?;
            variants.push((
                self.variant(raised, &declared.operation.raises),
                tokens(&path),
            ));
        }
        let names: Vec<&Ident> = variants.iter().map(|(name, _)| name).collect();
        let paths: Vec<&TokenStream> = variants.iter().map(|(_, path)| path).collect();
        let docs = declared.operation.raises.iter().map(|&raised| {
            let text = format!(" `{}`.", self.model.definition(raised).scoped_name);
            quote! { #[doc = #text] }
        });
        let doc = format!(" What `{}` may fail with.", declared.operation.name);
        Ok(quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            pub enum #name {
                #(#docs #names(#paths),)*
                /// A system exception.
                System(#orb::SystemException),
            }

            #orb::operation_error! { #name { #(#names(#paths)),* } }
        })
    }

    /// Returns the variant of an exception: its name, prefixed with the parent's name if the name is ambiguous.
    pub(super) fn variant(&self, raised: DefId, all: &[DefId]) -> Ident {
        let name = self.names.name(raised);
        let alike = all
            .iter()
            .filter(|&&other| self.names.name(other) == name)
            .count()
            > 1
            || name == "System";
        match self.model.definition(raised).parent.filter(|_| alike) {
            Some(parent) => ident(&format!(
                "{}{name}",
                super::names::camel_case(&self.model.definition(parent).name)
            )),
            None => ident(name),
        }
    }

    // The trait.

    fn service(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("Serves IDL interface", definition);
        let name = ident(self.names.name(id));
        let bounds = self.bounds(interface, definition, at)?;
        let (mut methods, mut forwards) = (Vec::new(), Vec::new());
        for &declared in all.iter().filter(|declared| Self::is_own(declared, id)) {
            let signature = self.service_signature(declared, at)?;
            let heading = self.operation_heading(declared.operation);
            let doc = self.part_doc(&heading, declared.operation.whole);
            forwards.push(quote! { #signature; });
            methods.push(template!(
                self,
                [doc, signature],
                quote! { #doc #signature; }
            ));
        }
        let (methods, forwards) = (joined(methods), joined(forwards));
        let (orb, arc) = (self.paths.orb.tokens(), self.paths.arc.tokens());
        Ok(template!(
            self,
            [doc, name, bounds, methods, orb, arc, forwards],
            quote! {
                #doc
                pub trait #name: #bounds {
                    #methods
                }

                impl<T: #name + ?Sized> #name for #arc<T> {
                    #orb::forward! { arc #forwards }
                }
            }
        ))
    }

    fn bounds(
        &mut self,
        interface: &Interface,
        definition: &Definition,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        if interface.bases.is_empty() {
            let [send, sync] = ["Send", "Sync"].map(|name| tokens(&self.prelude(name)));
            return Ok(quote! { #send + #sync + 'static });
        }
        let mut bases = Vec::new();
        for &base in &interface.bases {
            bases.push(self.path(base, self.names.name(base).to_owned(), at, definition.span)?);
        }
        Ok(tokens(&bases.join(" + ")))
    }

    pub(super) fn operation_heading(&self, operation: &Operation) -> String {
        match operation.attribute {
            None => format!("IDL operation `{}`.", operation.name),
            Some(Access::Get) => format!("IDL attribute `{}`.", operation.name),
            Some(Access::Set) => format!("Sets IDL attribute `{}`.", operation.name),
        }
    }

    pub(super) fn service_signature(
        &mut self,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let operation = declared.operation;
        let borrows =
            results(operation).any(|ty| matches!(self.passing(ty), Passing::Text | Passing::Slice));
        let lifetime = if borrows { "'a" } else { "" };
        let mut parameters = Vec::new();
        for parameter in inputs(operation) {
            let name = parameter_ident(&parameter.name);
            let ty = tokens(&self.argument(&parameter.ty, at, operation.span, lifetime)?);
            parameters.push(quote! { #name: #ty });
        }
        let mut replies = Vec::new();
        for ty in results(operation) {
            replies.push(self.reply(ty, at, operation.span)?);
        }
        let reply = tuple(&replies);
        let method = self.method(declared);
        let error = self.error_type(declared, at)?;
        let (generics, receiver) = if borrows {
            (quote! { <'a> }, quote! { &'a self })
        } else {
            (quote! {}, quote! { &self })
        };
        let result = self.result(&reply, declared, &error);
        let parameters = quote! { #(#parameters),* };
        Ok(template!(
            self,
            [method, generics, receiver, parameters, result],
            quote! { fn #method #generics (#receiver, #parameters) -> #result }
        ))
    }
}

/// Returns tokens behind each other.
pub(super) fn joined(parts: Vec<TokenStream>) -> TokenStream {
    parts.into_iter().collect()
}

/// Returns the parameters that are sent with the request.
pub(super) fn inputs(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    operation
        .parameters
        .iter()
        .filter(|parameter| parameter.mode != Mode::Out)
}

/// Returns the types that are sent with the reply: the result, then `inout` and `out` parameters in order.
pub(super) fn results(operation: &Operation) -> impl Iterator<Item = &Type> {
    let parameters = operation
        .parameters
        .iter()
        .filter(|parameter| parameter.mode != Mode::In);
    operation
        .result
        .iter()
        .chain(parameters.map(|parameter| &parameter.ty))
}

/// Returns `()` for no type, the type itself for one, and a tuple for more.
pub(super) fn tuple(types: &[String]) -> TokenStream {
    match types {
        [only] => tokens(only),
        _ => tokens(&format!("({})", types.join(", "))),
    }
}

/// Returns a parameter's name, changed if generated bodies use that name.
pub(super) fn parameter_ident(name: &str) -> Ident {
    let name = snake_case(name);
    match name.as_str() {
        "r" | "w" | "id" | "request" | "exception" => ident(&format!("{name}_")),
        _ if name.starts_with("result_") => ident(&format!("{name}_")),
        _ => ident(&name),
    }
}

/// Removes a leading `&` from an expression.
pub(super) fn strip_reference(value: &TokenStream) -> TokenStream {
    let mut tokens = value.clone().into_iter().peekable();
    if matches!(tokens.peek(), Some(proc_macro2::TokenTree::Punct(punct)) if punct.as_char() == '&')
    {
        tokens.next();
    }
    tokens.collect()
}
