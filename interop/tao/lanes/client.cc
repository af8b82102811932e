// A TAO client of Deckwatch::Witness with real-time CORBA loaded: calls it at priorities, and says what the servant saw.
// Usage: client REFERENCE WORD...
//   5      the thread has this priority from here on, and calls
//   -      calls as it is
//   v      asks for the connection alone
//   0-49   adds a band to those of the reference that is called from here on
#include "witnessC.h"

#include "../reported.h"
#include "real_time.h"

#include <cstdio>
#include <cstring>

static void call(Deckwatch::Witness_ptr witness, const char* word) {
    try {
        CORBA::String_var thread;
        CORBA::Short priority = witness->served_at(thread.out());
        std::printf("%s: served at %d by %s\n", word, priority, thread.in());
    } catch (const CORBA::SystemException& exception) {
        std::printf("%s: %s minor %#x\n", word, exception._name(), static_cast<unsigned>(exception.minor()));
    }
    std::fflush(stdout);
}

static void validate(Deckwatch::Witness_ptr witness) {
    try {
        CORBA::PolicyList_var inconsistent;
        CORBA::Boolean is_valid = witness->_validate_connection(inconsistent.out());
        std::printf("v: %s\n", is_valid ? "valid" : "invalid");
    } catch (const CORBA::SystemException& exception) {
        std::printf("v: %s minor %#x\n", exception._name(), static_cast<unsigned>(exception.minor()));
    }
    std::fflush(stdout);
}

static CORBA::Object_ptr with_bands(RTCORBA::RTORB_ptr rt, CORBA::Object_ptr object, const RTCORBA::PriorityBands& bands) {
    CORBA::PolicyList policies(1);
    policies.length(1);
    policies[0] = rt->create_priority_banded_connection_policy(bands);
    return object->_set_policy_overrides(policies, CORBA::SET_OVERRIDE);
}

static int call_all(int argc, char** argv) {
    RealTime real_time(argc, argv);
    if (argc < 3) {
        std::fprintf(stderr, "usage: client REFERENCE PRIORITY|LOW-HIGH|v|-...\n");
        return 2;
    }
    CORBA::Object_var plain = real_time.orb->string_to_object(argv[1]);
    Deckwatch::Witness_var witness = Deckwatch::Witness::_unchecked_narrow(plain.in());
    RTCORBA::PriorityBands bands;
    for (int index = 2; index < argc; ++index) {
        if (add_band(bands, argv[index])) {
            CORBA::Object_var banded = with_bands(real_time.rt.in(), plain.in(), bands);
            witness = Deckwatch::Witness::_unchecked_narrow(banded.in());
            continue;
        }
        if (std::strcmp(argv[index], "v") == 0) {
            validate(witness.in());
            continue;
        }
        int priority = 0;
        if (std::sscanf(argv[index], "%d", &priority) == 1) real_time.current->the_priority(static_cast<RTCORBA::Priority>(priority));
        call(witness.in(), argv[index]);
    }
    real_time.orb->destroy();
    return 0;
}

int main(int argc, char** argv) {
    return reported(call_all, argc, argv);
}
