// A TAO client of Deckwatch::Witness with real-time CORBA loaded: calls it at priorities, and says what the servant saw.
// Usage: client REFERENCE WORD...
//   5      the thread has this priority from here on, and calls
//   -      calls as it is
//   v      asks for the connection alone
//   0-49   adds a band to those of the reference that is called from here on
#include "witnessC.h"

#include "tao/RTCORBA/RTCORBA.h"

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

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc < 3) {
            std::fprintf(stderr, "usage: client REFERENCE PRIORITY|LOW-HIGH|v|-...\n");
            return 2;
        }
        CORBA::Object_var object = orb->resolve_initial_references("RTORB");
        RTCORBA::RTORB_var rt = RTCORBA::RTORB::_narrow(object.in());
        object = orb->resolve_initial_references("RTCurrent");
        RTCORBA::Current_var current = RTCORBA::Current::_narrow(object.in());
        CORBA::Object_var plain = orb->string_to_object(argv[1]);
        Deckwatch::Witness_var witness = Deckwatch::Witness::_unchecked_narrow(plain.in());
        RTCORBA::PriorityBands bands;
        for (int index = 2; index < argc; ++index) {
            int low = 0, high = 0;
            if (std::sscanf(argv[index], "%d-%d", &low, &high) == 2) {
                CORBA::ULong len = bands.length();
                bands.length(len + 1);
                bands[len].low = static_cast<RTCORBA::Priority>(low);
                bands[len].high = static_cast<RTCORBA::Priority>(high);
                CORBA::Object_var banded = with_bands(rt.in(), plain.in(), bands);
                witness = Deckwatch::Witness::_unchecked_narrow(banded.in());
                continue;
            }
            if (std::strcmp(argv[index], "v") == 0) {
                validate(witness.in());
                continue;
            }
            if (std::sscanf(argv[index], "%d", &low) == 1) current->the_priority(static_cast<RTCORBA::Priority>(low));
            call(witness.in(), argv[index]);
        }
        orb->destroy();
        return 0;
    } catch (const CORBA::SystemException& exception) {
        std::fprintf(stderr, "%s minor %#x\n", exception._name(), static_cast<unsigned>(exception.minor()));
    } catch (const CORBA::Exception& exception) {
        std::fprintf(stderr, "%s\n", exception._name());
    }
    return 1;
}
