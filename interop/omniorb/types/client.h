// Calls every operation of Deckwatch::Interop::Types with every row of the tables.
#ifndef DECKWATCH_CLIENT_H
#define DECKWATCH_CLIENT_H

#include "same.h"

#include <cstdio>

class Ear : public POA_Deckwatch::Interop::Listener {
public:
    char* heard(const char* text) override {
        if (std::strcmp(text, "close") == 0) throw Closed();
        return CORBA::string_dup(text);
    }
};

class Caller {
    Types_ptr types;
    bool wide, latin;
    std::string only;
    int calls = 0, wrong = 0;

    void check(const char* what, size_t row, bool good) {
        ++calls;
        if (good) return;
        ++wrong;
        std::printf("%s row %zu: DIFFERENT\n", what, row);
    }
    bool is_wanted(const std::string& what) const {
        if (!only.empty()) return only == what;
        if (what == "raised" || what == "longdouble") return false;
        return (wide || what[0] != 'w') && (latin || what.compare(0, 5, "latin") != 0);
    }
    // One call of every row; `call` says whether what came back is right.
    template <class T, class Call>
    void each(const char* what, const std::vector<T>& rows, Call call) {
        for (size_t row = 0; row < rows.size(); ++row) attempt(what, row, [&] { return call(static_cast<CORBA::UShort>(row), rows); });
    }
    template <class Call>
    void attempt(const char* what, size_t row, Call call) {
        try {
            check(what, row, call());
        } catch (const CORBA::SystemException& exception) {
            const char* minor = exception.NP_minorString();
            std::printf("%s row %zu: %s minor %#x %s\n", what, row, exception._name(), exception.minor(), minor ? minor : "");
            ++wrong;
        } catch (const CORBA::UserException& exception) {
            std::printf("%s row %zu: %s\n", what, row, exception._name());
            ++wrong;
        }
    }

    void pass_all() {
        using CORBA::UShort;
#define BASIC(op, T) NUMBERED(op, T, values::op())
#define FIXED(op, T) NUMBERED(op, T, values::op())
#define NUMBER(op, T) NUMBERED(op, T, values::extremes<T>())
#define NUMBERED(op, T, ROWS)                                                                                           \
    if (is_wanted(#op)) each(#op, ROWS, [&](UShort row, const std::vector<T>& rows) {                                   \
        T b, c;                                                                                                         \
        b = at(rows, row + 1);                                                                                          \
        T result = types->pass_##op(row, at(rows, row), b, c);                                                          \
        return same(result, at(rows, row + 2)) && same(b, at(rows, row)) && same(c, at(rows, row + 1));                 \
    });
#define VARIABLE(op, T, OUT)                                                                                            \
    if (is_wanted(#op)) each(#op, values::op(), [&](UShort row, const std::vector<T>& rows) {                           \
        T b;                                                                                                            \
        b = at(rows, row + 1);                                                                                          \
        T##_var c, result = types->pass_##op(row, at(rows, row), b, c.out());                                           \
        return same(result.in(), at(rows, row + 2)) && same(b, at(rows, row)) && same(c.in(), at(rows, row + 1));       \
    });
#define TEXT(op, OUT) TEXTUAL(op, std::string, CORBA::String_var)
#define WIDE_TEXT(op, OUT) TEXTUAL(op, std::wstring, CORBA::WString_var)
#define TEXTUAL(op, T, VAR)                                                                                             \
    if (is_wanted(#op)) each(#op, values::op(), [&](UShort row, const std::vector<T>& rows) {                           \
        VAR b = at(rows, row + 1).c_str(), c, result = types->pass_##op(row, at(rows, row).c_str(), b.inout(), c.out()); \
        return at(rows, row + 2) == result.in() && at(rows, row) == b.in() && at(rows, row + 1) == c.in();              \
    });
#define ARRAY(op, T, OUT)                                                                                               \
    if (is_wanted(#op)) each(#op, values::op(), [&](UShort row, const std::vector<T##_var>& rows) {                     \
        T##_var b = T##_dup(at(rows, row + 1).in()), c;                                                                 \
        OUTPUT_##op(c, T);                                                                                              \
        T##_var result = types->pass_##op(row, at(rows, row).in(), b.inout(), c.out());                                 \
        return same(result.in(), at(rows, row + 2).in()) && same(b.in(), at(rows, row).in()) &&                         \
               same(c.in(), at(rows, row + 1).in());                                                                    \
    });
        // An array of fixed size is written where the caller has room for it.
#define OUTPUT_grid(c, T) c = T##_alloc()
#define OUTPUT_cube(c, T) c = T##_alloc()
#define OUTPUT_pair(c, T) c = T##_alloc()
#define OUTPUT_names(c, T)
        PECULIAR(BASIC, VARIABLE)
        TYPES(BASIC, FIXED, VARIABLE, TEXT, WIDE_TEXT, ARRAY)
        NUMBERS(NUMBER)
        NUMBERED(char, CORBA::Char, values::chars_of_ascii())
#undef BASIC
#undef FIXED
#undef NUMBER
#undef VARIABLE
#undef TEXT
#undef WIDE_TEXT
#undef ARRAY
    }

