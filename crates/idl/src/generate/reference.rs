//! Generates `IRef`, the reference through which clients call an interface.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::flat::template;
use super::interface::{
    Declared, inputs, joined, parameter_ident, results, strip_reference, tuple,
};
use super::names::ident;
use super::types::Passing;
use super::{Generator, Refused, tokens};
use crate::model::{DefId, Definition, Flavour, Interface, Operation, Type};

impl<'m> Generator<'m> {
    pub(super) fn reference_type(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let orb = self.paths.orb.tokens();
        let name = ident(&self.names.interface(id).reference.clone());
        let doc = format!(
            " A reference to an object of IDL interface `{}`.",
            definition.scoped_name
        );
        let (repository_id, idl_name) = (&definition.repository_id, &definition.name);
        let mut methods = Vec::new();
        for &declared in all {
            methods.push(self.stub(declared, at)?);
        }
        methods.extend(self.asynchronous_methods(id, all, at)?);
        let widenings = joined(self.widenings(&name, definition, interface, at)?);
        let methods = joined(methods);
        Ok(template!(
            self,
            [doc, name, orb, methods, repository_id, idl_name, widenings],
            quote! {
                #[doc = #doc]
                #[derive(Clone, Debug, PartialEq)]
                pub struct #name(#orb::ObjectRef);

                impl #name {
                    #methods
                }

                #orb::reference! { #name, #repository_id, #idl_name }

                #widenings
            }
        ))
    }

    /// Generates the conversions from a reference to a reference of each ancestor.
    fn widenings(
        &mut self,
        name: &Ident,
        definition: &Definition,
        interface: &Interface,
        at: &[String],
    ) -> Result<Vec<TokenStream>, Refused> {
        let from = tokens(&self.prelude("From"));
        let mut widenings = Vec::new();
        let has_reference = |id: &DefId| self.model.flavour(*id) == Some(Flavour::Plain);
        let ancestors: Vec<DefId> = interface
            .ancestors
            .iter()
            .copied()
            .filter(has_reference)
            .collect();
        for ancestor in ancestors {
            let base = tokens(&self.reference(ancestor, at, definition.span)?);
            widenings.push(quote! {
                impl #from<#name> for #base {
                    fn from(reference: #name) -> Self {
                        Self::unchecked_narrow(reference.0)
                    }
                }
            });
        }
        Ok(widenings)
    }

    fn stub(&mut self, declared: Declared<'_>, at: &[String]) -> Result<TokenStream, Refused> {
        let operation = declared.operation;
        let method = self.method(declared);
        let mut parameters = Vec::new();
        for parameter in inputs(operation) {
            let name = parameter_ident(&parameter.name);
            let ty = tokens(&self.argument(&parameter.ty, at, operation.span, "")?);
            parameters.push(quote! { #name: #ty });
        }
        let mut owned = Vec::new();
        for ty in results(operation) {
            owned.push(self.owned(ty, at, operation.span)?);
        }
        let reply = tuple(&owned);
        let error = self.error_type(declared, at)?;
        let result = self.result(&reply, declared, &error);
        let doc = self.part_doc(&self.operation_heading(operation), operation.whole);
        let wire_name = &operation.wire_name;
        let arguments = self.written_arguments(operation, true);
        let call = if operation.oneway {
            quote! { self.0.invoke_oneway(#wire_name, #arguments) }
        } else {
            let results = self.parsed_results(operation, &owned, true);
            let exceptions = self.parsed_exceptions(declared, at)?;
            template!(
                self,
                [wire_name, arguments, results, exceptions],
                quote! { self.0.invoke(#wire_name, #arguments, #results, #exceptions) }
            )
        };
        let parameters = quote! { #(#parameters),* };
        Ok(template!(
            self,
            [doc, method, parameters, result, call],
            quote! {
                #doc
                pub fn #method(&self, #parameters) -> #result {
                    #call
                }
            }
        ))
    }

    /// Generates the closure that writes the arguments. If `may_be_left`, the last argument's octets can stay
    /// unwritten.
    pub(super) fn written_arguments(
        &self,
        operation: &Operation,
        may_be_left: bool,
    ) -> TokenStream {
        let values: Vec<(&Type, TokenStream)> = inputs(operation)
            .map(|parameter| {
                let name = parameter_ident(&parameter.name);
                let by_value = matches!(
                    self.passing(&parameter.ty),
                    Passing::Value | Passing::Reference
                );
                (
                    &parameter.ty,
                    if by_value {
                        quote! { &#name }
                    } else {
                        quote! { #name }
                    },
                )
            })
            .collect();
        let is_shared = values.iter().any(|(ty, _)| self.may_share(ty));
        let may_be_left = may_be_left && operation.contexts.is_empty() && !is_shared;
        let lines = self.writes(&values, may_be_left);
        if is_shared {
            let cdr = self.paths.cdr.tokens();
            let context = (!operation.contexts.is_empty()).then(|| quote! { ?; w.write_u32(0) });
            return quote! { |w| #cdr::generated::share_write(w, |w| { #lines #context }) };
        }
        // An operation with a `context` clause sends context names and values after the arguments; here always none.
        let context = match operation.contexts.as_slice() {
            [] => None,
            _ => Some(quote! { w.write_u32(0) }),
        };
        match (values.is_empty(), context) {
            (true, None) => quote! { |_| Ok(()) },
            (true, Some(context)) => quote! { |w| #context },
            (false, None) if self.are_one_expression(&values) => quote! { |w| #lines },
            (false, None) => quote! { |w| { #lines } },
            (false, Some(context)) => quote! { |w| { #lines?; #context } },
        }
    }

    /// Whether [`Generator::writes`] returns an expression without statements before it.
    pub(super) fn are_one_expression(&self, values: &[(&Type, TokenStream)]) -> bool {
        let [(ty, value)] = values else {
            return false;
        };
        self.exceeds(&strip_reference(value), ty, false).is_none()
    }

    /// Generates code that writes values to `w`. Its result is that of the last write.
    pub(super) fn writes(&self, values: &[(&Type, TokenStream)], may_be_left: bool) -> TokenStream {
        let (cdr, write) = (self.paths.cdr.tokens(), self.paths.write.tokens());
        let mut lines = TokenStream::new();
        for (index, (ty, value)) in values.iter().enumerate() {
            lines.extend(self.check_written(&strip_reference(value), ty, false));
            let is_last = index + 1 == values.len();
            lines.extend(match is_last && may_be_left && self.may_leave(ty) {
                true => quote! { #cdr::Write::write_last(#value, w) },
                false => quote! { #write(#value, w) },
            });
            if !is_last {
                lines.extend(quote! { ?; });
            }
        }
        lines
    }

    /// Generates the closure that reads the results. It names their types, unless they are `known` from the context.
    pub(super) fn parsed_results(
        &self,
        operation: &Operation,
        owned: &[String],
        known: bool,
    ) -> TokenStream {
        let cdr = self.paths.cdr.tokens();
        let types: Vec<&Type> = results(operation).collect();
        if types.is_empty() {
            return quote! { |_| Ok(()) };
        }
        let parsed = self.parsed_each(&types, owned, known);
        if types.iter().any(|ty| self.may_share(ty)) {
            return quote! { |r| #cdr::generated::share_read(r, #parsed) };
        }
        parsed
    }

    /// Generates the closure of [`Generator::parsed_results`], in which values are not shared.
    fn parsed_each(&self, types: &[&Type], owned: &[String], known: bool) -> TokenStream {
        let (cdr, parse) = (self.paths.cdr.tokens(), self.paths.parse.tokens());
        let checked = types
            .iter()
            .any(|ty| self.exceeds(&quote! { result }, ty, true).is_some());
        let owned: Vec<TokenStream> = owned.iter().map(|ty| tokens(ty)).collect();
        let parsed = owned.iter().map(|ty| {
            if known && !checked {
                quote! { #parse(r) }
            } else {
                quote! { <#ty as #cdr::Parse<'_>>::parse(r) }
            }
        });
        if !checked {
            let parsed: Vec<TokenStream> = parsed.collect();
            return match &parsed[..] {
                [only] => quote! { |r| #only },
                _ => quote! { |r| Ok((#(#parsed?),*)) },
            };
        }
        let names: Vec<Ident> = (0..types.len())
            .map(|index| ident(&format!("result_{index}")))
            .collect();
        let lines = types
            .iter()
            .zip(parsed)
            .zip(&names)
            .map(|((ty, parsed), name)| {
                let check = self.check_read(&quote! { #name }, ty);
                quote! { let #name = #parsed?; #check }
            });
        let lines: Vec<TokenStream> = lines.collect();
        match &names[..] {
            [only] => quote! { |r| { #(#lines)* Ok(#only) } },
            _ => quote! { |r| { #(#lines)* Ok((#(#names),*)) } },
        }
    }

    /// Generates the closure that reads the exceptions.
    pub(super) fn parsed_exceptions(
        &mut self,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let parse = self.paths.parse.tokens();
        if declared.operation.raises.is_empty() {
            return Ok(quote! { |_, _| Ok(None) });
        }
        let error = self.error_type(declared, at)?;
        let mut arms = Vec::new();
        for &raised in &declared.operation.raises {
            let id = &self.model.definition(raised).repository_id;
            let variant = self.variant(raised, &declared.operation.raises);
            let cdr = self.paths.cdr.tokens();
            let parsed = if self.may_share(&Type::Named(raised)) {
                quote! { #cdr::generated::share_read(r, |r| #parse(r)) }
            } else {
                quote! { #parse(r) }
            };
            arms.push(quote! { #id => Ok(Some(#error::#variant(#parsed?))) });
        }
        Ok(quote! { |id, r| match id { #(#arms,)* _ => Ok(None) } })
    }
}
