//! `IRef`, by which an interface is called.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::interface::{Declared, inputs, parameter_ident, results, strip_reference, tuple};
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
        let orb = tokens(&self.orb);
        let (option, result) = (
            tokens(&self.prelude("Option")),
            tokens(&self.prelude("Result")),
        );
        let from = tokens(&self.prelude("From"));
        let name = ident(&self.names.interface(id).reference.clone());
        let doc = format!(
            " A reference to an object of IDL interface `{}`.",
            definition.scoped_name
        );
        let repository_id = &definition.repository_id;
        let mut methods = Vec::new();
        for &declared in all {
            methods.push(self.stub(declared, at)?);
        }
        methods.extend(self.asynchronous_methods(id, all, at)?);
        let widenings = self.widenings(&name, definition, interface, at)?;
        let wire = self.reference_on_the_wire(definition, &name);
        Ok(quote! {
            #[doc = #doc]
            #[derive(Clone, Debug, PartialEq)]
            pub struct #name(#orb::ObjectRef);

            impl #name {
                /// The interface's repository id.
                pub const REPOSITORY_ID: &'static str = #repository_id;

                /// The object as one of this interface, if it is; asks it where its reference does not tell.
                ///
                /// # Errors
                /// What stands in the way of asking.
                pub fn narrow(object: &#orb::ObjectRef) -> #result<#option<Self>, #orb::SystemException> {
                    Ok(object.is_a(Self::REPOSITORY_ID)?.then(|| Self(object.clone())))
                }

                /// The object as one of this interface, whatever it is; another's operations raise BAD_OPERATION.
                #[must_use]
                pub fn unchecked_narrow(object: #orb::ObjectRef) -> Self {
                    Self(object)
                }

                /// The reference without its interface.
                #[must_use]
                pub fn object(&self) -> &#orb::ObjectRef {
                    &self.0
                }

                #(#methods)*
            }

            impl #from<#name> for #orb::ObjectRef {
                fn from(reference: #name) -> Self {
                    reference.0
                }
            }

            #(#widenings)*

            #wire
        })
    }

    /// From a reference to one of each ancestor.
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

    /// How a reference is written and read, and its TypeCode.
    fn reference_on_the_wire(&self, definition: &Definition, name: &Ident) -> TokenStream {
        let (cdr, orb) = (tokens(&self.cdr), tokens(&self.orb));
        let (option, result) = (
            tokens(&self.prelude("Option")),
            tokens(&self.prelude("Result")),
        );
        let (repository_id, idl_name) = (&definition.repository_id, &definition.name);
        quote! {
            impl #cdr::WriteReference for #name {
                fn write_reference(&self, w: &mut #cdr::Writer<'_>) -> #result<(), #cdr::EncodeError> {
                    #cdr::WriteReference::write_reference(&self.0, w)
                }
            }

            impl #cdr::ParseReference for #name {
                fn parse_reference(r: &mut #cdr::Reader<'_>) -> #result<#option<Self>, #cdr::DecodeError> {
                    let object = <#orb::ObjectRef as #cdr::ParseReference>::parse_reference(r)?;
                    Ok(object.map(Self))
                }
            }

            impl #cdr::Typed for #name {
                fn type_code() -> #cdr::TypeCode {
                    static CODE: ::std::sync::LazyLock<#cdr::TypeCode> =
                        ::std::sync::LazyLock::new(|| #cdr::TypeCode::interface(#repository_id, #idl_name));
                    CODE.clone()
                }
            }
        }
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
        let result = tokens(&self.prelude("Result"));
        let doc = self.part_doc(&self.operation_heading(operation), operation.whole);
        let wire_name = &operation.wire_name;
        let arguments = self.written_arguments(operation, true);
        let call = if operation.oneway {
            quote! { self.0.invoke_oneway(#wire_name, #arguments) }
        } else {
            let results = self.parsed_results(operation, &owned);
            let exceptions = self.parsed_exceptions(declared, at)?;
            quote! { self.0.invoke(#wire_name, #arguments, #results, #exceptions) }
        };
        Ok(quote! {
            #doc
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = " What the object raises, or what stands in the way of calling it."]
            pub fn #method(&self, #(#parameters),*) -> #result<#reply, #error> {
                #call
            }
        })
    }

    /// The closure that writes the arguments; but for what the last of them leaves where it stands, where that `may_be_left`.
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
        let may_be_left = may_be_left && operation.contexts.is_empty();
        let lines = self.writes(&values, may_be_left);
        // Behind the arguments of an operation with a `context` clause stand the context's names and values: none.
        let context = match operation.contexts.as_slice() {
            [] => None,
            _ => Some(quote! { w.write_u32(0) }),
        };
        match (values.is_empty(), context) {
            (true, None) => quote! { |_| Ok(()) },
            (true, Some(context)) => quote! { |w| #context },
            (false, None) => quote! { |w| { #lines } },
            (false, Some(context)) => quote! { |w| { #lines?; #context } },
        }
    }

    /// Writes values to `w`, the last one's result being the result of all.
    pub(super) fn writes(&self, values: &[(&Type, TokenStream)], may_be_left: bool) -> TokenStream {
        let cdr = tokens(&self.cdr);
        let mut lines = TokenStream::new();
        for (index, (ty, value)) in values.iter().enumerate() {
            lines.extend(self.check_written(&strip_reference(value), ty, false));
            let is_last = index + 1 == values.len();
            lines.extend(match is_last && may_be_left && self.may_leave(ty) {
                true => quote! { #cdr::Write::write_last(#value, w) },
                false => quote! { #cdr::Write::write(#value, w) },
            });
            if !is_last {
                lines.extend(quote! { ?; });
            }
        }
        lines
    }

    /// The closure that reads the results.
    pub(super) fn parsed_results(&self, operation: &Operation, owned: &[String]) -> TokenStream {
        let cdr = tokens(&self.cdr);
        let types: Vec<&Type> = results(operation).collect();
        if types.is_empty() {
            return quote! { |_| Ok(()) };
        }
        let checked = types
            .iter()
            .any(|ty| self.exceeds(&quote! { result }, ty, true).is_some());
        let owned: Vec<TokenStream> = owned.iter().map(|ty| tokens(ty)).collect();
        if !checked {
            return match &owned[..] {
                [only] => quote! { |r| <#only as #cdr::Parse<'_>>::parse(r) },
                _ => quote! { |r| Ok((#(<#owned as #cdr::Parse<'_>>::parse(r)?),*)) },
            };
        }
        let names: Vec<Ident> = (0..types.len())
            .map(|index| ident(&format!("result_{index}")))
            .collect();
        let lines = types
            .iter()
            .zip(&owned)
            .zip(&names)
            .map(|((ty, owned), name)| {
                let check = self.check_read(&quote! { #name }, ty);
                quote! { let #name = <#owned as #cdr::Parse<'_>>::parse(r)?; #check }
            });
        let lines: Vec<TokenStream> = lines.collect();
        match &names[..] {
            [only] => quote! { |r| { #(#lines)* Ok(#only) } },
            _ => quote! { |r| { #(#lines)* Ok((#(#names),*)) } },
        }
    }

    /// The closure that reads the exceptions.
    pub(super) fn parsed_exceptions(
        &mut self,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let cdr = tokens(&self.cdr);
        if declared.operation.raises.is_empty() {
            return Ok(quote! { |_, _| Ok(None) });
        }
        let error = self.error_type(declared, at)?;
        let mut arms = Vec::new();
        for &raised in &declared.operation.raises {
            let id = &self.model.definition(raised).repository_id;
            let variant = self.variant(raised, &declared.operation.raises);
            arms.push(quote! { #id => Ok(Some(#error::#variant(#cdr::Parse::parse(r)?))) });
        }
        Ok(quote! { |id, r| match id { #(#arms,)* _ => Ok(None) } })
    }
}
