//! Generates unions: an enum with a variant for each case. The variant of a case with several labels, or of the default
//! case, also holds the discriminator, so that a value read is written again unchanged.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::data::Described;
use super::names::{Taken, camel_case, ident, unique};
use super::{Generator, Refused, tokens};
use crate::model::value::{Value, range};
use crate::model::{Basic, Case, DefId, Definition, DefinitionKind, Type, Union};

/// A case with its Rust names and types.
struct Variant<'m> {
    case: &'m Case,
    name: Ident,
    ty: TokenStream,
    /// The labels as a pattern; `None` for the default case.
    labels: Option<TokenStream>,
    /// Whether the variant holds the discriminator.
    keeps: bool,
}

impl Generator<'_> {
    pub(crate) fn union(
        &mut self,
        id: DefId,
        definition: &Definition,
        union: &Union,
        at: &[String],
    ) -> Result<(), Refused> {
        let doc = self.doc("IDL union", definition);
        let switch = tokens(&self.owned(&union.discriminator, at, definition.span)?);
        let (variants, rest) = self.variants(union, at)?;
        let derives = self.union_derives(union);
        let name = ident(self.names.name(id));
        self.out.open(quote! { #doc #derives pub enum #name });
        for variant in &variants {
            let Variant { name, ty, case, .. } = variant;
            let doc = self.part_doc(&format!("`{}`.", case.name), case.span);
            let kept = variant.keeps.then(|| quote! { #switch, });
            self.out.put(quote! { #doc #name(#kept #ty), });
            self.room(case.span)?;
        }
        if let Some(rest) = &rest {
            self.put(quote! { #[doc = " A discriminator that selects no case."] #rest(#switch), });
        }
        self.out.close();
        self.write_union(&name, &switch, &variants, rest.as_ref());
        self.parse_union(&name, &switch, &variants, rest.as_ref());
        self.typed(id, &name, at)
    }

    /// Returns the variants. Also returns the name of the variant for discriminators that select no case, if there are
    /// any.
    fn variants<'m>(
        &mut self,
        union: &'m Union,
        at: &[String],
    ) -> Result<(Vec<Variant<'m>>, Option<Ident>), Refused> {
        let mut taken = Taken::new();
        let mut variants = Vec::new();
        for case in &union.cases {
            let mut patterns = Vec::new();
            for label in case.labels.iter().flatten() {
                patterns.push(tokens(&self.value(
                    label,
                    &union.discriminator,
                    at,
                    case.span,
                )?));
            }
            let is_default = case.labels.contains(&None);
            let keeps = is_default || patterns.len() != 1;
            variants.push(Variant {
                case,
                name: ident(&unique(camel_case(&case.name), &mut taken)),
                ty: tokens(&self.owned(&case.ty, at, case.span)?),
                labels: (!is_default).then(|| quote! { #(#patterns)|* }),
                keeps,
            });
        }
        let labels = union.cases.iter().flat_map(|case| &case.labels).count() as i128;
        let has_default = variants.iter().any(|variant| variant.labels.is_none());
        let open = !has_default && labels < self.discriminator_count(&union.discriminator);
        let rest = open.then(|| ident(&unique("Other".into(), &mut taken)));
        Ok((variants, rest))
    }

    fn discriminator_count(&self, ty: &Type) -> i128 {
        match self.model.resolve(ty) {
            Type::Basic(Basic::Boolean) => 2,
            Type::Basic(Basic::Char) => 256,
            Type::Basic(basic) => range(*basic).map_or(i128::MAX, |(min, max)| max - min + 1),
            Type::Named(id) => match &self.model.definition(*id).kind {
                DefinitionKind::Enum(enumerators) => enumerators.len() as i128,
                _ => i128::MAX,
            },
            _ => i128::MAX,
        }
    }

    fn union_derives(&self, union: &Union) -> TokenStream {
        let all: Vec<_> = union
            .cases
            .iter()
            .map(|case| self.abilities(&case.ty))
            .collect();
        let copy = all.iter().all(|a| a.copy).then(|| quote! { Copy, });
        let eq = all.iter().all(|a| a.eq).then(|| quote! { , Eq, Hash });
        quote! { #[derive(Clone, #copy Debug, PartialEq #eq)] }
    }

    fn write_union(
        &mut self,
        name: &Ident,
        switch: &TokenStream,
        variants: &[Variant<'_>],
        rest: Option<&Ident>,
    ) {
        let cdr = self.paths.cdr.tokens();
        let labelled: Vec<&TokenStream> = variants
            .iter()
            .filter_map(|variant| variant.labels.as_ref())
            .collect();
        self.out.open(quote! { impl #cdr::Write for #name });
        self.out.open(quote! {
            fn write(&self, w: &mut #cdr::Writer<'_>) -> ::std::result::Result<(), #cdr::EncodeError>
        });
        self.out.open(quote! { match self });
        for variant in variants {
            let Variant { name, case, .. } = variant;
            let check = self.check_written(&quote! { value }, &case.ty, true);
            if !variant.keeps {
                let label = &variant.labels;
                self.out.put(quote! {
                    Self::#name(value) => {
                        #check
                        <#switch as #cdr::Write>::write(&#label, w)?;
                        #cdr::Write::write(value, w)
                    }
                });
                continue;
            }
            let foreign = match &variant.labels {
                Some(labels) => quote! { !matches!(*discriminator, #labels) },
                None if labelled.is_empty() => quote! { false },
                None => quote! { matches!(*discriminator, #(#labelled)|*) },
            };
            self.out.put(quote! {
                Self::#name(discriminator, value) => {
                    if #foreign {
                        return Err(#cdr::EncodeError::EnumeratorUnknown);
                    }
                    #check
                    #cdr::Write::write(discriminator, w)?;
                    #cdr::Write::write(value, w)
                }
            });
        }
        if let Some(rest) = rest {
            self.put(quote! {
                Self::#rest(discriminator) => {
                    if matches!(*discriminator, #(#labelled)|*) {
                        return Err(#cdr::EncodeError::EnumeratorUnknown);
                    }
                    #cdr::Write::write(discriminator, w)
                }
            });
        }
        (0..3).for_each(|_| self.out.close());
    }

    fn parse_union(
        &mut self,
        name: &Ident,
        switch: &TokenStream,
        variants: &[Variant<'_>],
        rest: Option<&Ident>,
    ) {
        let cdr = self.paths.cdr.tokens();
        self.out.open(quote! { impl<'a> #cdr::Parse<'a> for #name });
        self.put(quote! {
            const SIZE_MIN: usize = <#switch as #cdr::Parse<'a>>::SIZE_MIN;
        });
        self.out.open(quote! {
            fn parse(r: &mut #cdr::Reader<'a>) -> ::std::result::Result<Self, #cdr::DecodeError>
        });
        self.put(quote! { let discriminator = <#switch as #cdr::Parse<'a>>::parse(r)?; });
        self.out.open(quote! { match discriminator });
        // The default's pattern matches everything, so its arm must be the last.
        let (labelled, default): (Vec<_>, Vec<_>) = variants
            .iter()
            .partition(|variant| variant.labels.is_some());
        for variant in labelled.into_iter().chain(default) {
            let Variant { name, case, ty, .. } = variant;
            let pattern = variant.labels.clone().unwrap_or_else(|| quote! { _ });
            let check = self.check_read(&quote! { value }, &case.ty);
            let kept = variant.keeps.then(|| quote! { discriminator, });
            self.out.put(quote! {
                #pattern => {
                    let value = <#ty as #cdr::Parse<'a>>::parse(r)?;
                    #check
                    Ok(Self::#name(#kept value))
                }
            });
        }
        if let Some(rest) = rest {
            self.put(quote! { _ => Ok(Self::#rest(discriminator)), });
        }
        (0..3).for_each(|_| self.out.close());
    }

    pub(super) fn described_union(
        &mut self,
        definition: &Definition,
        union: &Union,
        at: &[String],
        around: &mut Vec<DefId>,
    ) -> Result<Described, Refused> {
        let switch = self.type_code(&union.discriminator, at, definition.span, around)?;
        let cdr = self.paths.cdr.clone();
        let mut parts = Vec::new();
        for case in &union.cases {
            let code = self.type_code(&case.ty, at, case.span, around)?;
            for label in &case.labels {
                let label = label.as_ref().map(label_number);
                parts.push(format!(
                    "{cdr}::typecode::Case {{ label: {label:?}, name: {:?}, type_code: &{code} }}",
                    case.name
                ));
            }
        }
        let (id, name) = (&definition.repository_id, &definition.name);
        let head = format!("{cdr}::TypeCode::union({id:?}, {name:?}, &{switch}, ");
        Ok(Described::List { head, parts })
    }
}

/// Returns a label as TypeCodes store it: in 64 bits, whatever the discriminator's type.
pub(crate) fn label_number(value: &Value) -> i64 {
    match value {
        Value::Boolean(value) => i64::from(*value),
        Value::Integer(value) => *value as i64,
        Value::Char(value) | Value::WideChar(value) => i64::from(u32::from(*value)),
        Value::Enumerator(_, index) => i64::from(*index),
        Value::Float(_) | Value::Fixed(_) | Value::String(_) | Value::WideString(_) => 0,
    }
}
