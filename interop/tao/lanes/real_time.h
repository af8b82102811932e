// What client and server of Deckwatch::Witness share.
#pragma once

#include "tao/RTCORBA/RTCORBA.h"

#include <cstdio>

// An ORB, and what real-time CORBA adds to it.
struct RealTime {
    CORBA::ORB_var orb;
    RTCORBA::RTORB_var rt;
    RTCORBA::Current_var current;

    RealTime(int& argc, char** argv) : orb(CORBA::ORB_init(argc, argv)) {
        CORBA::Object_var object = orb->resolve_initial_references("RTORB");
        rt = RTCORBA::RTORB::_narrow(object.in());
        object = orb->resolve_initial_references("RTCurrent");
        current = RTCORBA::Current::_narrow(object.in());
    }
};

// Whether the word is a band, LOW-HIGH; it stands behind the others then.
static bool add_band(RTCORBA::PriorityBands& bands, const char* word) {
    int low = 0, high = 0;
    if (std::sscanf(word, "%d-%d", &low, &high) != 2) return false;
    CORBA::ULong len = bands.length();
    bands.length(len + 1);
    bands[len].low = static_cast<RTCORBA::Priority>(low);
    bands[len].high = static_cast<RTCORBA::Priority>(high);
    return true;
}
