// A TAO server of Deckwatch::Witness with real-time CORBA loaded: prints its reference and serves until it is ended.
// Usage: server propagated|declared PRIORITY WORD...
//   5      a lane of this priority; without any, a pool without lanes
//   0-49   a band that the reference tells
//   tcp    the reference tells that TCP is used, and how
#include "witnessS.h"

#include "../reported.h"
#include "real_time.h"

#include "tao/ORB_Core.h"
#include "tao/RTCORBA/RT_Policy_i.h"
#include "tao/RTPortableServer/RTPortableServer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/syscall.h>
#include <unistd.h>

class WitnessServant : public POA_Deckwatch::Witness {
    RTCORBA::Current_var current;

public:
    explicit WitnessServant(RTCORBA::Current_ptr shared) : current(RTCORBA::Current::_duplicate(shared)) {}

    CORBA::Short served_at(CORBA::String_out thread) {
        char text[32];
        std::snprintf(text, sizeof text, "thread-%ld", static_cast<long>(syscall(SYS_gettid)));
        thread = CORBA::string_dup(text);
        try {
            return current->the_priority();
        } catch (const CORBA::INITIALIZE&) {
            return -1;
        }
    }
};

static void append(CORBA::PolicyList& policies, CORBA::Policy_ptr policy) {
    CORBA::ULong len = policies.length();
    policies.length(len + 1);
    policies[len] = policy;
}

static CORBA::Policy_ptr tcp(CORBA::ORB_ptr orb, RTCORBA::RTORB_ptr rt) {
    RTCORBA::ProtocolList protocols;
    protocols.length(1);
    protocols[0].protocol_type = IOP::TAG_INTERNET_IOP;
    protocols[0].orb_protocol_properties =
        TAO_Protocol_Properties_Factory::create_orb_protocol_property(IOP::TAG_INTERNET_IOP);
    protocols[0].transport_protocol_properties =
        TAO_Protocol_Properties_Factory::create_transport_protocol_property(IOP::TAG_INTERNET_IOP, orb->orb_core());
    return rt->create_client_protocol_policy(protocols);
}

static void fill(CORBA::PolicyList& policies, const RealTime& real_time, int argc, char** argv) {
    RTCORBA::RTORB_ptr rt = real_time.rt.in();
    RTCORBA::PriorityModel model = std::strcmp(argv[1], "declared") == 0 ? RTCORBA::SERVER_DECLARED : RTCORBA::CLIENT_PROPAGATED;
    RTCORBA::Priority priority = static_cast<RTCORBA::Priority>(std::atoi(argv[2]));
    append(policies, rt->create_priority_model_policy(model, priority));
    RTCORBA::ThreadpoolLanes lanes;
    RTCORBA::PriorityBands bands;
    for (int index = 3; index < argc; ++index) {
        if (add_band(bands, argv[index])) continue;
        if (std::strcmp(argv[index], "tcp") == 0) {
            append(policies, tcp(real_time.orb.in(), rt));
        } else {
            CORBA::ULong len = lanes.length();
            lanes.length(len + 1);
            lanes[len].lane_priority = static_cast<RTCORBA::Priority>(std::atoi(argv[index]));
            lanes[len].static_threads = 1;
            lanes[len].dynamic_threads = 0;
        }
    }
    if (bands.length() > 0) append(policies, rt->create_priority_banded_connection_policy(bands));
    RTCORBA::ThreadpoolId pool = lanes.length() > 0 ? rt->create_threadpool_with_lanes(0, lanes, false, false, 0, 0)
                                                    : rt->create_threadpool(0, 1, 0, priority, false, 0, 0);
    append(policies, rt->create_threadpool_policy(pool));
}

static int serve(int argc, char** argv) {
    RealTime real_time(argc, argv);
    if (argc < 3) {
        std::fprintf(stderr, "usage: server propagated|declared PRIORITY LANE|LOW-HIGH|tcp...\n");
        return 2;
    }
    CORBA::Object_var object = real_time.orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object.in());
    PortableServer::POAManager_var manager = root->the_POAManager();
    // The thread that makes pools is given a priority: what has none is refused by TAO.
    real_time.current->the_priority(0);
    CORBA::PolicyList policies;
    fill(policies, real_time, argc, argv);
    PortableServer::POA_var poa = root->create_POA("lanes", manager.in(), policies);
    WitnessServant* servant = new WitnessServant(real_time.current.in());
    PortableServer::ServantBase_var owner = servant;
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    CORBA::Object_var reference = poa->id_to_reference(id.in());
    CORBA::String_var text = real_time.orb->object_to_string(reference.in());
    manager->activate();
    std::printf("%s\n", text.in());
    std::fflush(stdout);
    real_time.orb->run();
    return 0;
}

int main(int argc, char** argv) {
    return reported(serve, argc, argv);
}
