//! Interfaces: the reference to call, the trait to serve, the skeleton between.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::names::{ident, snake_case};
use super::types::Passing;
use super::{Generator, Refused, tokens};
use crate::model::{
    Access, DefId, Definition, DefinitionKind, Interface, Mode, Operation, Parameter, Type,
};

/// An operation with the interface that declares it.
#[derive(Clone, Copy)]
struct Declared<'m> {
    interface: DefId,
    index: usize,
    operation: &'m Operation,
}

impl<'m> Generator<'m> {
    pub(crate) fn interface(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &'m Interface,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let all = self.all_operations(id, interface);
        let reference = self.reference_type(id, definition, interface, &all, at)?;
        if !interface.defined {
            return Ok(reference);
        }
        let errors = self.error_enums(&all, id, at)?;
        let service = self.service(id, definition, interface, &all, at)?;
        let skeleton = self.skeleton(id, definition, interface, &all, at)?;
        Ok(quote! { #service #errors #reference #skeleton })
    }

    /// Own operations, then those of every ancestor.
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

    fn method(&self, declared: Declared<'_>) -> Ident {
        ident(&self.names.interface(declared.interface).methods[declared.index])
    }

    /// The error of an operation: its own enum where it raises, else a system exception.
    fn error_type(
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
            None => Ok(tokens(&format!("{}::SystemException", self.orb))),
        }
    }

    fn is_own(declared: &Declared<'_>, id: DefId) -> bool {
        declared.interface == id
    }

    // Errors.

    fn error_enums(
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
        let orb = tokens(&self.orb);
        let from = tokens(&self.prelude("From"));
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

            #(
                impl #from<#paths> for #name {
                    fn from(exception: #paths) -> Self {
                        Self::#names(exception)
                    }
                }
            )*