    void turn_all() {
        attempt("objects", 0, [&] {
            CORBA::Object_var b = CORBA::Object::_nil(), c = CORBA::Object::_duplicate(types);
            CORBA::Object_var result = types->turn_objects(types, b.inout(), c.inout());
            return result->_is_equivalent(types) && b->_is_equivalent(types) && CORBA::is_nil(c);
        });
        attempt("types", 0, [&] {
            CORBA::TypeCode_var b = CORBA::TypeCode::_duplicate(_tc_Node), c = CORBA::TypeCode::_duplicate(_tc_Choice);
            CORBA::TypeCode_var result = types->turn_types(_tc_Parcel, b.inout(), c.inout());
            return result->equal(_tc_Parcel) && b->equal(_tc_Choice) && c->equal(_tc_Node);
        });
        attempt("far types", 0, [&] {
            CORBA::TypeCode_var b = CORBA::TypeCode::_duplicate(CORBA::_tc_null), c = CORBA::TypeCode::_duplicate(_tc_Far);
            CORBA::TypeCode_var result = types->turn_types(_tc_Types, b.inout(), c.inout());
            return result->equal(_tc_Types) && b->equal(_tc_Far) && c->equal(CORBA::_tc_null);
        });
        attempt("attribute", 0, [&] {
            for (const Contact& contact : values::contact()) {
                types->favourite(contact);
                Contact_var liked = types->favourite();
                if (!same(liked.in(), contact)) return false;
            }
            CORBA::String_var label = types->label();
            return std::strcmp(label, "tables") == 0 && types->half(-8) == -4;
        });
        attempt("_is_a", 0, [&] {
            return types->_is_a("IDL:Deckwatch/Interop/Base:1.0") && !types->_is_a("IDL:Deckwatch/Interop/Listener:1.0") && !types->_non_existent();
        });
    }

    void call_back(PortableServer::POA_ptr root) {
        PortableServer::Servant_var<Ear> ear = new Ear;
        PortableServer::ObjectId_var id = root->activate_object(ear);
        CORBA::Object_var object = root->id_to_reference(id);
        Listener_var listener = Listener::_narrow(object);
        attempt("reference in an any", 0, [&] {
            CORBA::Any any;
            any <<= listener.in();
            CORBA::Any_var back = types->mirror_any(any);
            Listener_ptr inside;
            return (back.in() >>= inside) && inside->_is_equivalent(listener);
        });
        attempt("callback", 0, [&] {
            CORBA::String_var heard = types->call_back(listener, values::umlauts());
            return std::strcmp(heard, values::umlauts()) == 0;
        });
        attempt("callback", 1, [&] {
            try {
                CORBA::String_var heard = types->call_back(listener, "close");
            } catch (const Closed&) {
                return true;
            }
            return false;
        });
    }

    void raise_all() {
        const auto as_expected = [](const Refused& refused) { return same(refused, values::refused()); };
        attempt("refuse", 0, [&] {
            try {
                types->refuse();
            } catch (const Refused& refused) {
                return as_expected(refused);
            }
            return false;
        });
        attempt("odd half", 0, [&] {
            try {
                types->half(3);
            } catch (const Refused& refused) {
                return as_expected(refused);
            }
            return false;
        });
        attempt("shut", 0, [&] {
            try {
                types->shut();
            } catch (const Closed&) {
                return true;
            }
            return false;
        });
        attempt("fail", 0, [&] {
            try {
                types->fail();
            } catch (const CORBA::NO_PERMISSION& exception) {
                return exception.minor() == 7 && exception.completed() == CORBA::COMPLETED_YES;
            }
            return false;
        });
    }

    // Messages of about a megabyte, and one-ways of all lengths behind each other.
    void send_much() {
        for (CORBA::ULong len : {0u, 8191u, 8192u, 100001u, 1000000u})
            attempt("octets", len, [&] {
                Octets data;
                data.length(len);
                for (CORBA::ULong i = 0; i < len; ++i) data[i] = static_cast<CORBA::Octet>(i % 251);
                Octets_var back = types->mirror_octets(data);
                return same(back.in(), data);
            });
        attempt("much text", 0, [&] {
            const std::string text(1000000, 'y');
            CORBA::String_var back = types->mirror_string(text.c_str());
            return text == back.in();
        });
        attempt("many readings", 0, [&] {
            Readings data;
            data.length(18000);
            for (CORBA::ULong i = 0; i < data.length(); ++i) data[i] = values::reading()[i % 3];
            Readings_var back = types->mirror_readings(data);
            return same(back.in(), data);
        });
        attempt("many contacts", 0, [&] {
            Contacts data;
            data.length(3000);
            const std::vector<Contact> rows = values::contact();
            for (CORBA::ULong i = 0; i < data.length(); ++i) data[i] = rows[i % 3];
            Contacts_var back = types->mirror_contacts(data);
            return same(back.in(), data);
        });
        attempt("oneways", 0, [&] {
            const CORBA::ULong count = types->noted();
            for (CORBA::ULong number = count; number < count + 300; ++number) {
                Octets padding;
                padding.length(number % 100 == 99 ? 20000 : number % 60);
                types->note(number, padding);
            }
            return types->noted() == count + 300;
        });
    }

public:
    Caller(Types_ptr types, bool wide, bool latin, const std::string& only)
        : types(types), wide(wide), latin(latin), only(only) {}

    // Gives the status of the program.
    int call_all(PortableServer::POA_ptr root) {
        pass_all();
        if (only.empty()) {
            turn_all();
            call_back(root);
            raise_all();
            send_much();
        }
        std::printf("%d calls, %d not as expected\n", calls, wrong);
        return wrong == 0 ? 0 : 1;
    }
};

#endif
