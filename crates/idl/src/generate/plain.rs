//! Structs whose memory layout equals their CDR ([`deckwatch_cdr::plain`]). They are written with one copy, and
//! servants borrow them from the request.

use proc_macro2::TokenStream;
use quote::quote;

use super::Generator;
use crate::model::{Basic, DefId, DefinitionKind, Type};

impl Generator<'_> {
    /// Whether the memory layout of a struct equals its CDR.
    pub(super) fn is_plain(&self, id: DefId) -> bool {
        let is_struct = matches!(self.model.definition(id).kind, DefinitionKind::Struct(_));
        is_struct
            && self
                .traits
                .layout_of(self.model, &Type::Named(id))
                .is_some()
    }

    /// Returns the attributes of such a struct.
    pub(super) fn plain_attributes(&self) -> TokenStream {
        let (cdr, zerocopy) = (self.paths.cdr.tokens(), &self.zerocopy);
        quote! {
            #[derive(#cdr::zerocopy::FromBytes, #cdr::zerocopy::IntoBytes)]
            #[derive(#cdr::zerocopy::Immutable, #cdr::zerocopy::KnownLayout)]
            #[zerocopy(crate = #zerocopy)]
            #[repr(C)]
        }
    }

    /// Whether `write_last` can leave the last octets of a value out of the message buffer, to be sent from the value.
    pub(super) fn may_leave(&self, ty: &Type) -> bool {
        match self.model.resolve(ty) {
            Type::Sequence { element, .. } => self.traits.layout_of(self.model, element).is_some(),
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
}
