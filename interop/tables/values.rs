//! The rows of each table.

use std::array::from_fn;

use deckwatch_cdr::{Any, BoundedString, Char, LongDouble, Typed, WString, Write};

use super::*;

/// Three sequences: empty, all these values, one value.
fn none_all_one<T>(all: Vec<T>, one: T) -> Vec<Vec<T>> {
    vec![vec![], all, vec![one]]
}

fn bounded<const N: usize>(text: &str) -> BoundedString<N> {
    BoundedString::try_from(text).expect("the text fits")
}

pub(crate) const UMLAUTS: &str = "Grüße";

pub(crate) fn boolean() -> Vec<bool> {
    vec![true, false, true]
}
pub(crate) fn octet() -> Vec<u8> {
    vec![0, 127, 255]
}
pub(crate) fn chars_of_ascii() -> Vec<Char> {
    vec![Char(0), Char(b'a'), Char(b'~')]
}
pub(crate) fn latin_char() -> Vec<Char> {
    vec![Char(0xa0), Char(0xe9), Char(0xff)]
}
pub(crate) fn short() -> Vec<i16> {
    vec![i16::MIN, -1, 0, i16::MAX]
}
pub(crate) fn ushort() -> Vec<u16> {
    vec![0, u16::MAX, 0, u16::MAX]
}
pub(crate) fn long() -> Vec<i32> {
    vec![i32::MIN, -1, 0, i32::MAX]
}
pub(crate) fn ulong() -> Vec<u32> {
    vec![0, u32::MAX, 0, u32::MAX]
}
pub(crate) fn longlong() -> Vec<i64> {
    vec![i64::MIN, -1, 0, i64::MAX]
}
pub(crate) fn ulonglong() -> Vec<u64> {
    vec![0, u64::MAX, 0, u64::MAX]
}
pub(crate) fn float() -> Vec<f32> {
    let smallest = f32::from_bits(1);
    vec![
        f32::NAN,
        -0.0,
        f32::MAX,
        smallest,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ]
}
pub(crate) fn double() -> Vec<f64> {
    let smallest = f64::from_bits(1);
    vec![
        f64::NAN,
        -0.0,
        f64::MAX,
        smallest,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ]
}
pub(crate) fn longdouble() -> Vec<LongDouble> {
    [0.125, -1.0, 1e300, 0.0].map(LongDouble::from).to_vec()
}
pub(crate) fn colour() -> Vec<Colour> {
    vec![Colour::Red, Colour::Green, Colour::Blue]
}
pub(crate) fn price() -> Vec<Price> {
    ["1234567.89", "-9999999.99", "1000000.05"]
        .map(|text| text.parse().expect("a price"))
        .to_vec()
}
pub(crate) fn little() -> Vec<Price> {
    ["0", "0.01", "-0.05"]
        .map(|text| text.parse().expect("a price"))
        .to_vec()
}
pub(crate) fn sum() -> Vec<Sum> {
    let texts = [
        "123456789012345678901.0123456789",
        "-999999999999999999999.9999999999",
        "100000000000000000000.0000000001",
    ];
    texts.map(|text| text.parse().expect("a sum")).to_vec()
}
pub(crate) fn string() -> Vec<String> {
    vec![
        String::new(),
        "ahoy".into(),
        UMLAUTS.into(),
        "x".repeat(300),
    ]
}
pub(crate) fn sign() -> Vec<CallSign> {
    ["", "RTS", "12345678"].map(bounded).to_vec()
}
pub(crate) fn wchar() -> Vec<char> {
    vec!['A', 'é', '€', '\u{fffd}']
}
pub(crate) fn wstring() -> Vec<WString> {
    ["", "plain", "Grüße €", "𝄞 clef"]
        .map(WString::from)
        .to_vec()
}
pub(crate) fn wide_sign() -> Vec<WideSign> {
    ["", "four", "é€"].map(WString::from).to_vec()
}

