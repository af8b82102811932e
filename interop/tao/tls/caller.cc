// A TAO client of Deckwatch::Echo: octets there and back, then an exception; exits with 1 where others come back.
// Usage: caller REFERENCE
//
// The client in interop/omniorb/echo compares references too, which TAO fails over TLS: see interop/gaps.toml.
#include "echoC.h"

#include "../reported.h"

#include <cstdio>
#include <cstring>

static bool comes_back(Deckwatch::Echo_ptr echo) {
    Deckwatch::OctetSequence octets;
    octets.length(3 << 20);
    for (CORBA::ULong at = 0; at < octets.length(); ++at) octets[at] = static_cast<CORBA::Octet>(at % 251);
    Deckwatch::OctetSequence_var back = echo->echo_octets(octets);
    if (back->length() != octets.length()) return false;
    return std::memcmp(back->get_buffer(), octets.get_buffer(), octets.length()) == 0;
}

static bool is_refused(Deckwatch::Echo_ptr echo) {
    try {
        echo->refuse("not today", 42);
    } catch (const Deckwatch::Refused& refused) {
        return std::strcmp(refused.reason.in(), "not today") == 0 && refused.code == 42;
    }
    return false;
}

static int call(int argc, char** argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc != 2) {
        std::fprintf(stderr, "usage: caller REFERENCE\n");
        return 2;
    }
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Deckwatch::Echo_var echo = Deckwatch::Echo::_unchecked_narrow(object.in());
    const bool is_same = comes_back(echo.in()) && is_refused(echo.in());
    std::printf("%s\n", is_same ? "as sent" : "DIFFERENT");
    orb->destroy();
    return is_same ? 0 : 1;
}

int main(int argc, char** argv) {
    return reported(call, argc, argv);
}
