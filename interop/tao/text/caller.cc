// A TAO client of Deckwatch::Echo: one call with letters of ISO 8859-1; exits with 1 where others come back.
// Usage: caller REFERENCE
#include "echoC.h"

#include "../reported.h"

#include <cstdio>
#include <cstring>

static int send_letters(int argc, char** argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc != 2) {
        std::fprintf(stderr, "usage: caller REFERENCE\n");
        return 2;
    }
    const char* letters = "Gr\xfc\xdf" "e";
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Deckwatch::Echo_var echo = Deckwatch::Echo::_unchecked_narrow(object.in());
    CORBA::String_var back = echo->echo_string(letters);
    bool is_same = std::strcmp(back.in(), letters) == 0;
    for (const char* at = back.in(); *at; ++at) std::printf(" %02x", static_cast<unsigned char>(*at));
    std::printf(": %s\n", is_same ? "as sent" : "DIFFERENT");
    orb->destroy();
    return is_same ? 0 : 1;
}

int main(int argc, char** argv) {
    return reported(send_letters, argc, argv);
}
