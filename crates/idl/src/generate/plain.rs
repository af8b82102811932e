//! Structs whose memory layout equals their CDR ([`deckwatch_cdr::plain`]). They are written with one copy, and
//! servants borrow them from the request.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Generator, tokens};
use crate::model::{Basic, DefinitionKind, Member, Structure, Type};

/// The additional code for such a struct; empty for any other struct.
#[derive(Default)]
pub(super) struct Plain {
    /// The attributes before the struct.
    pub(super) attributes: TokenStream,
    /// The items in its `Write` implementation.
    pub(super) write: TokenStream,
    /// The items in its `Parse` implementation.
    pub(super) parse: TokenStream,
    /// The implementation of the trait `Plain`.
    pub(super) itself: TokenStream,
}

impl Generator<'_> {
    /// Generates the additional code; `fields` are the members with their Rust types.
    pub(super) fn plain(
        &self,
        name: &Ident,
        structure: &Structure,
        fields: &[(&Member, Ident, TokenStream)],
    ) -> Plain {
        if self.layout(structure).is_none() {
            return Plain::default();
        }
        let cdr = tokens(&self.paths.cdr);
        let zerocopy = &self.zerocopy;
        let (cow, option, result, vec) = (
            quote! { ::std::borrow::Cow },
            quote! { ::std::option::Option },
            quote! { ::std::result::Result },
            tokens(&self.prelude("Vec")),
        );
        let types = fields.iter().map(|(_, _, ty)| ty);
        let first = types.clone().next();
        Plain {
            attributes: quote! {
                #[derive(
                    #cdr::zerocopy::FromBytes,
                    #cdr::zerocopy::IntoBytes,
                    #cdr::zerocopy::Immutable,
                    #cdr::zerocopy::KnownLayout,
                )]
                #[zerocopy(crate = #zerocopy)]
                #[repr(C)]
            },
            write: quote! {
                #[inline]
                fn laid_out<'s>(
                    slice: &'s [Self],
                    w: &mut #cdr::Writer<'_>,
                ) -> #result<#option<&'s [u8]>, #cdr::EncodeError> {
                    #cdr::plain::laid_out(slice, w)
                }
            },
            parse: quote! {
                #[inline]
                fn parse_vec(r: &mut #cdr::Reader<'a>, count: usize) -> #result<#vec<Self>, #cdr::DecodeError> {
                    #cdr::plain::parse_vec(r, count)
                }

                #[inline]
                fn parse_cow(r: &mut #cdr::Reader<'a>, count: usize) -> #result<#cow<'a, [Self]>, #cdr::DecodeError> {
                    #cdr::plain::parse_cow(r, count)
                }
            },
            itself: quote! {
                impl #cdr::plain::Plain for #name {
                    const LEAD: usize = <#first as #cdr::plain::Plain>::LEAD;
                    const ALIGNMENT: usize = #cdr::plain::largest(&[#(<#types as #cdr::plain::Plain>::ALIGNMENT),*]);
                }
            },
        }
    }

    /// Whether `write_last` can leave the last octets of a value out of the message buffer, to be sent from the value.
    pub(super) fn may_leave(&self, ty: &Type) -> bool {
        match self.model.resolve(ty) {
            Type::Sequence { element, .. } => self.layout_of(element).is_some(),
            Type::Basic(Basic::Any) => true,
            Type::Named(id) => match &self.model.definition(*id).kind {
                DefinitionKind::Struct(structure) => {
                    (structure.members.last()).is_some_and(|member| self.may_leave(&member.ty))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Generates `write_last`: as `lines` write the members, but the last member's octets can stay unwritten. Returns
    /// no tokens if the last member's type has no such octets.
    pub(super) fn write_last(
        &self,
        fields: &[(&Member, Ident, TokenStream)],
        lines: &[TokenStream],
    ) -> TokenStream {
        let Some((member, field, _)) = fields.last() else {
            return TokenStream::new();
        };
        if !self.may_leave(&member.ty) {
            return TokenStream::new();
        }
        let cdr = tokens(&self.paths.cdr);
        let lines = &lines[..lines.len() - 1];
        quote! {
            fn write_last(
                &self,
                w: &mut #cdr::Writer<'_>,
            ) -> ::std::result::Result<#cdr::Unwritten<'_>, #cdr::EncodeError> {
                #(#lines)*
                #cdr::Write::write_last(&self.#field, w)
            }
        }
    }

    /// Returns the alignment and size of a struct without padding, in memory as in CDR; `None` for any other struct.
    fn layout(&self, structure: &Structure) -> Option<(u64, u64)> {
        let mut whole = (1, 0);
        for member in &structure.members {
            let (alignment, size) = self.layout_of(&member.ty)?;
            let has_gap = whole.1 % alignment != 0;
            if has_gap {
                return None;
            }
            whole = (alignment.max(whole.0), size.checked_add(whole.1)?);
        }
        (whole.1 != 0 && whole.1 % whole.0 == 0).then_some(whole)
    }

    fn layout_of(&self, ty: &Type) -> Option<(u64, u64)> {
        match self.model.resolve(ty) {
            Type::Basic(basic) => {
                let size = match basic {
                    Basic::Octet | Basic::Char => 1,
                    Basic::Short | Basic::UShort => 2,
                    Basic::Long | Basic::ULong | Basic::Float => 4,
                    Basic::LongLong | Basic::ULongLong | Basic::Double => 8,
                    _ => return None,
                };
                Some((size, size))
            }
            Type::Array { element, length } => {
                let (alignment, size) = self.layout_of(element)?;
                Some((alignment, size.checked_mul(u64::from(*length))?))
            }
            Type::Named(id) => match &self.model.definition(*id).kind {
                DefinitionKind::Struct(structure) => self.layout(structure),
                _ => None,
            },
            _ => None,
        }
    }
}
