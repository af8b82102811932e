// Whether two values are the same, and the list of all types.
#ifndef DECKWATCH_SAME_H
#define DECKWATCH_SAME_H

#include "values.h"

#include <cwchar>

using namespace Deckwatch::Interop;

inline DynamicAny::DynAnyFactory_var& dynamic_factory() {
    static DynamicAny::DynAnyFactory_var factory;
    return factory;
}

// Whether two Anys hold the same value of equivalent types, as omniORB compares values of any type.
static bool same_dynamic(const CORBA::Any& a, const CORBA::Any& b) {
    CORBA::TypeCode_var type = a.type(), other = b.type();
    if (!type->equivalent(other)) return false;
    DynamicAny::DynAny_var left = dynamic_factory()->create_dyn_any(a), right = dynamic_factory()->create_dyn_any(b);
    return left->equal(right);
}

template <class T>
static typename std::enable_if<!std::is_class<T>::value, bool>::type same(const T& a, const T& b) {
    return a == b || (a != a && b != b);
}
static bool same(const std::string& a, const std::string& b) { return a == b; }
static bool same(const std::wstring& a, const std::wstring& b) { return a == b; }
static bool same(const Price& a, const Price& b) { return a == b; }
static bool same(const Sum& a, const Sum& b) { return a == b; }
static bool same(const Grid_slice* a, const Grid_slice* b) { return std::memcmp(a, b, sizeof(Grid)) == 0; }
static bool same(const Cube_slice* a, const Cube_slice* b) { return std::memcmp(a, b, sizeof(Cube)) == 0; }
static bool same(const Names_slice* a, const Names_slice* b) {
    for (int i = 0; i < 3; ++i)
        if (std::strcmp(a[i], b[i]) != 0) return false;
    return true;
}
// What is left holds no NaN that the marshalled octets would not show.
template <class T>
static typename std::enable_if<std::is_class<T>::value, bool>::type same(const T& a, const T& b) {
    cdrMemoryStream left(0, true), right(0, true);
    a >>= left;
    b >>= right;
    return left.bufSize() == right.bufSize() && std::memcmp(left.bufPtr(), right.bufPtr(), left.bufSize()) == 0;
}
// omniORB compares wide text of an Any as it came, with a byte order mark or without: it has to be taken out.
template <class T>
static bool same_inside(const CORBA::Any& a, const CORBA::Any& b) {
    const T *left, *right;
    return (a >>= left) && (b >>= right) && same(*left, *right);
}
static bool same(const CORBA::Any& a, const CORBA::Any& b) {
    const CORBA::WChar *left, *right;
    if ((a >>= left) && (b >>= right)) return std::wcscmp(left, right) == 0;
    return same_inside<Wide>(a, b) || same_inside<WideTexts>(a, b) || same_dynamic(a, b);
}
static bool same(const Anys& a, const Anys& b) {
    for (CORBA::ULong i = 0; i < a.length(); ++i)
        if (i >= b.length() || !same(a[i], b[i])) return false;
    return a.length() == b.length();
}
static bool same(const Pair_slice* a, const Pair_slice* b) { return same(a[0], b[0]) && same(a[1], b[1]); }

template <class T>
static typename std::vector<T>::const_reference at(const std::vector<T>& rows, size_t row) {
    return rows[row % rows.size()];
}

// Every type with the form it has in C++: the name of its operation and table, the type, and what its `out` argument is.
#define TYPES(BASIC, FIXED, VARIABLE, TEXT, WIDE_TEXT, ARRAY)                                                            \
    BASIC(boolean, CORBA::Boolean) BASIC(octet, CORBA::Octet) BASIC(colour, Colour)                                     \
    FIXED(price, Price) FIXED(little, Price) FIXED(sum, Sum) FIXED(reading, Reading) FIXED(flag, Flag) FIXED(letter, Letter) \
    TEXT(string, CORBA::String_out) TEXT(sign, CallSign_out)                                                            \
    VARIABLE(octets, Octets, Octets_out) VARIABLE(booleans, Booleans, Booleans_out) VARIABLE(chars, Chars, Chars_out)   \
    VARIABLE(shorts, Shorts, Shorts_out) VARIABLE(longs, Longs, Longs_out) VARIABLE(longlongs, LongLongs, LongLongs_out) \
    VARIABLE(floats, Floats, Floats_out) VARIABLE(doubles, Doubles, Doubles_out) VARIABLE(texts, Texts, Texts_out)      \
    VARIABLE(colours, Colours, Colours_out) VARIABLE(few_longs, FewLongs, FewLongs_out)                                 \
    VARIABLE(few_signs, FewSigns, FewSigns_out) VARIABLE(table, Table, Table_out)                                       \
    VARIABLE(readings, Readings, Readings_out) VARIABLE(contact, Contact, Contact_out)                                  \
    VARIABLE(contacts, Contacts, Contacts_out) VARIABLE(deal, Deal, Deal_out) VARIABLE(node, Node, Node_out) VARIABLE(choice, Choice, Choice_out)      \
    VARIABLE(choices, Choices, Choices_out) VARIABLE(shade, Shade, Shade_out) VARIABLE(far, Far, Far_out)               \
    VARIABLE(any, CORBA::Any, CORBA::Any_OUT_arg) VARIABLE(anys, Anys, Anys_out)                                        \
    ARRAY(grid, Grid, Grid) ARRAY(names, Names, Names_out) ARRAY(cube, Cube, Cube) ARRAY(pair, Pair, Pair)              \
    BASIC(latin_char, CORBA::Char) VARIABLE(latin_chars, Chars, Chars_out) BASIC(wchar, CORBA::WChar)                   \
    WIDE_TEXT(wstring, CORBA::WString_out) WIDE_TEXT(wide_sign, WideSign_out)                                           \
    VARIABLE(wide_chars, WideChars, WideChars_out) VARIABLE(wide_texts, WideTexts, WideTexts_out)                       \
    VARIABLE(wide_any, CORBA::Any, CORBA::Any_OUT_arg) VARIABLE(wide, Wide, Wide_out)

// Those that omniORB has in a form of its own: exceptions in an Any, `long double`.
#define PECULIAR(BASIC, VARIABLE) VARIABLE(raised, CORBA::Any, CORBA::Any_OUT_arg) BASIC(longdouble, CORBA::LongDouble)

// Numbers, whose tables are their extremes.
#define NUMBERS(BASIC)                                                                                            \
    BASIC(short, CORBA::Short) BASIC(ushort, CORBA::UShort) BASIC(long, CORBA::Long) BASIC(ulong, CORBA::ULong)   \
    BASIC(longlong, CORBA::LongLong) BASIC(ulonglong, CORBA::ULongLong) BASIC(float, CORBA::Float) BASIC(double, CORBA::Double)

#endif