pub(crate) fn octets() -> Vec<Octets> {
    vec![
        vec![],
        octet(),
        (0..300_u16).map(|number| (number % 251) as u8).collect(),
    ]
}
pub(crate) fn booleans() -> Vec<Booleans> {
    vec![
        vec![],
        boolean(),
        (0..17).map(|number| number % 2 == 0).collect(),
    ]
}
pub(crate) fn chars() -> Vec<Chars> {
    none_all_one(chars_of_ascii(), Char(b'z'))
}
pub(crate) fn latin_chars() -> Vec<Chars> {
    none_all_one(latin_char(), Char(0xc5))
}
pub(crate) fn shorts() -> Vec<Shorts> {
    none_all_one(short(), 1)
}
pub(crate) fn longs() -> Vec<Longs> {
    none_all_one(long(), 1)
}
pub(crate) fn longlongs() -> Vec<LongLongs> {
    none_all_one(longlong(), 1)
}
pub(crate) fn floats() -> Vec<Floats> {
    none_all_one(float(), 0.5)
}
pub(crate) fn doubles() -> Vec<Doubles> {
    none_all_one(double(), 0.5)
}
pub(crate) fn texts() -> Vec<Texts> {
    vec![
        vec![],
        vec![String::new(), "ahoy".into()],
        vec![UMLAUTS.into()],
    ]
}
pub(crate) fn colours() -> Vec<Colours> {
    none_all_one(vec![Colour::Blue, Colour::Red], Colour::Green)
}
pub(crate) fn few_longs() -> Vec<Vec<i32>> {
    vec![vec![], vec![1], long()]
}
pub(crate) fn few_signs() -> Vec<Vec<CallSign>> {
    vec![
        vec![],
        vec![bounded("RTS")],
        vec![bounded("12345678"), bounded("")],
    ]
}
pub(crate) fn table() -> Vec<Table> {
    vec![vec![], vec![vec![], vec![1], vec![2, 3]], vec![vec![-1]]]
}
pub(crate) fn wide_chars() -> Vec<WideChars> {
    none_all_one(vec!['A', '€'], 'é')
}
pub(crate) fn wide_texts() -> Vec<WideTexts> {
    let all = wstring();
    vec![
        vec![],
        vec![all[0].clone(), all[2].clone()],
        vec![all[3].clone()],
    ]
}

pub(crate) fn grid() -> Vec<Grid> {
    let cells = |row: i32| from_fn(|i| from_fn(|j| (i as i32 * 3 + j as i32) * (row + 1) - row));
    (0..3).map(cells).collect()
}
pub(crate) fn names() -> Vec<Names> {
    (0..3)
        .map(|row| from_fn(|i| string()[(row + i) % 3].clone()))
        .collect()
}
pub(crate) fn cube() -> Vec<Cube> {
    let cell = |row: u8, index: usize| f64::from(row) + index as f64 / 4.0;
    let cells = |row| from_fn(|i| from_fn(|j| from_fn(|k| cell(row, i * 4 + j * 2 + k))));
    (0..3).map(cells).collect()
}
pub(crate) fn pair() -> Vec<Pair> {
    let all = reading();
    (0..3).map(|row| [all[row], all[(row + 1) % 3]]).collect()
}

