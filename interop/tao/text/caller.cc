// A TAO client of Deckwatch::Echo: one call with letters of ISO 8859-1; exits with 1 where others come back.
// Usage: caller REFERENCE
#include "echoC.h"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
    try {
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
    } catch (const CORBA::SystemException& exception) {
        std::fprintf(stderr, "%s minor %#x\n", exception._name(), static_cast<unsigned>(exception.minor()));
    } catch (const CORBA::Exception& exception) {
        std::fprintf(stderr, "%s\n", exception._name());
    }
    return 1;
}
