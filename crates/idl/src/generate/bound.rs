//! Generates checks of string and sequence bounds that the Rust types do not enforce.

use super::Generator;

use super::types::INLINE_STRING_MAX;
use crate::model::Type;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

impl Generator<'_> {
    /// Generates the condition that a value, or an element in it, exceeds its bound; `None` if no bound can be
    /// exceeded. The length of `&[T]`, `&str`, `Cow` and `String` is checked where they are written and read. An
    /// `owned` sequence enforces its own bound. A struct checks the bounds of its members.
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
                Some(quote! { #value.units().len() > #bound })
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

    /// Generates code that refuses to write a value above its bound.
    pub(super) fn check_written(
        &self,
        value: &TokenStream,
        ty: &Type,
        owned: bool,
    ) -> Option<TokenStream> {
        let (cdr, exceeds) = (self.paths.cdr.tokens(), self.exceeds(value, ty, owned)?);
        Some(quote! { if #exceeds { return Err(#cdr::EncodeError::BoundExceeded); } })
    }

    /// Generates code that refuses a read value above its bound.
    pub(super) fn check_read(&self, value: &TokenStream, ty: &Type) -> Option<TokenStream> {
        let (cdr, exceeds) = (self.paths.cdr.tokens(), self.exceeds(value, ty, true)?);
        Some(quote! { if #exceeds { return Err(r.error(#cdr::DecodeFact::BoundExceeded)); } })
    }
}

fn either(one: Option<TokenStream>, other: Option<TokenStream>) -> Option<TokenStream> {
    match (one, other) {
        (Some(one), Some(other)) => Some(quote! { #one || #other }),
        (one, other) => one.or(other),
    }
}
