// The omniORB ends of `deckwatch bench`: `ends server PROCESSOR FIFO OBJECTS FILE` and `ends client PROCESSOR FIFO REFERENCE`, `-` for what is not
// wanted; a REFERENCE that begins with `@` is a file of them. What they say and are told stands in crates/probe/src/bench/end.rs.
#include "bench.hh"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace Deckwatch;

namespace {

class Mirror : public POA_DeckwatchBench::Bench {
    std::atomic<CORBA::ULongLong> arrived{0};

public:
    CORBA::ULongLong calls() override { return arrived; }
    void ping() override {}
    char* echo_string(const char* message) override { return CORBA::string_dup(message); }
    OctetSequence* echo_octets(const OctetSequence& data) override { return new OctetSequence(data); }
    ComplexStruct* echo_complex(const ComplexStruct& data) override { return new ComplexStruct(data); }
    ComplexSequence* echo_complex_sequence(const ComplexSequence& data) override { return new ComplexSequence(data); }
    CORBA::Any* echo_any(const CORBA::Any&) override { throw CORBA::NO_IMPLEMENT(); }
    CORBA::Object_ptr echo_object(CORBA::Object_ptr) override { throw CORBA::NO_IMPLEMENT(); }
    void refuse(const char*, CORBA::Long) override { throw CORBA::NO_IMPLEMENT(); }
    void send_octets(const OctetSequence&) override { ++arrived; }
    void send_complex_sequence(const ComplexSequence&) override { ++arrived; }
    void sink_octets(const OctetSequence&) override {}
    void sink_complex_sequence(const ComplexSequence&) override {}
    void sink_plain_sequence(const DeckwatchBench::PlainSequence&) override {}
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

std::int64_t period_ns = 0;

void sleep_until(std::int64_t due_ns) {
    const timespec due = {due_ns / 1000000000, due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
}

template <class One> void take(std::size_t count, std::int64_t budget_ns, One one) {
    std::vector<std::uint32_t> round_trips(count, 0);
    for (int warm_up = 0; warm_up < 64; ++warm_up) one();
    std::size_t taken = 0;
    const std::int64_t begin = now_ns();
    std::int64_t before = begin, due = begin;
    while (taken < count && before - begin < budget_ns) {
        if (period_ns) {
            sleep_until(due += period_ns);
            before = now_ns();
        }
        one();
        const std::int64_t after = now_ns();
        round_trips[taken++] = static_cast<std::uint32_t>(after - before);
        before = after;
    }
    std::printf("ok %zu\n", taken);
    std::fwrite(round_trips.data(), sizeof round_trips[0], taken, stdout);
}

template <class Send> void stream(DeckwatchBench::Bench_ptr bench, std::size_t count, std::int64_t budget_ns, Send send) {
    const CORBA::ULongLong arrived = bench->calls();
    const std::int64_t begin = now_ns();
    std::size_t sent = 0;
    while (sent < count && now_ns() - begin < budget_ns) {
        for (int i = 0; i < 16; ++i) send();
        sent += 16;
    }
    while (bench->calls() < arrived + sent) {}
    std::printf("sum %zu %lld\n", sent, static_cast<long long>(now_ns() - begin));
}

void serve(CORBA::ORB_ptr orb, long objects, const char* file) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    std::ofstream references;
    if (std::strcmp(file, "-") != 0) references.open(file);
    CORBA::String_var first;
    for (long i = 0; i < objects; ++i) {
        PortableServer::Servant_var<Mirror> mirror = new Mirror;
        PortableServer::ObjectId_var id = root->activate_object(mirror);
        CORBA::Object_var reference = root->id_to_reference(id);
        CORBA::String_var text = orb->object_to_string(reference);
        references << text.in() << '\n';
        if (i == 0) first = CORBA::string_dup(text);
    }
    references.close();
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    greet(first);
    while (std::getchar() != EOF) {}
    // What the ORB's threads do at this moment is nobody's any more.
    std::_Exit(0);
}

std::vector<DeckwatchBench::Bench_var> targets(CORBA::ORB_ptr orb, const char* reference) {
    std::vector<std::string> texts;
    if (*reference == '@') {
        std::ifstream file(reference + 1);
        for (std::string line; std::getline(file, line);) texts.push_back(line);
    } else {
        texts.push_back(reference);
    }
    // By a step that shares no divisor with the count, each is met once before any is met again.
    std::size_t step = 1;
    for (std::size_t prime : {1299709, 104729, 7919}) if (texts.size() % prime) step = prime;
    std::vector<DeckwatchBench::Bench_var> found;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        CORBA::Object_var object = orb->string_to_object(texts[i * step % texts.size()].c_str());
        found.push_back(DeckwatchBench::Bench::_unchecked_narrow(object));
    }
    return found;
}

OctetSequence* octets(unsigned long count) {
    OctetSequence* data = new OctetSequence;
    data->length(count);
    for (unsigned long i = 0; i < count; ++i) (*data)[i] = static_cast<CORBA::Octet>(i);
    return data;
}

ComplexSequence* structs(unsigned long count) {
    ComplexSequence* data = new ComplexSequence;
    data->length(count);
    for (unsigned long i = 0; i < count; ++i) {
        ComplexStruct& one = (*data)[i];
        one.s = 12;
        one.l = 34567;
        one.f = 0.5F;
        one.d = 2.25;
        one.c = 'x';
        one.name = CORBA::string_dup("contact");
    }
    return data;
}

DeckwatchBench::PlainSequence* plain(unsigned long count) {
    DeckwatchBench::PlainSequence* data = new DeckwatchBench::PlainSequence;
    data->length(count);
    for (unsigned long i = 0; i < count; ++i) (*data)[i] = {0.25, 0.5, 0.75, 1234567890123, 42, 0.875F};
    return data;
}

// One command; false: it is none that this end knows.
bool obey(std::vector<DeckwatchBench::Bench_var>& all, const std::string& kind, unsigned long there, std::size_t count, std::int64_t budget_ns) {
    DeckwatchBench::Bench_ptr bench = all[0];
    if (kind == "octets") {
        OctetSequence_var data = octets(there);
        std::size_t next = 0;
        take(count, budget_ns, [&] {
            OctetSequence_var got = all[next]->echo_octets(data);
            if (++next == all.size()) next = 0;
        });
    } else if (kind == "structs") {
        ComplexSequence_var data = structs(there);
        take(count, budget_ns, [&] { ComplexSequence_var got = bench->echo_complex_sequence(data); });
    } else if (kind == "sink-octets") {
        OctetSequence_var data = octets(there);
        take(count, budget_ns, [&] { bench->sink_octets(data); });
    } else if (kind == "sink-structs") {
        ComplexSequence_var data = structs(there);
        take(count, budget_ns, [&] { bench->sink_complex_sequence(data); });
    } else if (kind == "sink-plain") {
        DeckwatchBench::PlainSequence_var data = plain(there);
        take(count, budget_ns, [&] { bench->sink_plain_sequence(data); });
    } else if (kind == "stream-octets") {
        OctetSequence_var data = octets(there);
        stream(bench, count, budget_ns, [&] { bench->send_octets(data); });
    } else {
        return false;
    }
    return true;
}

void call(CORBA::ORB_ptr orb, const char* reference) {
    std::vector<DeckwatchBench::Bench_var> all = targets(orb, reference);
    greet("ready");
    char line[256], kind[32];
    unsigned long there, back, count;
    long long budget_ns, period;
    while (std::fgets(line, sizeof line, stdin)) {
        period = 0;
        if (std::sscanf(line, "%31s %lu %lu %lu %lld %lld", kind, &there, &back, &count, &budget_ns, &period) < 5) break;
        period_ns = period;
        try {
            if (!obey(all, kind, there, count, budget_ns)) std::printf("error '%s' is nothing that this end can send\n", kind);
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
        serve(orb, argc > 4 ? std::atol(argv[4]) : 1, argc > 5 ? argv[5] : "-");
    } else if (argc > 4) {
        call(orb, argv[4]);
    }
}
