//! Generates `ISkeleton`, which adapts an implementation of the service trait to a servant.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::flat::template;
use super::interface::{Declared, inputs, joined, parameter_ident, results};
use super::names::ident;
use super::types::Passing;
use super::{Generator, Refused, tokens};
use crate::model::implied::REPLY_HANDLER;
use crate::model::{DefId, Definition, Interface, Type};

impl<'m> Generator<'m> {
    pub(super) fn skeleton(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let orb = self.paths.orb.tokens();
        let (request, served) = (self.paths.request.tokens(), self.paths.served.tokens());
        let service = ident(self.names.name(id));
        let name = ident(&self.names.interface(id).skeleton.clone());
        let doc = format!(
            " Makes a [`{service}`] a servant of IDL interface `{}`.",
            definition.scoped_name
        );
        let ids = self.repository_ids(id, definition, interface);
        let (mut arms, mut methods) = (Vec::new(), Vec::new());
        for &declared in all {
            let serve = ident(&format!(
                "serve_{}",
                self.names.interface(declared.interface).methods[declared.index]
            ));
            let wire_name = Literal::byte_string(declared.operation.wire_name.as_bytes());
            arms.push(template!(
                self,
                [wire_name, serve],
                quote! { #wire_name => self.#serve(request), }
            ));
            methods.push(self.serve(&serve, declared, at)?);
        }
        let (arms, methods) = (joined(arms), joined(methods));
        Ok(template!(
            self,
            [doc, name, service, methods, orb, ids, request, served, arms],
            quote! {
            #[doc = #doc]
            #[derive(Clone, Debug)]
            pub struct #name<S: #service>(S);

            impl<S: #service> #name<S> {
                /// Puts a servant behind the skeleton; an `Arc` of it serves as well.
                #[must_use]
                pub fn new(servant: S) -> Self {
                    Self(servant)
                }

                /// The servant.
                #[must_use]
                pub fn servant(&self) -> &S {
                    &self.0
                }

                #methods
            }

            impl<S: #service> #orb::Servant for #name<S> {
                fn repository_ids(&self) -> &'static [&'static str] {
                    &[#ids]
                }

                fn dispatch(&self, request: &mut #request) -> #served {
                    match request.operation() {
                        #arms
                        _ => Err(#orb::generated::unknown_operation()),
                    }
                }
            }
            }
        ))
    }

    /// The ids of all interfaces that the servant has, its own first.
    fn repository_ids(
        &self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
    ) -> TokenStream {
        let ancestors = interface
            .ancestors
            .iter()
            .map(|&ancestor| &self.model.definition(ancestor).repository_id);
        let ids = [&definition.repository_id]
            .into_iter()
            .chain(ancestors)
            .map(String::as_str)
            .chain(self.handlers.contain(id).then_some(REPLY_HANDLER));
        quote! { #(#ids),* }
    }

    /// Generates the method that reads an operation's arguments, calls the servant and writes the results.
    fn serve(
        &mut self,
        serve: &Ident,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (cdr, parse) = (self.paths.cdr.tokens(), self.paths.parse.tokens());
        let (request, served) = (self.paths.request.tokens(), self.paths.served.tokens());
        let operation = declared.operation;
        let is_shared = inputs(operation).any(|parameter| self.may_share(&parameter.ty));
        let reader = (inputs(operation).next().is_some()).then(|| match is_shared {
            true => quote! { #cdr::share! { r, request.arguments() } },
            false => quote! { let r = &mut request.arguments(); },
        });
        let (mut reads, mut passed) = (Vec::new(), Vec::new());
        for parameter in inputs(operation) {
            let name = parameter_ident(&parameter.name);
            let passing = self.passing(&parameter.ty);
            let ty = tokens(&match passing {
                Passing::Text => format!("{}<'_, str>", self.paths.cow),
                Passing::Slice => {
                    let element = self.element(&parameter.ty, at, operation.span)?;
                    format!("{}<'_, [{element}]>", self.paths.cow)
                }
                _ => self.owned(&parameter.ty, at, operation.span)?,
            });
            let check = self.exceeds(&quote! { #name }, &parameter.ty, false);
            let check = check.map(|exceeds| {
                quote! { if #exceeds { return Err(r.error(#cdr::DecodeFact::BoundExceeded).into()); } }
            });
            reads.push(quote! { let #name: #ty = #parse(r)?; #check });
            passed.push(match passing {
                Passing::Value => quote! { #name },
                Passing::Reference => quote! { #name.as_ref() },
                _ => quote! { &#name },
            });
        }
        let service = tokens(&self.path(
            declared.interface,
            self.names.name(declared.interface).to_owned(),
            at,
            operation.span,
        )?);
        let method = self.method(declared);
        let passed = quote! { #(#passed),* };
        let call = template!(
            self,
            [service, method, passed],
            quote! { <S as #service>::#method(&self.0, #passed) }
        );
        let body = self.answer(declared, &call, at)?;
        let reads = joined(reads);
        Ok(template!(
            self,
            [serve, request, served, reader, reads, body],
            quote! {
                fn #serve(&self, request: &mut #request) -> #served {
                    #reader
                    #reads
                    #body
                }
            }
        ))
    }

    /// Generates code that calls the servant, and writes its results or exception.
    fn answer(
        &mut self,
        declared: Declared<'_>,
        call: &TokenStream,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let types: Vec<&Type> = results(declared.operation).collect();
        let names: Vec<Ident> = (0..types.len())
            .map(|index| ident(&format!("result_{index}")))
            .collect();
        let pattern = match &names[..] {
            [] => quote! { () },
            [only] => quote! { #only },
            _ => quote! { (#(#names),*) },
        };
        let values: Vec<(&Type, TokenStream)> = types
            .into_iter()
            .zip(names.iter().map(|name| quote! { &#name }))
            .collect();
        let written = if values.is_empty() {
            quote! { request.reply().map(drop) }
        } else {
            let lines = self.writes(&values, false);
            if values.iter().any(|(ty, _)| self.may_share(ty)) {
                let cdr = self.paths.cdr.tokens();
                quote! { request.reply_with(|w| #cdr::generated::share_write(w, |w| { #lines })) }
            } else if self.are_one_expression(&values) {
                quote! { request.reply_with(|w| #lines) }
            } else {
                quote! { request.reply_with(|w| { #lines }) }
            }
        };
        if declared.operation.raises.is_empty() {
            return Ok(if values.is_empty() {
                quote! { #call?; #written }
            } else {
                quote! { let #pattern = #call?; #written }
            });
        }
        let error = self.error_type(declared, at)?;
        let raised: Vec<Ident> = declared
            .operation
            .raises
            .iter()
            .map(|&raised| self.variant(raised, &declared.operation.raises))
            .collect();
        let cdr = self.paths.cdr.tokens();
        let raises = declared.operation.raises.iter().map(|&raised| {
            if self.may_share(&Type::Named(raised)) {
                quote! { request.raise_with(|w| #cdr::generated::share_exception(&exception, w)) }
            } else {
                quote! { request.raise(&exception) }
            }
        });
        Ok(quote! {
            match #call {
                Ok(#pattern) => { #written }
                #(Err(#error::#raised(exception)) => #raises,)*
                Err(#error::System(exception)) => Err(exception),
            }
        })
    }
}