pub(crate) fn reading() -> Vec<Reading> {
    vec![
        Reading {
            valid: false,
            level: 0,
            mark: Char(b' '),
            s: i16::MIN,
            us: 0,
            l: i32::MIN,
            ul: 0,
            ll: i64::MIN,
            ull: 0,
            f: f32::NEG_INFINITY,
            d: f64::NEG_INFINITY,
            shade: Colour::Red,
        },
        Reading {
            valid: true,
            level: 1,
            mark: Char(b'x'),
            s: -2,
            us: 3,
            l: -4,
            ul: 5,
            ll: -6,
            ull: 7,
            f: 0.5,
            d: -0.25,
            shade: Colour::Green,
        },
        Reading {
            valid: true,
            level: 255,
            mark: Char(b'~'),
            s: i16::MAX,
            us: u16::MAX,
            l: i32::MAX,
            ul: u32::MAX,
            ll: i64::MAX,
            ull: u64::MAX,
            f: f32::MAX,
            d: f64::from_bits(1),
            shade: Colour::Blue,
        },
    ]
}
pub(crate) fn readings() -> Vec<Readings> {
    none_all_one(reading(), reading()[1])
}
pub(crate) fn contact() -> Vec<Contact> {
    let of = |row: usize| Contact {
        name: string()[row].clone(),
        sign: sign()[row],
        track: readings()[row].clone(),
        cells: grid()[row],
    };
    (0..3).map(of).collect()
}
pub(crate) fn contacts() -> Vec<Contacts> {
    none_all_one(contact(), contact()[2].clone())
}
pub(crate) fn deal() -> Vec<Deal> {
    let of = |row: usize| Deal {
        what: string()[row].clone(),
        worth: price()[row],
        level: 200,
    };
    (0..3).map(of).collect()
}
fn node_of(name: &str, children: &[Node]) -> Node {
    Node {
        name: name.into(),
        children: children.to_vec(),
    }
}
pub(crate) fn node() -> Vec<Node> {
    let leaf = node_of("leaf", &[]);
    let twig = node_of("twig", std::slice::from_ref(&leaf));
    let chain = (0..5).fold(leaf.clone(), |chain, _| node_of("chain", &[chain]));
    vec![leaf.clone(), node_of("root", &[leaf, twig]), chain]
}
pub(crate) fn choice() -> Vec<Choice> {
    vec![
        Choice::Found(-1, contact()[1].clone()),
        Choice::Level(9),
        Choice::Found(7, contact()[2].clone()),
        Choice::Text(0, "ahoy".into()),
    ]
}
pub(crate) fn choices() -> Vec<Choices> {
    none_all_one(choice(), choice()[1].clone())
}
pub(crate) fn flag() -> Vec<Flag> {
    vec![Flag::Value(0.5), Flag::Other(false), Flag::Value(-0.0)]
}
pub(crate) fn shade() -> Vec<Shade> {
    vec![
        Shade::Depth(-5),
        Shade::Names(texts()[1].clone()),
        Shade::Inner(choice()[0].clone()),
    ]
}
pub(crate) fn letter() -> Vec<Letter> {
    vec![
        Letter::S(-2),
        Letter::Cells(grid()[1]),
        Letter::Other(Char(0), reading()[2]),
    ]
}
pub(crate) fn far() -> Vec<Far> {
    vec![
        Far::Above("ahoy".into()),
        Far::Below(node()[1].clone()),
        Far::Near(0, true),
    ]
}
pub(crate) fn wide() -> Vec<Wide> {
    let of = |row: usize| Wide {
        lead: 1,
        letter: '€',
        text: wstring()[row + 1].clone(),
        label: wide_sign()[row].clone(),
    };
    (0..3).map(of).collect()
}

fn any_of<T: Typed + Write + ?Sized>(value: &T) -> Any {
    Any::from_value(value).expect("a value of the table can be written")
}
fn parcel(pick: Choice, inside: Any, shade: Colour) -> Any {
    any_of(&Parcel {
        pick,
        inside,
        shade,
    })
}
pub(crate) fn refused() -> Refused {
    Refused {
        reason: UMLAUTS.into(),
        who: contact()[1].clone(),
        codes: longs()[1].clone(),
    }
}
pub(crate) fn any() -> Vec<Any> {
    let choices = choice();
    vec![
        Any::empty(),
        any_of(&i64::MIN),
        any_of(&f64::INFINITY),
        any_of(UMLAUTS),
        any_of(&price()[1]),
        any_of(&Colour::Blue),
        any_of(&contact()[1]),
        any_of(&choices[0]),
        parcel(choices[3].clone(), any_of(&node()[1]), Colour::Blue),
        any_of(&parcel(choices[1].clone(), Any::empty(), Colour::Red)),
        any_of(&grid()[1]),
        any_of(&readings()[1]),
        any_of(&Contact::type_code()),
        any_of(&colours()[1]),
        any_of(&true),
        any_of(&Char(b'a')),
        any_of(&sign()[2]),
        any_of(&letter()[1]),
        any_of(&flag()[1]),
    ]
}
pub(crate) fn raised() -> Vec<Any> {
    vec![any_of(&refused()), any_of(&Closed {}), any_of(&refused())]
}
pub(crate) fn anys() -> Vec<Anys> {
    none_all_one(any(), any()[1].clone())
}
pub(crate) fn wide_any() -> Vec<Any> {
    vec![
        any_of(&wide()[1]),
        any_of(&wstring()[3]),
        any_of(&'€'),
        any_of(&wide_texts()[1]),
    ]
}
