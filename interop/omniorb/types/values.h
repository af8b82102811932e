// The table of values of Deckwatch::Interop, as omniORB's C++ has them; and what says whether two are the same.
#ifndef DECKWATCH_VALUES_H
#define DECKWATCH_VALUES_H

#include "types.hh"
#include <omniORB4/minorCode.h>

#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace values {

using namespace Deckwatch::Interop;

// What the native code set is: ISO 8859-1, or UTF-8 where the program is told so.
inline bool& utf8() {
    static bool told = false;
    return told;
}

inline const char* umlauts() { return utf8() ? "Gr\xc3\xbc\xc3\x9f" "e" : "Gr\xfc\xdf" "e"; }

template <class Sequence, class Element>
Sequence sequence(const std::vector<Element>& elements) {
    Sequence all;
    all.length(static_cast<CORBA::ULong>(elements.size()));
    for (CORBA::ULong i = 0; i < all.length(); ++i) all[i] = elements[i];
    return all;
}

template <class T>
std::vector<T> extremes() {
    using Limits = std::numeric_limits<T>;
    if (std::is_floating_point<T>::value)
        return {Limits::quiet_NaN(), static_cast<T>(-0.0), Limits::max(), Limits::denorm_min(), Limits::infinity(), -Limits::infinity()};
    return {Limits::min(), static_cast<T>(-1), T(0), Limits::max()};
}

// Sequences: none, the extremes, one.
template <class Sequence, class Element>
std::vector<Sequence> none_all_one(const std::vector<Element>& all, Element one) {
    return {Sequence(), sequence<Sequence>(all), sequence<Sequence>(std::vector<Element>{one})};
}

