//! Generates enums.

use proc_macro2::{Ident, Literal};
use quote::quote;

use super::names::{Taken, enumerator_case, ident, unique};
use super::{Generator, Refused, tokens};
use crate::model::{DefId, Definition};
use crate::text::source::Span;

impl Generator<'_> {
    pub(crate) fn enumeration(
        &mut self,
        id: DefId,
        definition: &Definition,
        enumerators: &[(String, Span)],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL enum", definition);
        let name = ident(self.names.name(id));
        let variants: Vec<Ident> = self
            .names
            .enumerators(id)
            .iter()
            .map(|name| ident(name))
            .collect();
        let cdr = self.paths.cdr.tokens();
        let zerocopy = &self.zerocopy;
        self.out.open(quote! {
            #doc
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[derive(#cdr::zerocopy::IntoBytes, #cdr::zerocopy::Immutable)]
            #[zerocopy(crate = #zerocopy)]
            #[repr(u32)]
            pub enum #name
        });
        for (index, ((text, span), variant)) in enumerators.iter().zip(&variants).enumerate() {
            let doc = self.part_doc(&format!("`{text}`."), *span);
            let first = (index == 0).then(|| quote! { #[default] });
            let number = Literal::usize_unsuffixed(index);
            self.out.put(quote! { #doc #first #variant = #number, });
            self.room(*span)?;
        }
        self.out.close();
        let count = Literal::usize_unsuffixed(variants.len());
        self.out.open(quote! { impl #name });
        self.out.enter(
            quote! { #[doc = " Every enumerator, in order."] pub const ALL: [Self; #count] = },
            " [",
        );
        for variant in &variants {
            self.out.put(quote! { Self::#variant, });
        }
        self.out.leave("];");
        self.out.close();
        self.marshal_enumeration(&name, &variants);
        self.typed(id, &name, &[])
    }

    /// Generates the code that writes and reads an enum.
    fn marshal_enumeration(&mut self, name: &Ident, variants: &[Ident]) {
        let cdr = self.paths.cdr.tokens();
        let (result, vec) = (
            quote! { ::std::result::Result },
            tokens(&self.prelude("Vec")),
        );
        self.out
            .open(quote! { impl #cdr::enumerated::Enumerated for #name });
        self.out.open(quote! {
            #[inline]
            fn of_number(number: u32) -> ::std::option::Option<Self>
        });
        self.out.open(quote! { match number });
        for (index, variant) in variants.iter().enumerate() {
            let number = Literal::usize_unsuffixed(index);
            self.out
                .put(quote! { #number => ::std::option::Option::Some(Self::#variant), });
        }
        self.put(quote! { _ => ::std::option::Option::None, });
        (0..3).for_each(|_| self.out.close());
        self.put(quote! {
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
        });
    }
}

/// Returns the Rust names of an enum's enumerators.
pub(super) fn enumerator_names(enumerators: &[(String, Span)]) -> Vec<String> {
    let mut taken = Taken::from([("ALL".to_owned(), 0)]);
    enumerators
        .iter()
        .map(|(name, _)| unique(enumerator_case(name), &mut taken))
        .collect()
}
