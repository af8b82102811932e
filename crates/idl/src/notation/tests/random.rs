//! Seeded random values of every type.

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Reference, Value};
use deckwatch_cdr::{Any, Char, LongDouble, TypeCode};

use crate::notation::Notation;

/// A generator of random values (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn text(&mut self, bound: u32) -> String {
        const LETTERS: &[char] = &[
            'a',
            'Z',
            ' ',
            '"',
            '\'',
            '\\',
            ',',
            ':',
            '{',
            ']',
            '\n',
            '\t',
            '\u{1}',
            'é',
            '€',
            '\u{1F600}',
            '\u{202e}',
            '@',
            '0',
            '\u{85}',
        ];
        let most = if bound == 0 { 9 } else { bound as usize / 2 };
        let mut text: String = (0..self.below(most + 1))
            .map(|_| LETTERS[self.below(LETTERS.len())])
            .collect();
        while bound != 0 && text.len() > bound as usize {
            text.pop();
        }
        text
    }

    pub(super) fn value(
        &mut self,
        notation: &Notation<'_>,
        code: &TypeCode,
        depth: usize,
    ) -> Value {
        let plain = code.unaliased();
        let length = plain.length().unwrap_or(0);
        let bits = self.next();
        match plain.kind() {
            Kind::Boolean => Value::Boolean(bits & 1 == 1),
            Kind::Octet => Value::Octet(bits as u8),
            Kind::Char => Value::Char(Char(bits as u8)),
            Kind::WChar => Value::WChar(['x', '€', '\'', '\n', ' '][self.below(5)]),
            Kind::Short => Value::Short(bits as i16),
            Kind::UShort => Value::UShort(bits as u16),
            Kind::Long => Value::Long(bits as i32),
            Kind::ULong => Value::ULong(bits as u32),
            Kind::LongLong => Value::LongLong(bits.cast_signed()),
            Kind::ULongLong => Value::ULongLong(bits),
            Kind::Float => Value::Float(f32::from_bits(bits as u32)),
            Kind::Double => Value::Double(f64::from_bits(bits)),
            Kind::LongDouble if bits & 1 == 0 => Value::LongDouble(LongDouble::from(bits as f64)),
            // Only finite numbers: the largest exponent is excluded.
            Kind::LongDouble => Value::LongDouble(LongDouble(
                u128::from(bits) << 64 & !(1 << 112) | u128::from(self.next()),
            )),
            Kind::Fixed => {
                let (digits, _) = plain.fixed_digits_scale().unwrap();
                let units = i128::from(bits.cast_signed()) * 1_000_000_007;
                Value::Fixed(units % 10_i128.pow(digits.into()))
            }
            Kind::String => Value::String(self.text(length)),
            Kind::WString => Value::WString(self.text(length).into()),
            Kind::Enum => Value::Enum(self.below(plain.member_count()) as u32),
            Kind::Struct | Kind::Except => {
                let members =
                    (0..plain.member_count()).filter_map(|index| plain.member_type(index));
                Value::Struct(
                    members
                        .map(|member| self.value(notation, &member, depth + 1))
                        .collect(),
                )
            }
            Kind::Union => self.union(notation, &plain, depth),
            Kind::Sequence | Kind::Array => self.elements(notation, &plain, depth),
            Kind::Any if depth > 3 => Value::Any(Any::empty()),
            Kind::Any => {
                let code = self.type_code(notation);
                let value = self.value(notation, &code, depth + 1);
                Value::Any(Any::from_dynamic(&code, &value).unwrap())
            }
            Kind::TypeCode => Value::TypeCode(self.type_code(notation)),
            Kind::Objref if bits & 1 == 0 => Value::Reference(Reference::default()),
            Kind::Objref => Value::Reference(Reference {
                type_id: "IDL:M/I:1.0".to_owned(),
                profiles: vec![(0, b"octets".to_vec())],
            }),
            kind => panic!("{kind:?} is not in this test"),
        }
    }

    fn elements(&mut self, notation: &Notation<'_>, plain: &TypeCode, depth: usize) -> Value {
        let element = plain.content_type().unwrap();
        let count = match plain.kind() {
            Kind::Array => plain.length().unwrap() as usize,
            _ => self.below(if depth > 4 { 1 } else { 4 }),
        };
        if matches!(element.unaliased().kind(), Kind::Octet | Kind::Char) {
            return Value::Octets((0..count).map(|_| self.next() as u8).collect());
        }
        let elements = (0..count).map(|_| self.value(notation, &element, depth + 1));
        Value::Elements(elements.collect())
    }

    fn union(&mut self, notation: &Notation<'_>, plain: &TypeCode, depth: usize) -> Value {
        let index = self.below(plain.member_count() + 1);
        match (plain.member_type(index), plain.member_label(index)) {
            (Some(member), Some(label)) => Value::Union(
                label,
                Some(Box::new(self.value(notation, &member, depth + 1))),
            ),
            (Some(member), None) => {
                Value::Union(77, Some(Box::new(self.value(notation, &member, depth + 1))))
            }
            // A discriminator without a member, if the union has one.
            (None, _) => match plain.name() {
                Some("Choice") => Value::Union(2, None),
                Some("Maybe" | "Lettered" | "Wide") => Value::Union(0, None),
                _ => Value::default_for(plain).unwrap(),
            },
        }
    }

    /// Returns the TypeCode of a random type text: some types have a name in the model, the others do not.
    fn type_code(&mut self, notation: &Notation<'_>) -> TypeCode {
        const NAMES: &[&str] = &[
            "long",
            "M::Track",
            "M::Sparse",
            "sequence<M::Tree, 3>",
            "M::Palette",
            "string<7>[2][3]",
            "M::Refused",
            "M::I",
            "unsigned long long",
            "struct \"IDL:other/S:1.0\" S { long double d; sequence<recursive \"IDL:other/S:1.0\"> more; M::Point p; }",
            "union \"IDL:other/U:1.0\" switch (enum \"IDL:other/E:1.0\" E { a, b }) { case 0: long x; case 1: fixed<4, 2> y; }",
            "typedef \"IDL:other/T:1.0\" T wstring",
            "interface \"IDL:other/I:1.0\" I",
            "Object",
        ];
        notation.type_code(NAMES[self.below(NAMES.len())]).unwrap()
    }
}
