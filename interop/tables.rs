//! Deckwatch::Interop in this ORB: the tables of values, the servant and the caller. `idl/deckwatch/types.idl`
//! describes their use.

mod asynchronous;
pub(crate) mod caller;
pub(crate) mod servant;
pub(crate) mod values;

#[allow(
    clippy::redundant_closure,
    clippy::result_large_err,
    reason = "an exception has the members that its IDL gives it; what is suggested for closures is not general enough over lifetimes"
)]
mod idl {
    include!(concat!(env!("OUT_DIR"), "/types.rs"));
}
pub(crate) use idl::deckwatch::interop::*;

use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, Write, Writer};

/// Whether two values are equal octet for octet in CDR. A NaN is not equal to itself, so `==` does not work.
fn same<A: Write + ?Sized, B: Write + ?Sized>(a: &A, b: &B) -> bool {
    octets(a) == octets(b)
}

fn octets<T: Write + ?Sized>(value: &T) -> Vec<u8> {
    let mut octets = Vec::new();
    let written = value.write(&mut Writer::new(&mut octets));
    written.expect("a value of the table can be written");
    octets
}

/// Whether two Anys hold the same value of equivalent types; aliases in the types do not count.
fn same_any(a: &Any, b: &Any) -> bool {
    let (Ok(left), Ok(right)) = (a.to_dynamic(), b.to_dynamic()) else {
        return false;
    };
    a.type_code().equivalent(b.type_code()) && same_value(&left, &right)
}

fn same_value(a: &Value, b: &Value) -> bool {
    let all = |a: &[Value], b: &[Value]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
    };
    match (a, b) {
        (Value::Any(a), Value::Any(b)) => same_any(a, b),
        (Value::TypeCode(a), Value::TypeCode(b)) => a.equivalent(b),
        (Value::Struct(a), Value::Struct(b)) | (Value::Elements(a), Value::Elements(b)) => {
            all(a, b)
        }
        (Value::Union(a, Some(left)), Value::Union(b, Some(right))) => {
            a == b && same_value(left, right)
        }
        _ => a == b,
    }
}

/// The value `further` rows after `row`, modulo the size of the table.
fn at<T>(rows: &[T], row: u16, further: usize) -> &T {
    &rows[(usize::from(row) + further) % rows.len()]
}

