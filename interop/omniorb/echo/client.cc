// An omniORB client of Deckwatch::Echo: calls every operation and exits with 1 at the first answer that is not as sent.
// Usage: client REFERENCE [STRUCTS]; 2000 structs where no number is given.
#include "echo.hh"
#include "../program.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

using namespace Deckwatch;

static void check(const char* what, bool holds) {
    std::printf("%s: %s\n", what, holds ? "as sent" : "DIFFERENT");
    if (!holds) std::exit(1);
}

static ComplexStruct complex(int number) {
    ComplexStruct data;
    data.s = static_cast<CORBA::Short>(number);
    data.l = number;
    data.f = 0.5f;
    data.d = number / 3.0;
    data.c = 'x';
    data.name = "ship";
    return data;
}

static bool same(const ComplexStruct& a, const ComplexStruct& b) {
    return a.s == b.s && a.l == b.l && a.f == b.f && a.d == b.d && a.c == b.c && std::strcmp(a.name, b.name) == 0;
}

static void call_all(Echo_ptr echo, CORBA::ULong structs) {
    echo->ping();
    CORBA::String_var text = echo->echo_string("ahoy");
    check("string", std::strcmp(text, "ahoy") == 0);
    for (CORBA::ULong len : {0u, 64u, 8191u, 100000u, 1000000u}) {
        OctetSequence octets;
        octets.length(len);
        for (CORBA::ULong i = 0; i < len; ++i) octets[i] = static_cast<CORBA::Octet>(i % 251);
        OctetSequence_var back = echo->echo_octets(octets);
        check("octets", back->length() == len && (len == 0 || std::memcmp(back->get_buffer(), octets.get_buffer(), len) == 0));
    }
    ComplexStruct_var one = echo->echo_complex(complex(7));
    check("struct", same(one.in(), complex(7)));
    ComplexSequence many;
    many.length(structs);
    for (CORBA::ULong i = 0; i < many.length(); ++i) many[i] = complex(static_cast<int>(i));
    ComplexSequence_var many_back = echo->echo_complex_sequence(many);
    bool all = many_back->length() == many.length();
    for (CORBA::ULong i = 0; all && i < many.length(); ++i) all = same(many_back[i], many[i]);
    check("structs", all);
    CORBA::Any any;
    any <<= complex(9);
    CORBA::Any_var any_back = echo->echo_any(any);
    const ComplexStruct* inside = nullptr;
    check("any", (any_back.in() >>= inside) && same(*inside, complex(9)));
    CORBA::Object_var nil = echo->echo_object(CORBA::Object::_nil());
    check("nil", CORBA::is_nil(nil));
    CORBA::Object_var object = echo->echo_object(echo);
    Echo_var again = Echo::_narrow(object);
    check("object", !CORBA::is_nil(again) && again->_is_equivalent(echo));
    try {
        echo->refuse("not today", 42);
        check("exception", false);
    } catch (const Refused& refused) {
        check("exception", std::strcmp(refused.reason, "not today") == 0 && refused.code == 42);
    }
    CORBA::Any outer;
    outer <<= any;
    CORBA::Any_var outer_back = echo->echo_any(outer);
    const CORBA::Any* middle = nullptr;
    check("nested any", (outer_back.in() >>= middle) && (*middle >>= inside) && same(*inside, complex(9)));
    CORBA::ULongLong before = echo->calls();
    for (int number = 0; number < 300; ++number) {
        OctetSequence octets;
        octets.length(64);
        octets[0] = static_cast<CORBA::Octet>(before + number);
        echo->send_octets(octets);
    }
    time_t begun = time(nullptr);
    while (echo->calls() < before + 300 && time(nullptr) < begun + 10) {
    }
    check("300 oneways in order", echo->calls() == before + 300);
    check("_is_a", echo->_is_a("IDL:Deckwatch/Echo:1.0") && !echo->_is_a("IDL:Deckwatch/Other:1.0"));
    check("_non_existent", !echo->_non_existent());
}

static int work(CORBA::ORB_ptr orb, int argc, char** argv) {
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: client REFERENCE [STRUCTS]\n");
        return 2;
    }
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Echo_var echo = Echo::_narrow(object);
    check("narrow", !CORBA::is_nil(echo));
    call_all(echo, argc == 3 ? std::atoi(argv[2]) : 2000);
    return 0;
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
