//! Generates enums.

use std::collections::HashSet;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::names::{enumerator_case, ident, unique};
use super::{Generator, Refused, tokens};
use crate::model::{DefId, Definition, DefinitionKind};
use crate::text::source::Span;

impl Generator<'_> {
    pub(crate) fn enumeration(
        &mut self,
        id: DefId,
        definition: &Definition,
        enumerators: &[(String, Span)],
    ) -> Result<TokenStream, Refused> {
        let doc = self.doc("IDL enum", definition);
        let name = ident(self.names.name(id));
        let typed = self.typed(id, &name, &[])?;
        let variants: Vec<_> = enumerator_names(enumerators)
            .iter()
            .map(|name| ident(name))
            .collect();
        let numbers: Vec<Literal> = (0..variants.len())
            .map(|number| Literal::u32_unsuffixed(number as u32))
            .collect();
        let items = enumerators
            .iter()
            .zip(&variants)
            .zip(&numbers)
            .enumerate()
            .map(|(index, (((text, span), variant), number))| {
                let doc = self.part_doc(&format!("`{text}`."), *span);
                let first = if index == 0 {
                    quote! { #[default] }
                } else {
                    TokenStream::new()
                };
                quote! { #doc #first #variant = #number }
            });
        let count = Literal::usize_unsuffixed(variants.len());
        let marshalling = self.marshal_enumeration(&name, &variants, &numbers);
        let cdr = tokens(&self.paths.cdr);
        let zerocopy = &self.zerocopy;
        Ok(quote! {
            #doc
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[derive(#cdr::zerocopy::IntoBytes, #cdr::zerocopy::Immutable)]
            #[zerocopy(crate = #zerocopy)]
            #[repr(u32)]
            pub enum #name { #(#items),* }

            impl #name {
                /// Every enumerator, in order.
                pub const ALL: [Self; #count] = [#(Self::#variants),*];
            }

            #marshalling

            #typed
        })
    }

    /// Generates the code that writes and reads an enum.
    fn marshal_enumeration(
        &self,
        name: &proc_macro2::Ident,
        variants: &[proc_macro2::Ident],
        numbers: &[Literal],
    ) -> TokenStream {
        let cdr = tokens(&self.paths.cdr);
        let (result, vec) = (
            quote! { ::std::result::Result },
            tokens(&self.prelude("Vec")),
        );
        quote! {
            impl #cdr::enumerated::Enumerated for #name {
                #[inline]
                fn of_number(number: u32) -> ::std::option::Option<Self> {
                    match number {
                        #(#numbers => ::std::option::Option::Some(Self::#variants),)*
                        _ => ::std::option::Option::None,
                    }
                }
            }

            impl #cdr::Write for #name {
                const SIZE_MAX: usize = <u32 as #cdr::Write>::SIZE_MAX;

                #[inline(always)]
                fn write_within(&self, w: &mut #cdr::WriteWindow<'_>) {
                    #cdr::Write::write_within(&(*self as u32), w);
                }

                #[inline]
                fn write(&self, w: &mut #cdr::Writer<'_>) -> #result<(), #cdr::EncodeError> {
                    w.write_u32(*self as u32)
                }

                #[inline]
                fn write_slice(slice: &[Self], w: &mut #cdr::Writer<'_>) -> #result<(), #cdr::EncodeError> {
                    #cdr::enumerated::write_slice(slice, w)
                }
            }

            impl<'a> #cdr::Parse<'a> for #name {
                const SIZE_MIN: usize = 4;
                const SIZE_MAX: usize = <u32 as #cdr::Parse<'a>>::SIZE_MAX;

                #[inline(always)]
                fn parse_within(r: &mut #cdr::ReadWindow<'_>) -> Self {
                    let number = <u32 as #cdr::Parse<'a>>::parse_within(r);
                    let enumerator = <Self as #cdr::enumerated::Enumerated>::of_number(number);
                    r.refuse_if(enumerator.is_none());
                    enumerator.unwrap_or(Self::ALL[0])
                }

                #[inline]
                fn parse(r: &mut #cdr::Reader<'a>) -> #result<Self, #cdr::DecodeError> {
                    let enumerator = <Self as #cdr::enumerated::Enumerated>::of_number(r.read_u32()?);
                    enumerator.ok_or_else(|| r.error(#cdr::DecodeFact::EnumeratorUnknown))
                }

                #[inline]
                fn parse_vec(r: &mut #cdr::Reader<'a>, count: usize) -> #result<#vec<Self>, #cdr::DecodeError> {
                    #cdr::enumerated::parse_vec(r, count)
                }
            }
        }
    }

    /// Returns the Rust name of an enumerator.
    pub(crate) fn enumerator(&self, id: DefId, index: u32) -> String {
        match &self.model.definition(id).kind {
            DefinitionKind::Enum(enumerators) => {
                enumerator_names(enumerators).swap_remove(index as usize)
            }
            _ => unreachable!("an enumerator is of an enum"),
        }
    }
}

fn enumerator_names(enumerators: &[(String, Span)]) -> Vec<String> {
    let mut taken = HashSet::from(["ALL".to_owned()]);
    enumerators
        .iter()
        .map(|(name, _)| unique(enumerator_case(name), &mut taken))
        .collect()
}