/// Calls `$one!` for every operation `pass_...`, with: what is compared, how an argument is borrowed, the argument, the
/// reply, the table.
macro_rules! every_type {
    ($one:ident) => {
        $one!(pass_boolean, same, copied, bool, bool, boolean);
        $one!(pass_octet, same, copied, u8, u8, octet);
        $one!(pass_char, same, copied, Char, Char, chars_of_ascii);
        $one!(pass_short, same, copied, i16, i16, short);
        $one!(pass_ushort, same, copied, u16, u16, ushort);
        $one!(pass_long, same, copied, i32, i32, long);
        $one!(pass_ulong, same, copied, u32, u32, ulong);
        $one!(pass_longlong, same, copied, i64, i64, longlong);
        $one!(pass_ulonglong, same, copied, u64, u64, ulonglong);
        $one!(pass_float, same, copied, f32, f32, float);
        $one!(pass_double, same, copied, f64, f64, double);
        $one!(pass_colour, same, copied, Colour, Colour, colour);
        $one!(pass_price, same, lent, &Price, Price, price);
        $one!(pass_little, same, lent, &Price, Price, little);
        $one!(pass_sum, same, lent, &Sum, Sum, sum);
        $one!(pass_string, same, lent, &'a str, Cow<'a, str>, string);
        $one!(pass_sign, same, lent, &CallSign, CallSign, sign);
        $one!(pass_octets, same, lent, &'a [u8], Cow<'a, [u8]>, octets);
        $one!(
            pass_booleans,
            same,
            lent,
            &'a [bool],
            Cow<'a, [bool]>,
            booleans
        );
        $one!(pass_chars, same, lent, &'a [Char], Cow<'a, [Char]>, chars);
        $one!(pass_shorts, same, lent, &'a [i16], Cow<'a, [i16]>, shorts);
        $one!(pass_longs, same, lent, &'a [i32], Cow<'a, [i32]>, longs);
        $one!(
            pass_longlongs,
            same,
            lent,
            &'a [i64],
            Cow<'a, [i64]>,
            longlongs
        );
        $one!(pass_floats, same, lent, &'a [f32], Cow<'a, [f32]>, floats);
        $one!(pass_doubles, same, lent, &'a [f64], Cow<'a, [f64]>, doubles);
        $one!(
            pass_texts,
            same,
            lent,
            &'a [String],
            Cow<'a, [String]>,
            texts
        );
        $one!(
            pass_colours,
            same,
            lent,
            &'a [Colour],
            Cow<'a, [Colour]>,
            colours
        );
        $one!(
            pass_few_longs,
            same,
            lent,
            &'a [i32],
            Cow<'a, [i32]>,
            few_longs
        );
        $one!(
            pass_few_signs,
            same,
            lent,
            &'a [CallSign],
            Cow<'a, [CallSign]>,
            few_signs
        );
        $one!(pass_table, same, lent, &'a [Longs], Cow<'a, [Longs]>, table);
        $one!(pass_grid, same, lent, &Grid, Grid, grid);
        $one!(pass_names, same, lent, &Names, Names, names);
        $one!(pass_cube, same, lent, &Cube, Cube, cube);
        $one!(pass_pair, same, lent, &Pair, Pair, pair);
        $one!(pass_reading, same, lent, &Reading, Reading, reading);
        $one!(
            pass_readings,
            same,
            lent,
            &'a [Reading],
            Cow<'a, [Reading]>,
            readings
        );
        $one!(pass_contact, same, lent, &Contact, Contact, contact);
        $one!(
            pass_contacts,
            same,
            lent,
            &'a [Contact],
            Cow<'a, [Contact]>,
            contacts
        );
        $one!(pass_deal, same, lent, &Deal, Deal, deal);
        $one!(pass_node, same, lent, &Node, Node, node);
        $one!(pass_choice, same, lent, &Choice, Choice, choice);
        $one!(
            pass_choices,
            same,
            lent,
            &'a [Choice],
            Cow<'a, [Choice]>,
            choices
        );
        $one!(pass_flag, same, lent, &Flag, Flag, flag);
        $one!(pass_shade, same, lent, &Shade, Shade, shade);
        $one!(pass_letter, same, lent, &Letter, Letter, letter);
        $one!(pass_any, same_any, lent, &Any, Any, any);
        $one!(pass_anys, same_anys, lent, &'a [Any], Cow<'a, [Any]>, anys);
        $one!(pass_raised, same_any, lent, &Any, Any, raised);
        $one!(pass_far, same, lent, &Far, Far, far);
        $one!(
            pass_longdouble,
            same,
            copied,
            LongDouble,
            LongDouble,
            longdouble
        );
        $one!(pass_latin_char, same, copied, Char, Char, latin_char);
        $one!(
            pass_latin_chars,
            same,
            lent,
            &'a [Char],
            Cow<'a, [Char]>,
            latin_chars
        );
        $one!(pass_wchar, same, copied, char, char, wchar);
        $one!(pass_wstring, same, lent, &WString, WString, wstring);
        $one!(pass_wide_sign, same, lent, &WideSign, WideSign, wide_sign);
        $one!(
            pass_wide_chars,
            same,
            lent,
            &'a [char],
            Cow<'a, [char]>,
            wide_chars
        );
        $one!(
            pass_wide_texts,
            same,
            lent,
            &'a [WString],
            Cow<'a, [WString]>,
            wide_texts
        );
        $one!(pass_wide_any, same_any, lent, &Any, Any, wide_any);
        $one!(pass_wide, same, lent, &Wide, Wide, wide);
    };
}
pub(crate) use every_type;

fn same_anys(a: &[Any], b: &[Any]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_any(a, b))
}
