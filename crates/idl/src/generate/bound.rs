//! Bounds of strings and sequences whose Rust form does not hold to them.

use super::Generator;
use super::tokens;
use super::types::INLINE_STRING_MAX;
use crate::model::Type;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

impl Generator<'_> {
    /// Whether a value is longer than its bound, or holds an element that is: the length of `&[T]`, `&str`, `Cow` and `String` is
    /// looked at where they are written and read, that of members by the type they are members of. Nothing where no bound can be exceeded.
    pub(super) fn exceeds(
        &self,
        value: &TokenStream,
        ty: &Type,
        owned: bool,
    ) -> Option<TokenStream> {
        match self.model.resolve(ty) {
            Type::String(Some(bound)) if *bound > INLINE_STRING_MAX => {
                let bound = Literal::u32_unsuffixed(*bound);
                Some(quote! { #value.len() > #bound })
            }
            Type::WideString(Some(bound)) => {
                let bound = Literal::u32_unsuffixed(*bound);
                Some(quote! { #value.encode_utf16().count() > #bound })
            }
            Type::Sequence { element, bound } => {
                let itself = bound.filter(|_| !owned).map(|bound| {
                    let bound = Literal::u32_unsuffixed(bound);
                    quote! { #value.len() > #bound }
                });
                either(itself, self.any_exceeds(value, element))
            }
            Type::Array { element, .. } => self.any_exceeds(value, element),
            _ => None,
        }
    }

    fn any_exceeds(&self, value: &TokenStream, element: &Type) -> Option<TokenStream> {
        let exceeds = self.exceeds(&quote! { element }, element, true)?;
        Some(quote! { #value.iter().any(|element| #exceeds) })
    }

    /// Refuses to write what exceeds its bound.
    pub(super) fn check_written(
        &self,
        value: &TokenStream,
        ty: &Type,
        owned: bool,
    ) -> Option<TokenStream> {
        let (cdr, exceeds) = (tokens(&self.paths.cdr), self.exceeds(value, ty, owned)?);
        Some(quote! { if #exceeds { return Err(#cdr::EncodeError::BoundExceeded); } })
    }

    /// Refuses what was read and exceeds its bound.
    pub(super) fn check_read(&self, value: &TokenStream, ty: &Type) -> Option<TokenStream> {
        let (cdr, exceeds) = (tokens(&self.paths.cdr), self.exceeds(value, ty, true)?);
        Some(quote! { if #exceeds { return Err(r.error(#cdr::DecodeFact::BoundExceeded)); } })
    }
}

fn either(one: Option<TokenStream>, other: Option<TokenStream>) -> Option<TokenStream> {
    match (one, other) {
        (Some(one), Some(other)) => Some(quote! { #one || #other }),
        (one, other) => one.or(other),
    }
}
