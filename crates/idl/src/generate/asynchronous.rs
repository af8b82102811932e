//! Generates the asynchronous calls of an interface: `sendc_` and `sendp_` operations, its poller, and the methods that
//! raise exceptions from exception holders.

use std::collections::HashSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::interface::{Declared, inputs, parameter_ident, results, tuple};
use super::names::ident;
use super::types::Passing;
use super::{Generator, Refused, tokens};
use crate::model::implied::{has_reply, reply_name};
use crate::model::{DefId, Definition, Flavour, Interface, Type};

impl<'m> Generator<'m> {
    /// Returns the operations that can be called asynchronously: not oneway, of an interface with a reply handler.
    fn with_replies(&self, all: &[Declared<'m>]) -> Vec<Declared<'m>> {
        let all = all.iter().copied();
        all.filter(|declared| {
            has_reply(declared.operation) && self.handlers.of(declared.interface).is_some()
        })
        .collect()
    }

    /// Returns the path of the trait of an interface's reply handler.
    fn handler_type(
        &mut self,
        interface: DefId,
        at: &[String],
        declared: Declared<'_>,
    ) -> Result<Option<TokenStream>, Refused> {
        let Some(handler) = self.handlers.of(interface) else {
            return Ok(None);
        };
        let name = self.names.name(handler).to_owned();
        let path = self.path(handler, name, at, declared.operation.span)?;
        Ok(Some(tokens(&path)))
    }

    /// Generates the asynchronous methods of `IRef`.
    pub(super) fn asynchronous_methods(
        &mut self,
        id: DefId,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<Vec<TokenStream>, Refused> {
        if self.handlers.of(id).is_none() {
            return Ok(Vec::new());
        }
        let methods = all.iter().map(|&declared| self.method(declared));
        let mut taken: HashSet<String> = methods.map(|method| method.to_string()).collect();
        let mut methods = Vec::new();
        for declared in self.with_replies(all) {
            methods.push(self.senders(id, declared, &mut taken, at)?);
            if declared.interface == id {
                methods.push(self.delivery(declared, at)?);
            }
        }
        Ok(methods)
    }

    fn senders(
        &mut self,
        id: DefId,
        declared: Declared<'m>,
        taken: &mut HashSet<String>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (orb, arc) = (self.paths.orb.tokens(), self.paths.arc.tokens());
        let served = self.paths.served.tokens();
        let (dynamic, option) = (self.paths.dynamic.tokens(), tokens(&self.prelude("Option")));
        let operation = declared.operation;
        let Some(handler) = self.handler_type(declared.interface, at, declared)? else {
            return Ok(TokenStream::new());
        };
        let reference = tokens(&self.reference(declared.interface, at, operation.span)?);
        let deliver = self.delivery_name(declared);
        let (sendc, sendp) = (
            sender("sendc_", declared, taken),
            sender("sendp_", declared, taken),
        );
        let (mut parameters, mut ami_handler) = (Vec::new(), "ami_handler".to_owned());
        for parameter in inputs(operation) {
            let name = parameter_ident(&parameter.name);
            let ty = tokens(&self.argument(&parameter.ty, at, operation.span, "")?);
            parameters.push(quote! { #name: #ty });
            if name == ami_handler {
                ami_handler.push('_');
            }
        }
        let ami_handler = ident(&ami_handler);
        let by = quote! { #reference::#deliver };
        let arguments = self.written_arguments(operation, false);
        let wire_name = &operation.wire_name;
        let poller = ident(&self.names.asynchronous(id).poller);
        let doc = format!(
            " Calls `{}` and returns once the request has been sent; the handler is called with the reply.",
            reply_name(operation)
        );
        let poller_doc = format!(
            " Calls `{}` and returns once the request has been sent; the poller gives the reply.",
            reply_name(operation)
        );
        Ok(quote! {
            #[doc = #doc]
            pub fn #sendc(
                &self,
                #ami_handler: #option<#arc<dyn #handler>>,
                #(#parameters),*
            ) -> #served {
                #orb::generated::send(&self.0, #wire_name, #arguments, #ami_handler, #by)
            }

            #[doc = #poller_doc]
            pub fn #sendp(&self, #(#parameters),*) -> #orb::Result<#poller> {
                #dynamic::Poller::send(&self.0, #wire_name, #arguments).map(#poller::new)
            }
        })
    }

    /// Generates the function that delivers a reply to a reply handler.
    fn delivery(&mut self, declared: Declared<'m>, at: &[String]) -> Result<TokenStream, Refused> {
        let (reply, served) = (self.paths.reply.tokens(), self.paths.served.tokens());
        let operation = declared.operation;
        let Some(id) = self.handlers.of(declared.interface) else {
            return Ok(TokenStream::new());
        };
        let Some(handler) = self.handler_type(declared.interface, at, declared)? else {
            return Ok(TokenStream::new());
        };
        let place = self.place_among_replies(declared);
        let methods = &self.names.interface(id).methods;
        let (told, failed) = (ident(&methods[2 * place]), ident(&methods[2 * place + 1]));
        let types: Vec<&Type> = results(operation).collect();
        let names: Vec<Ident> = (0..types.len())
            .map(|index| ident(&format!("result_{index}")))
            .collect();
        let pattern = match &names[..] {
            [] => quote! { () },
            [only] => quote! { #only },
            _ => quote! { (#(#names),*) },
        };
        let mut owned = Vec::new();
        for ty in &types {
            owned.push(self.owned(ty, at, operation.span)?);
        }
        let passed = types
            .iter()
            .zip(&names)
            .map(|(ty, name)| match self.passing(ty) {
                Passing::Value => quote! { #name },
                Passing::Reference => quote! { #name.as_ref() },
                _ => quote! { &#name },
            });
        let passed: Vec<TokenStream> = passed.collect();
        let read = self.parsed_results(operation, &owned, false);
        let deliver = self.delivery_name(declared);
        Ok(quote! {
            #[doc(hidden)]
            pub fn #deliver(
                handler: &dyn #handler,
                reply: #reply,
            ) -> #served {
                match reply.results(#read) {
                    Ok(#pattern) => handler.#told(#(#passed),*),
                    Err(holder) => handler.#failed(&holder),
                }
            }
        })
    }

    fn delivery_name(&self, declared: Declared<'_>) -> Ident {
        ident(&self.names.asynchronous(declared.interface).deliveries[declared.index])
    }

    /// Returns the operation's method name in pollers.
    fn polled_name(&self, declared: Declared<'_>) -> &str {
        &self.names.asynchronous(declared.interface).replies[declared.index]
    }

    /// Returns the number of earlier operations of the interface that have replies.
    fn place_among_replies(&self, declared: Declared<'_>) -> usize {
        match &self.model.definition(declared.interface).kind {
            crate::model::DefinitionKind::Interface(interface) => {
                let before = interface.operations[..declared.index].iter();
                before.filter(|operation| has_reply(operation)).count()
            }
            _ => 0,
        }
    }

    /// Generates an interface's poller and exception methods. For a reply handler, implements its trait for references.
    pub(super) fn asynchronous_types(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        if self.handlers.contain(id) {
            return self.reference_as_handler(id, interface, all, at);
        }
        if self.handlers.of(id).is_none() {
            return Ok(TokenStream::new());
        }
        let poller = self.poller(id, definition, all, at)?;
        let holder = self.exceptions(id, definition, all, at)?;
        Ok(quote! { #poller #holder })
    }

    fn poller(
        &mut self,
        id: DefId,
        definition: &Definition,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (orb, option) = (self.paths.orb.tokens(), tokens(&self.prelude("Option")));
        let dynamic = self.paths.dynamic.tokens();
        let name = ident(&self.names.asynchronous(id).poller);
        let doc = format!(
            " The reply of an asynchronous call of IDL interface `{}`, for whoever asks for it.",
            definition.scoped_name
        );
        let handler = self
            .handlers
            .of(id)
            .map(|id| self.names.name(id).to_owned());
        let handler = ident(&handler.unwrap_or_default());
        let (mut polls, mut arms) = (Vec::new(), Vec::new());
        for declared in self.with_replies(all) {
            polls.push(self.poll(declared, at)?);
            let reference =
                tokens(&self.reference(declared.interface, at, declared.operation.span)?);
            let deliver = self.delivery_name(declared);
            let wire_name = Literal::string(&declared.operation.wire_name);
            arms.push(if declared.interface == id {
                quote! { #wire_name => #reference::#deliver }
            } else {
                quote! { #wire_name => |handler, reply| #reference::#deliver(handler, reply) }
            });
        }
        let arc = self.paths.arc.tokens();
        let views = self.views_of_poller(&name);
        Ok(quote! {
            #[doc = #doc]
            pub struct #name {
                poller: #dynamic::Poller,
                handler: ::std::sync::Mutex<#option<#arc<dyn #handler>>>,
            }

            impl #name {
                fn new(poller: #dynamic::Poller) -> Self {
                    Self { poller, handler: ::std::sync::Mutex::new(None) }
                }

                /// The handler that is to have the reply; none: whoever polls has it.
                #[must_use]
                pub fn associated_handler(&self) -> #option<#arc<dyn #handler>> {
                    self.handler.lock().unwrap_or_else(::std::sync::PoisonError::into_inner).clone()
                }

                /// Gives the reply to a handler, as if the call had been made with it; none: to whoever polls.
                pub fn set_associated_handler(&self, handler: #option<#arc<dyn #handler>>) {
                    let mut kept = self.handler.lock().unwrap_or_else(::std::sync::PoisonError::into_inner);
                    kept.clone_from(&handler);
                    let deliver: #orb::generated::DeliverTo<dyn #handler> =
                        match self.poller.operation_name() {
                            #(#arms,)*
                            _ => |_, _| Ok(()),
                        };
                    self.poller.set_handler(#orb::generated::deliver(handler, deliver));
                }

                #(#polls)*
            }

            #views
        })
    }

    /// Generates the trait implementations that every poller has.
    fn views_of_poller(&self, name: &Ident) -> TokenStream {
        let (dynamic, name_text) = (self.paths.dynamic.tokens(), name.to_string());
        quote! {
            impl ::std::ops::Deref for #name {
                type Target = #dynamic::Poller;

                fn deref(&self) -> &#dynamic::Poller {
                    &self.poller
                }
            }

            impl ::std::fmt::Debug for #name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.debug_tuple(#name_text).field(&self.poller).finish()
                }
            }
        }
    }

    fn poll(&mut self, declared: Declared<'m>, at: &[String]) -> Result<TokenStream, Refused> {
        let operation = declared.operation;
        let mut owned = Vec::new();
        for ty in results(operation) {
            owned.push(self.owned(ty, at, operation.span)?);
        }
        let reply = tuple(&owned);
        let error = self.error_type(declared, at)?;
        let result = self.result(&reply, declared, &error);
        let read = self.parsed_results(operation, &owned, true);
        let exceptions = self.parsed_exceptions(declared, at)?;
        let wire_name = &operation.wire_name;
        let method = ident(self.polled_name(declared));
        let doc = format!(" The reply of `{}`.", reply_name(operation));
        Ok(quote! {
            #[doc = #doc]
            pub fn #method(&self, timeout_ms: u32) -> #result {
                self.poller.poll(#wire_name, timeout_ms, #read, #exceptions)
            }
        })
    }

    /// Generates a trait that raises the exception in an exception holder, with a method for each operation.
    fn exceptions(
        &mut self,
        id: DefId,
        definition: &Definition,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let orb = self.paths.orb.tokens();
        let name = ident(&self.names.asynchronous(id).holder);
        let doc = format!(
            " What the exceptions of IDL interface `{}` are, out of their holders.",
            definition.scoped_name
        );
        let (mut declarations, mut bodies) = (Vec::new(), Vec::new());
        for declared in self.with_replies(all) {
            if declared.interface != id {
                continue;
            }
            let error = self.error_type(declared, at)?;
            let exceptions = self.parsed_exceptions(declared, at)?;
            let spoken = reply_name(declared.operation);
            let method = ident(&format!("raise_{}", self.polled_name(declared)));
            let doc = format!(" The exception of `{spoken}`.");
            declarations.push(quote! { #[doc = #doc] fn #method(&self) -> #error; });
            bodies.push(quote! {
                fn #method(&self) -> #error {
                    self.raise_exception(#exceptions)
                }
            });
        }
        Ok(quote! {
            #[doc = #doc]
            pub trait #name {
                #(#declarations)*
            }

            impl #name for #orb::ExceptionHolder {
                #(#bodies)*
            }
        })
    }

    /// Implements a reply handler's trait for its reference, which forwards each call to the remote handler.
    fn reference_as_handler(
        &mut self,
        id: DefId,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (orb, served) = (self.paths.orb.tokens(), self.paths.served.tokens());
        let reference = ident(&self.names.interface(id).reference.clone());
        let plain = |id: &DefId| self.model.flavour(*id) == Some(Flavour::Plain);
        let ancestors = interface.ancestors.iter().copied().filter(plain);
        let of: Vec<DefId> = [id].into_iter().chain(ancestors).collect();
        let mut out = TokenStream::new();
        for of in of {
            let name = self.names.name(of).to_owned();
            let span = self.model.definition(of).span;
            let service = tokens(&self.path(of, name, at, span)?);
            let mut methods = Vec::new();
            for &declared in all.iter().filter(|declared| declared.interface == of) {
                let method = self.method(declared);
                let mut parameters = Vec::new();
                for parameter in inputs(declared.operation) {
                    let name = parameter_ident(&parameter.name);
                    let ty = self.argument(&parameter.ty, at, declared.operation.span, "")?;
                    let ty = tokens(&ty);
                    parameters.push(quote! { #name: #ty });
                }
                methods.push(quote! { fn #method(&self, #(#parameters),*) -> #served; });
            }
            out.extend(quote! {
                impl #service for #reference {
                    #orb::forward! { #reference #(#methods)* }
                }
            });
        }
        Ok(out)
    }
}

/// Returns the name `sendc_op` or `sendp_op`. Inserts `ami_` before the operation's name if that is taken.
fn sender(prefix: &str, declared: Declared<'_>, taken: &mut HashSet<String>) -> Ident {
    let name = super::names::snake_case(&reply_name(declared.operation));
    let mut sender = format!("{prefix}{name}");
    while !taken.insert(sender.clone()) {
        sender.insert_str(prefix.len(), "ami_");
    }
    ident(&sender)
}