            impl #from<#orb::SystemException> for #name {
                fn from(exception: #orb::SystemException) -> Self {
                    Self::System(exception)
                }
            }

            impl ::std::fmt::Display for #name {
                fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    match self {
                        #(Self::#names(exception) => exception.fmt(f),)*
                        Self::System(exception) => exception.fmt(f),
                    }
                }
            }

            impl ::std::error::Error for #name {}
        })
    }

    /// The variant of an exception: its name, with the interface's before it where two are called alike.
    fn variant(&self, raised: DefId, all: &[DefId]) -> Ident {
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
        let doc = self.doc(
            &format!("Serves IDL interface `{}`.", definition.scoped_name),
            definition.whole,
        );
        let name = ident(self.names.name(id));
        let bounds = self.bounds(interface, definition, at)?;
        let (mut methods, mut forwards) = (Vec::new(), Vec::new());
        for &declared in all.iter().filter(|declared| Self::is_own(declared, id)) {
            let signature = self.service_signature(declared, at)?;
            let heading = self.operation_heading(declared.operation);
            let doc = self.part_doc(&heading, declared.operation.whole);
            methods.push(quote! {
                #doc
                #[doc = ""]
                #[doc = " # Errors"]
                #[doc = " What the caller is to get instead of a result."]
                #signature;
            });
            let method = self.method(declared);
            let arguments =
                inputs(declared.operation).map(|parameter| parameter_ident(&parameter.name));
            forwards.push(quote! { #signature { (**self).#method(#(#arguments),*) } });
        }
        Ok(quote! {
            #doc
            pub trait #name: #bounds {
                #(#methods)*
            }

            impl<T: #name + ?Sized> #name for ::std::sync::Arc<T> {
                #(#forwards)*
            }
        })
    }

    fn bounds(
        &mut self,
        interface: &Interface,
        definition: &Definition,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        if interface.bases.is_empty() {
            return Ok(tokens(&format!(
                "{} + {} + 'static",
                self.prelude("Send"),
                self.prelude("Sync")
            )));
        }
        let mut bases = Vec::new();
        for &base in &interface.bases {
            bases.push(self.path(base, self.names.name(base).to_owned(), at, definition.span)?);
        }
        Ok(tokens(&bases.join(" + ")))
    }

    fn operation_heading(&self, operation: &Operation) -> String {
        match operation.attribute {
            None => format!("IDL operation `{}`.", operation.name),
            Some(Access::Get) => format!("IDL attribute `{}`.", operation.name),
            Some(Access::Set) => format!("Sets IDL attribute `{}`.", operation.name),
        }
    }

    fn service_signature(
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
        let result = tokens(&self.prelude("Result"));
        let (generics, receiver) = if borrows {
            (quote! { <'a> }, quote! { &'a self })
        } else {
            (quote! {}, quote! { &self })
        };
        Ok(quote! { fn #method #generics (#receiver, #(#parameters),*) -> #result<#reply, #error> })
    }

    // The reference.

    fn reference_type(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (cdr, orb) = (tokens(&self.cdr), tokens(&self.orb));
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
        let (repository_id, idl_name) = (&definition.repository_id, &definition.name);
        let mut methods = Vec::new();
        for &declared in all {
            methods.push(self.stub(declared, at)?);
        }
        let mut widenings = Vec::new();
        for &ancestor in &interface.ancestors {
            let base = tokens(&self.reference(ancestor, at, definition.span)?);
            widenings.push(quote! {
                impl #from<#name> for #base {
                    fn from(reference: #name) -> Self {
                        Self::unchecked_narrow(reference.0)
                    }
                }
            });
        }
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
        })
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
        let arguments = self.written_arguments(operation);
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

    /// The closure that writes the arguments.
    fn written_arguments(&self, operation: &Operation) -> TokenStream {
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
        if values.is_empty() {
            return quote! { |_| Ok(()) };
        }
        let lines = self.writes(&values);
        quote! { |w| { #lines } }
    }

    /// Writes values to `w`, the last one's result being the result of all.
    fn writes(&self, values: &[(&Type, TokenStream)]) -> TokenStream {
        let cdr = tokens(&self.cdr);
        let mut lines = TokenStream::new();
        for (index, (ty, value)) in values.iter().enumerate() {
            if let Some(bound) = self.checked_bound(ty, false) {
                lines.extend(self.check_written(&strip_reference(value), ty, bound));
            }
            lines.extend(quote! { #cdr::Write::write(#value, w) });
            if index + 1 < values.len() {
                lines.extend(quote! { ?; });
            }
        }
        lines
    }

    /// The closure that reads the results.
    fn parsed_results(&self, operation: &Operation, owned: &[String]) -> TokenStream {
        let cdr = tokens(&self.cdr);
        let types: Vec<&Type> = results(operation).collect();
        if types.is_empty() {
            return quote! { |_| Ok(()) };
        }
        let checked = types
            .iter()
            .any(|ty| self.checked_bound(ty, true).is_some());
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
                let check = self
                    .checked_bound(ty, true)
                    .map(|bound| self.check_read(&quote! { #name }, ty, bound));
                quote! { let #name = <#owned as #cdr::Parse<'_>>::parse(r)?; #check }
            });
        let lines: Vec<TokenStream> = lines.collect();
        match &names[..] {
            [only] => quote! { |r| { #(#lines)* Ok(#only) } },
            _ => quote! { |r| { #(#lines)* Ok((#(#names),*)) } },
        }
    }

    /// The closure that reads the exceptions.
    fn parsed_exceptions(
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

    // The skeleton.

    fn skeleton(
        &mut self,
        id: DefId,
        definition: &Definition,
        interface: &Interface,
        all: &[Declared<'m>],
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let orb = tokens(&self.orb);
        let result = tokens(&self.prelude("Result"));
        let service = ident(self.names.name(id));
        let name = ident(&self.names.interface(id).skeleton.clone());
        let doc = format!(
            " Makes a [`{service}`] a servant of IDL interface `{}`.",
            definition.scoped_name
        );
        let ancestors = interface
            .ancestors
            .iter()
            .map(|&ancestor| &self.model.definition(ancestor).repository_id);
        let ids: Vec<&String> = [&definition.repository_id]
            .into_iter()
            .chain(ancestors)
            .collect();
        let (mut arms, mut methods) = (Vec::new(), Vec::new());
        for &declared in all {
            let serve = ident(&format!(
                "serve_{}",
                self.names.interface(declared.interface).methods[declared.index]
            ));
            let wire_name = Literal::byte_string(declared.operation.wire_name.as_bytes());
            arms.push(quote! { #wire_name => self.#serve(request) });
            methods.push(self.serve(&serve, declared, at)?);
        }
        Ok(quote! {
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

                #(#methods)*
            }

            impl<S: #service> #orb::Servant for #name<S> {
                fn repository_ids(&self) -> &'static [&'static str] {
                    &[#(#ids),*]
                }

                fn dispatch(&self, request: &mut #orb::ServerRequest<'_>) -> #result<(), #orb::SystemException> {
                    match request.operation() {
                        #(#arms,)*
                        _ => Err(#orb::SystemException::new(
                            #orb::SystemExceptionKind::BadOperation,
                            #orb::minor::OPERATION_UNKNOWN,
                            #orb::Completion::No,
                        )),
                    }
                }
            }
        })
    }

    /// The method that reads an operation's arguments, calls the servant and writes the results.
    fn serve(
        &mut self,
        serve: &Ident,
        declared: Declared<'_>,
        at: &[String],
    ) -> Result<TokenStream, Refused> {
        let (cdr, orb) = (tokens(&self.cdr), tokens(&self.orb));
        let result = tokens(&self.prelude("Result"));
        let operation = declared.operation;
        let reader = (inputs(operation).next().is_some())
            .then(|| quote! { let r = &mut request.arguments(); });
        let (mut reads, mut passed) = (Vec::new(), Vec::new());
        for parameter in inputs(operation) {
            let name = parameter_ident(&parameter.name);
            let passing = self.passing(&parameter.ty);
            let ty = tokens(&match passing {
                Passing::Text => "::std::borrow::Cow<'_, str>".to_owned(),
                Passing::Slice => format!(
                    "::std::borrow::Cow<'_, [{}]>",
                    self.element(&parameter.ty, at, operation.span)?
                ),
                _ => self.owned(&parameter.ty, at, operation.span)?,
            });
            let check = self.checked_bound(&parameter.ty, false).map(|bound| {
                let length = self.length_of(&quote! { #name }, &parameter.ty);
                let bound = Literal::u32_unsuffixed(bound);
                quote! { if #length > #bound { return Err(r.error(#cdr::DecodeFact::BoundExceeded).into()); } }
            });
            reads.push(quote! { let #name = <#ty as #cdr::Parse<'_>>::parse(r)?; #check });
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
        let call = quote! { <S as #service>::#method(&self.0, #(#passed),*) };
        let body = self.answer(declared, &call, at)?;
        Ok(quote! {
            fn #serve(&self, request: &mut #orb::ServerRequest<'_>) -> #result<(), #orb::SystemException> {
                #reader
                #(#reads)*
                #body
            }
        })
    }

    /// Calls the servant, and writes what it gives back or raises.
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
            quote! { request.reply()?; Ok(()) }
        } else {
            let lines = self.writes(&values);
            quote! { request.reply_with(|w| { #lines }) }
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
        Ok(quote! {
            match #call {
                Ok(#pattern) => { #written }
                #(Err(#error::#raised(exception)) => request.raise(&exception),)*
                Err(#error::System(exception)) => Err(exception),
            }
        })
    }
}

/// The parameters that travel with the request.
fn inputs(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    operation
        .parameters
        .iter()
        .filter(|parameter| parameter.mode != Mode::Out)
}

/// The types that travel with the reply: the result, then `inout` and `out` parameters in order.
fn results(operation: &Operation) -> impl Iterator<Item = &Type> {
    let parameters = operation
        .parameters
        .iter()
        .filter(|parameter| parameter.mode != Mode::In);
    operation
        .result
        .iter()
        .chain(parameters.map(|parameter| &parameter.ty))
}

/// None: `()`; one: itself; more: a tuple.
fn tuple(types: &[String]) -> TokenStream {
    match types {
        [only] => tokens(only),
        _ => tokens(&format!("({})", types.join(", "))),
    }
}

/// A parameter's name, apart from the names generated bodies use.
fn parameter_ident(name: &str) -> Ident {
    let name = snake_case(name);
    match name.as_str() {
        "r" | "w" | "id" | "request" | "exception" => ident(&format!("{name}_")),
        _ if name.starts_with("result_") => ident(&format!("{name}_")),
        _ => ident(&name),
    }
}

/// The value itself, of `&value`.
fn strip_reference(value: &TokenStream) -> TokenStream {
    let mut tokens = value.clone().into_iter().peekable();
    if matches!(tokens.peek(), Some(proc_macro2::TokenTree::Punct(punct)) if punct.as_char() == '&')
    {
        tokens.next();
    }
    tokens.collect()
}
