// The omniORB ends of `deckwatch bench call`: `ends server PROCESSOR FIFO` and `ends client PROCESSOR FIFO REFERENCE`, `-` for what is not
// wanted. What they say and are told stands in crates/probe/src/bench/end.rs.
#include "echo.hh"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/resource.h>
#include <vector>

using namespace Deckwatch;

namespace {

class Mirror : public POA_Deckwatch::Echo {
public:
    CORBA::ULongLong calls() override { throw CORBA::NO_IMPLEMENT(); }
    void ping() override {}
    char* echo_string(const char* message) override { return CORBA::string_dup(message); }
    OctetSequence* echo_octets(const OctetSequence& data) override { return new OctetSequence(data); }
    ComplexStruct* echo_complex(const ComplexStruct& data) override { return new ComplexStruct(data); }
    ComplexSequence* echo_complex_sequence(const ComplexSequence& data) override { return new ComplexSequence(data); }
    CORBA::Any* echo_any(const CORBA::Any&) override { throw CORBA::NO_IMPLEMENT(); }
    CORBA::Object_ptr echo_object(CORBA::Object_ptr) override { throw CORBA::NO_IMPLEMENT(); }
    void refuse(const char*, CORBA::Long) override { throw CORBA::NO_IMPLEMENT(); }
    void send_octets(const OctetSequence&) override {}
    void send_complex_sequence(const ComplexSequence&) override {}
};

// Threads made later inherit all of this.
void place(const char* processor, const char* fifo) {
    if (std::strcmp(processor, "-") != 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(std::atoi(processor), &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    if (std::strcmp(fifo, "-") != 0) {
        rlimit unblocked = {2000000, 2000000};
        setrlimit(RLIMIT_RTTIME, &unblocked);
        sched_param parameters = {};
        parameters.sched_priority = std::atoi(fifo);
        sched_setscheduler(0, SCHED_FIFO, &parameters);
    }
}

void greet(const char* reference) {
    std::printf("%s %s\n", sched_getscheduler(0) == SCHED_FIFO ? "fifo" : "other", reference);
    std::fflush(stdout);
}

std::int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

template <class One> void take(std::size_t count, std::int64_t budget_ns, One one) {
    std::vector<std::uint32_t> round_trips(count, 0);
    for (int warm_up = 0; warm_up < 64; ++warm_up) one();
    std::size_t taken = 0;
    const std::int64_t begin = now_ns();
    std::int64_t before = begin;
    while (taken < count && before - begin < budget_ns) {
        one();
        const std::int64_t after = now_ns();
        round_trips[taken++] = static_cast<std::uint32_t>(after - before);
        before = after;
    }
    std::printf("ok %zu\n", taken);
    std::fwrite(round_trips.data(), sizeof round_trips[0], taken, stdout);
}

void serve(CORBA::ORB_ptr orb) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<Mirror> mirror = new Mirror;
    PortableServer::ObjectId_var id = root->activate_object(mirror);
    CORBA::Object_var reference = root->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    greet(text);
    while (std::getchar() != EOF) {}
    // What the ORB's threads do at this moment is nobody's any more.
    std::_Exit(0);
}

void call(CORBA::ORB_ptr orb, const char* reference) {
    CORBA::Object_var object = orb->string_to_object(reference);
    Echo_var echo = Echo::_unchecked_narrow(object);
    greet("ready");
    char kind[16];
    unsigned long there, back, count;
    long long budget_ns;
    while (std::scanf("%15s %lu %lu %lu %lld", kind, &there, &back, &count, &budget_ns) == 5) {
        try {
            if (std::strcmp(kind, "octets") == 0) {
                OctetSequence data;
                data.length(there);
                for (unsigned long i = 0; i < there; ++i) data[i] = static_cast<CORBA::Octet>(i);
                take(count, budget_ns, [&] { OctetSequence_var got = echo->echo_octets(data); });
            } else if (std::strcmp(kind, "structs") == 0) {
                ComplexSequence data;
                data.length(there);
                for (unsigned long i = 0; i < there; ++i) {
                    data[i].s = 12;
                    data[i].l = 34567;
                    data[i].f = 0.5F;
                    data[i].d = 2.25;
                    data[i].c = 'x';
                    data[i].name = CORBA::string_dup("contact");
                }
                take(count, budget_ns, [&] { ComplexSequence_var got = echo->echo_complex_sequence(data); });
            } else {
                std::printf("error '%s' is nothing that this end can send\n", kind);
            }
        } catch (const CORBA::Exception& exception) {
            std::printf("error %s\n", exception._name());
        }
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    place(argv[2], argv[3]);
    // TCP as the others have it, and no name to be looked up.
    const char* options[][2] = {{"endPoint", "giop:tcp:127.0.0.1:"}, {nullptr, nullptr}};
    int none = 0;
    CORBA::ORB_var orb = CORBA::ORB_init(none, nullptr, "omniORB4", options);
    if (std::strcmp(argv[1], "server") == 0) {
        serve(orb);
    } else if (argc > 4) {
        call(orb, argv[4]);
    }
}
