// Serves Deckwatch::Interop::Types from the tables.
#ifndef DECKWATCH_SERVER_H
#define DECKWATCH_SERVER_H

#include "same.h"

#include <cstdio>

template <class T, class A>
static void receive(const char* operation, CORBA::UShort row, const A& a, const A& b, const std::vector<T>& rows) {
    bool first = same(a, at(rows, row)), second = same(b, at(rows, row + 1));
    if (first && second) return;
    std::fprintf(stderr, "%s received row %u: %s is different\n", operation, row, first ? "b" : "a");
    throw CORBA::BAD_PARAM(omni::BAD_PARAM_EnumValueOutOfRange, CORBA::COMPLETED_NO);
}

class Tables : public POA_Deckwatch::Interop::Types {
    CORBA::ULong next = 0;
    Contact liked;

public:
#define BASIC(op, T)                                                                                                  \
    T pass_##op(CORBA::UShort row, T a, T& b, T& c) override { return give(#op, row, a, b, c, values::op()); }
#define FIXED(op, T)                                                                                                  \
    T pass_##op(CORBA::UShort row, const T& a, T& b, T& c) override { return give(#op, row, a, b, c, values::op()); }
#define NUMBER(op, T)                                                                                                 \
    T pass_##op(CORBA::UShort row, T a, T& b, T& c) override { return give(#op, row, a, b, c, values::extremes<T>()); }
#define VARIABLE(op, T, OUT)                                                                                          \
    T* pass_##op(CORBA::UShort row, const T& a, T& b, OUT c) override {                                               \
        const std::vector<T> rows = values::op();                                                                     \
        receive(#op, row, a, b, rows);                                                                                \
        b = at(rows, row);                                                                                            \
        c = copy(at(rows, row + 1));                                                                                 \
        return copy(at(rows, row + 2));                                                                              \
    }
#define TEXT(op, OUT)                                                                                                 \
    char* pass_##op(CORBA::UShort row, const char* a, char*& b, OUT c) override {                                     \
        const std::vector<std::string> rows = values::op();                                                           \
        receive(#op, row, std::string(a), std::string(b), rows);                                                      \
        CORBA::string_free(b);                                                                                        \
        b = CORBA::string_dup(at(rows, row).c_str());                                                                 \
        c = CORBA::string_dup(at(rows, row + 1).c_str());                                                             \
        return CORBA::string_dup(at(rows, row + 2).c_str());                                                          \
    }
#define WIDE_TEXT(op, OUT)                                                                                            \
    CORBA::WChar* pass_##op(CORBA::UShort row, const CORBA::WChar* a, CORBA::WChar*& b, OUT c) override {             \
        const std::vector<std::wstring> rows = values::op();                                                          \
        receive(#op, row, std::wstring(a), std::wstring(b), rows);                                                    \
        CORBA::wstring_free(b);                                                                                       \
        b = CORBA::wstring_dup(at(rows, row).c_str());                                                                \
        c = CORBA::wstring_dup(at(rows, row + 1).c_str());                                                            \
        return CORBA::wstring_dup(at(rows, row + 2).c_str());                                                         \
    }
#define ARRAY(op, T, OUT)                                                                                             \
    T##_slice* pass_##op(CORBA::UShort row, const T a, T b, OUT c) override {                                         \
        const std::vector<T##_var> rows = values::op();                                                               \
        bool good = same(a, at(rows, row).in()) && same(static_cast<const T##_slice*>(b), at(rows, row + 1).in());    \
        if (!good) throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);                                                    \
        T##_copy(b, at(rows, row).in());                                                                              \
        put(c, T##_dup(at(rows, row + 1).in()));                                                                      \
        return T##_dup(at(rows, row + 2).in());                                                                       \
    }
    TYPES(BASIC, FIXED, VARIABLE, TEXT, WIDE_TEXT, ARRAY)
    NUMBERS(NUMBER)
    PECULIAR(BASIC, VARIABLE)
#undef BASIC
#undef FIXED
#undef NUMBER
#undef VARIABLE
#undef TEXT
#undef WIDE_TEXT
#undef ARRAY

    CORBA::Char pass_char(CORBA::UShort row, CORBA::Char a, CORBA::Char& b, CORBA::Char& c) override {
        return give("char", row, a, b, c, values::chars_of_ascii());
    }
    CORBA::Object_ptr turn_objects(CORBA::Object_ptr a, CORBA::Object_ptr& b, CORBA::Object_ptr& c) override {
        std::swap(b, c);
        return CORBA::Object::_duplicate(a);
    }
    CORBA::TypeCode_ptr turn_types(CORBA::TypeCode_ptr a, CORBA::TypeCode_ptr& b, CORBA::TypeCode_ptr& c) override {
        std::swap(b, c);
        return CORBA::TypeCode::_duplicate(a);
    }
    char* call_back(Listener_ptr who, const char* text) override { return who->heard(text); }
    Octets* mirror_octets(const Octets& data) override { return new Octets(data); }
    char* mirror_string(const char* data) override { return CORBA::string_dup(data); }
    CORBA::Any* mirror_any(const CORBA::Any& data) override { return new CORBA::Any(data); }
    Readings* mirror_readings(const Readings& data) override { return new Readings(data); }
    Contacts* mirror_contacts(const Contacts& data) override { return new Contacts(data); }
    void refuse() override { throw values::refused(); }
    void shut() override { throw Closed(); }
    void fail() override { throw CORBA::NO_PERMISSION(7, CORBA::COMPLETED_YES); }
    char* label() override { return CORBA::string_dup("tables"); }
    CORBA::Long half(CORBA::Long number) override {
        if (number % 2 != 0) throw values::refused();
        return number / 2;
    }
    Contact* favourite() override { return copy(liked); }
    void favourite(const Contact& contact) override { liked = contact; }
    void note(CORBA::ULong number, const Octets&) override {
        if (number == next) ++next;
    }
    CORBA::ULong noted() override { return next; }

private:
    template <class T>
    static T give(const char* operation, CORBA::UShort row, const T& a, T& b, T& c, const std::vector<T>& rows) {
        receive(operation, row, a, b, rows);
        b = at(rows, row);
        c = at(rows, row + 1);
        return at(rows, row + 2);
    }
    template <class T>
    static T* copy(const T& value) {
        T* made = new T;
        *made = value;
        return made;
    }
    static void put(Names_out c, Names_slice* value) { c = value; }
    static void put(Grid_slice* c, Grid_slice* value) { Grid_copy(c, value), Grid_free(value); }
    static void put(Cube_slice* c, Cube_slice* value) { Cube_copy(c, value), Cube_free(value); }
    static void put(Pair_slice* c, Pair_slice* value) { Pair_copy(c, value), Pair_free(value); }
};

#endif
