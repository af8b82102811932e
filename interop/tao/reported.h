// How each TAO program here ends.
#pragma once

#include "tao/corba.h"

#include <cstdio>

// The status of what `work` does; what it raises is told, and is 1.
static int reported(int (*work)(int, char**), int argc, char** argv) {
    try {
        return work(argc, argv);
    } catch (const CORBA::SystemException& exception) {
        std::fprintf(stderr, "%s minor %#x\n", exception._name(), static_cast<unsigned>(exception.minor()));
    } catch (const CORBA::Exception& exception) {
        std::fprintf(stderr, "%s\n", exception._name());
    }
    return 1;
}