inline std::vector<CORBA::Boolean> boolean() { return {true, false, true}; }
inline std::vector<CORBA::Octet> octet() { return {0, 127, 255}; }
inline std::vector<CORBA::Char> chars_of_ascii() { return {0, 'a', '~'}; }
inline std::vector<CORBA::Char> latin_char() { return {0xa0, 0xe9, 0xff}; }
inline std::vector<CORBA::WChar> wchar() { return {L'A', 0xe9, 0x20ac, 0xfffd}; }
inline std::vector<CORBA::LongDouble> longdouble() { return {0.125L, -1.0L, 1e300L, 0.0L}; }
inline std::vector<Colour> colour() { return {red, green, blue}; }
// A `fixed` that is constructed as a copy of another forgets its digits, in structs too: such values are assigned.
template <class T>
std::vector<T> decimals(const std::vector<const char*>& numbers) {
    std::vector<T> rows(numbers.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = CORBA::Fixed(numbers[i]);
    return rows;
}
inline std::vector<Price> price() { return decimals<Price>({"1234567.89", "-9999999.99", "1000000.05"}); }
inline std::vector<Price> little() { return decimals<Price>({"0", "0.01", "-0.05"}); }
inline std::vector<Sum> sum() {
    return decimals<Sum>({"123456789012345678901.0123456789", "-999999999999999999999.9999999999", "100000000000000000000.0000000001"});
}
inline std::vector<std::string> string() { return {"", "ahoy", umlauts(), std::string(300, 'x')}; }
inline std::vector<std::string> sign() { return {"", "RTS", "12345678"}; }
// A character beyond the Basic Multilingual Plane is two units of UTF-16.
inline std::vector<std::wstring> wstring() { return {L"", L"plain", L"Gr\xfc\xdf" L"e \x20ac", L"\xd834\xdd1e clef"}; }
inline std::vector<std::wstring> wide_sign() { return {L"", L"four", L"\xe9\x20ac"}; }

inline std::vector<Octets> octets() {
    Octets many;
    many.length(300);
    for (CORBA::ULong i = 0; i < 300; ++i) many[i] = static_cast<CORBA::Octet>(i % 251);
    return {Octets(), sequence<Octets>(octet()), many};
}
inline std::vector<Booleans> booleans() {
    Booleans many;
    many.length(17);
    for (CORBA::ULong i = 0; i < 17; ++i) many[i] = i % 2 == 0;
    return {Booleans(), sequence<Booleans>(boolean()), many};
}
inline std::vector<Chars> chars() { return none_all_one<Chars, CORBA::Char>(chars_of_ascii(), 'z'); }
inline std::vector<Chars> latin_chars() { return none_all_one<Chars, CORBA::Char>(latin_char(), 0xc5); }
inline std::vector<Shorts> shorts() { return none_all_one<Shorts, CORBA::Short>(extremes<CORBA::Short>(), 1); }
inline std::vector<Longs> longs() { return none_all_one<Longs, CORBA::Long>(extremes<CORBA::Long>(), 1); }
inline std::vector<LongLongs> longlongs() { return none_all_one<LongLongs, CORBA::LongLong>(extremes<CORBA::LongLong>(), 1); }
inline std::vector<Floats> floats() { return none_all_one<Floats, CORBA::Float>(extremes<CORBA::Float>(), 0.5f); }
inline std::vector<Doubles> doubles() { return none_all_one<Doubles, CORBA::Double>(extremes<CORBA::Double>(), 0.5); }
inline std::vector<Texts> texts() {
    return {Texts(), sequence<Texts, const char*>({"", "ahoy"}), sequence<Texts, const char*>({umlauts()})};
}
inline std::vector<Colours> colours() { return none_all_one<Colours, Colour>({blue, red}, green); }
inline std::vector<FewLongs> few_longs() {
    return {FewLongs(), sequence<FewLongs, CORBA::Long>({1}), sequence<FewLongs>(extremes<CORBA::Long>())};
}
inline std::vector<FewSigns> few_signs() {
    return {FewSigns(), sequence<FewSigns, const char*>({"RTS"}), sequence<FewSigns, const char*>({"12345678", ""})};
}
inline std::vector<Table> table() {
    std::vector<Longs> rows{Longs(), sequence<Longs, CORBA::Long>({1}), sequence<Longs, CORBA::Long>({2, 3})};
    return {Table(), sequence<Table>(rows), sequence<Table>(std::vector<Longs>{sequence<Longs, CORBA::Long>({-1})})};
}
inline std::vector<WideChars> wide_chars() { return none_all_one<WideChars, CORBA::WChar>({L'A', 0x20ac}, 0xe9); }
inline std::vector<WideTexts> wide_texts() {
    const std::vector<std::wstring> all = wstring();
    return {WideTexts(), sequence<WideTexts, const CORBA::WChar*>({all[0].c_str(), all[2].c_str()}),
            sequence<WideTexts, const CORBA::WChar*>({all[3].c_str()})};
}

// Arrays stand in variables that own them.
inline std::vector<Grid_var> grid() {
    std::vector<Grid_var> rows;
    for (CORBA::Long row = 0; row < 3; ++row) {
        Grid_slice* cells = Grid_alloc();
        for (CORBA::Long i = 0; i < 2; ++i)
            for (CORBA::Long j = 0; j < 3; ++j) cells[i][j] = (i * 3 + j) * (row + 1) - row;
        rows.push_back(Grid_var(cells));
    }
    return rows;
}
inline std::vector<Names_var> names() {
    std::vector<Names_var> rows;
    for (size_t row = 0; row < 3; ++row) {
        Names_slice* three = Names_alloc();
        for (size_t i = 0; i < 3; ++i) three[i] = string()[(row + i) % 3].c_str();
        rows.push_back(Names_var(three));
    }
    return rows;
}
inline std::vector<Cube_var> cube() {
    std::vector<Cube_var> rows;
    for (int row = 0; row < 3; ++row) {
        Cube_slice* cells = Cube_alloc();
        for (int i = 0; i < 8; ++i) cells[i / 4][i / 2 % 2][i % 2] = row + i / 4.0;
        rows.push_back(Cube_var(cells));
    }
    return rows;
}

inline std::vector<Reading> reading() {
    return {
        Reading{false, 0, ' ', extremes<CORBA::Short>()[0], 0, extremes<CORBA::Long>()[0], 0, extremes<CORBA::LongLong>()[0], 0,
                extremes<CORBA::Float>()[5], extremes<CORBA::Double>()[5], red},
        Reading{true, 1, 'x', -2, 3, -4, 5, -6, 7, 0.5f, -0.25, green},
        Reading{true, 255, '~', 32767, 65535, 2147483647, 4294967295u, extremes<CORBA::LongLong>()[3],
                std::numeric_limits<CORBA::ULongLong>::max(), extremes<CORBA::Float>()[2], extremes<CORBA::Double>()[3], blue},
    };
}
inline std::vector<Pair_var> pair() {
    std::vector<Pair_var> rows;
    for (size_t row = 0; row < 3; ++row) {
        Pair_slice* two = Pair_alloc();
        two[0] = reading()[row];
        two[1] = reading()[(row + 1) % 3];
        rows.push_back(Pair_var(two));
    }
    return rows;
}
inline std::vector<Readings> readings() { return none_all_one<Readings, Reading>(reading(), reading()[1]); }
inline std::vector<Contact> contact() {
    std::vector<Contact> rows(3);
    for (size_t row = 0; row < 3; ++row) {
        rows[row].name = string()[row].c_str();
        rows[row].sign = sign()[row].c_str();
        rows[row].track = readings()[row];
        Grid_copy(rows[row].cells, grid()[row].in());
    }
    return rows;
}
inline std::vector<Contacts> contacts() { return none_all_one<Contacts, Contact>(contact(), contact()[2]); }
inline std::vector<Deal> deal() {
    std::vector<Deal> rows(3);
    for (size_t row = 0; row < 3; ++row) {
        rows[row].what = string()[row].c_str();
        rows[row].worth = price()[row];
        rows[row].level = 200;
    }
    return rows;
}
inline Node node_of(const char* name, const std::vector<Node>& children) {
    Node node;
    node.name = name;
    node.children = sequence<Nodes>(children);
    return node;
}
inline std::vector<Node> node() {
    const Node leaf = node_of("leaf", {}), twig = node_of("twig", {leaf});
    Node chain = leaf;
    for (int i = 0; i < 5; ++i) chain = node_of("chain", {chain});
    return {leaf, node_of("root", {leaf, twig}), chain};
}
inline std::vector<Choice> choice() {
    std::vector<Choice> rows(4);
    rows[0].found(contact()[1]);
    rows[0]._d(-1);
    rows[1].level(9);
    rows[2].found(contact()[2]);
    rows[2]._d(7);
    rows[3].text("ahoy");
    rows[3]._d(0);
    return rows;
}
inline std::vector<Choices> choices() { return none_all_one<Choices, Choice>(choice(), choice()[1]); }
inline std::vector<Flag> flag() {
    std::vector<Flag> rows(3);
    rows[0].value(0.5);
    rows[1]._default();
    rows[2].value(-0.0);
    return rows;
}
inline std::vector<Shade> shade() {
    std::vector<Shade> rows(3);
    rows[0].depth(-5);
    rows[1].names(texts()[1]);
    rows[2].inner(choice()[0]);
    return rows;
}
inline std::vector<Letter> letter() {
    std::vector<Letter> rows(3);
    rows[0].s(-2);
    rows[1].cells(grid()[1].in());
    rows[2].other(reading()[2]);
    rows[2]._d('\0');
    return rows;
}
inline std::vector<Far> far() {
    std::vector<Far> rows(3);
    rows[0].above("ahoy");
    rows[1].below(node()[1]);
    rows[2].near(true);
    rows[2]._d(0);
    return rows;
}
inline std::vector<Wide> wide() {
    std::vector<Wide> rows(3);
    for (size_t row = 0; row < 3; ++row) {
        rows[row].lead = 1;
        rows[row].letter = 0x20ac;
        rows[row].text = wstring()[row + 1].c_str();
        rows[row].label = wide_sign()[row].c_str();
    }
    return rows;
}

template <class T>
CORBA::Any any_of(const T& value) {
    CORBA::Any any;
    any <<= value;
    return any;
}
inline CORBA::Any parcel(const Choice& choice, const CORBA::Any& inside, Colour shade) {
    return any_of(Parcel{choice, inside, shade});
}
inline Refused refused() { return Refused(umlauts(), contact()[1], longs()[1]); }
inline std::vector<CORBA::Any> any() {
    return {
        CORBA::Any(),
        any_of(extremes<CORBA::LongLong>()[0]),
        any_of(extremes<CORBA::Double>()[4]),
        any_of(umlauts()),
        any_of(CORBA::Any::from_fixed(price()[1], 9, 2)),
        any_of(blue),
        any_of(contact()[1]),
        any_of(choice()[0]),
        parcel(choice()[3], any_of(node()[1]), blue),
        any_of(parcel(choice()[1], CORBA::Any(), red)),
        any_of(Grid_forany(grid()[1].inout())),
        any_of(readings()[1]),
        any_of(CORBA::TypeCode_ptr(_tc_Contact)),
        any_of(colours()[1]),
        any_of(CORBA::Any::from_boolean(true)),
        any_of(CORBA::Any::from_char('a')),
        any_of(CORBA::Any::from_string("12345678", 8)),
        any_of(letter()[1]),
        any_of(flag()[1]),
    };
}
inline std::vector<CORBA::Any> raised() { return {any_of(refused()), any_of(Closed()), any_of(refused())}; }
inline std::vector<Anys> anys() { return none_all_one<Anys, CORBA::Any>(any(), any()[1]); }
inline std::vector<CORBA::Any> wide_any() {
    return {any_of(wide()[1]), any_of(wstring()[3].c_str()), any_of(CORBA::Any::from_wchar(0x20ac)), any_of(wide_texts()[1])};
}

}  // namespace values

#endif
