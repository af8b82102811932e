// The omniORB ends of the experiments: `ends server PROCESSOR FIFO DELAY_NS FACTORS` and `ends client PROCESSOR FIFO REFERENCE`, `-` for what
// is not wanted. What they say and are told stands in crates/probe/src/experiment/end.rs and calls.rs.
#include "experiment.hh"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <mutex>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace Experiment;
using Deckwatch::ComplexStruct;

namespace {

std::int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void busy(std::int64_t ns) {
    if (ns <= 0) return;
    const std::int64_t until = now_ns() + ns;
    while (now_ns() < until) {}
}

std::atomic<std::uint64_t> told_count{0};
std::int64_t delay_ns = 0;

void take_told() {
    busy(delay_ns);
    told_count.fetch_add(1, std::memory_order_relaxed);
}

#define PASSES(Sequence, process, stream)                   \
    void process(Sequence&) override { busy(delay_ns); }    \
    void stream(const Sequence&) override { take_told(); }

class Generated : public POA_Experiment::Subject {
public:
    void nothing() override { busy(delay_ns); }
    void compute(CORBA::ULongLong busy_ns) override {
        busy(delay_ns);
        busy(static_cast<std::int64_t>(busy_ns));
    }
    void take_octets(const Octets&) override { busy(delay_ns); }
    void take_structs(const Structs&) override { busy(delay_ns); }
    void tell_nothing() override { take_told(); }
    CORBA::ULongLong told() override { return told_count.load(std::memory_order_relaxed); }
    PASSES(Octets, process_octets, stream_octets)
    PASSES(Chars, process_chars, stream_chars)
    PASSES(WChars, process_wchars, stream_wchars)
    PASSES(Booleans, process_booleans, stream_booleans)
    PASSES(Shorts, process_shorts, stream_shorts)
    PASSES(UShorts, process_ushorts, stream_ushorts)
    PASSES(Longs, process_longs, stream_longs)
    PASSES(ULongs, process_ulongs, stream_ulongs)
    PASSES(LongLongs, process_longlongs, stream_longlongs)
    PASSES(ULongLongs, process_ulonglongs, stream_ulonglongs)
    PASSES(Floats, process_floats, stream_floats)
    PASSES(Doubles, process_doubles, stream_doubles)
    PASSES(Strings, process_strings, stream_strings)
    PASSES(Alerts, process_enums, stream_enums)
    PASSES(Anys, process_anys, stream_anys)
    PASSES(Structs, process_structs, stream_structs)
};

// Learns at run time what it is asked.
class Dynamic : public PortableServer::DynamicImplementation {
public:
    explicit Dynamic(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}

    void invoke(CORBA::ServerRequest_ptr request) override {
        const std::string operation = request->operation();
        CORBA::NVList_ptr list;
        orb_->create_list(0, list);
        if (operation == "take_octets" || operation == "stream_octets") {
            CORBA::Any any;
            any.replace(_tc_Octets, nullptr);
            list->add_value("m", any, CORBA::ARG_IN);
        } else if (operation == "take_structs" || operation == "stream_structs") {
            CORBA::Any any;
            any.replace(_tc_Structs, nullptr);
            list->add_value("m", any, CORBA::ARG_IN);
        } else if (operation != "nothing" && operation != "tell_nothing" && operation != "told") {
            CORBA::release(list);
            throw CORBA::BAD_OPERATION();
        }
        request->arguments(list);
        if (operation == "told") {
            CORBA::Any result;
            result <<= static_cast<CORBA::ULongLong>(told_count.load(std::memory_order_relaxed));
            request->set_result(result);
        } else if (operation == "tell_nothing" || operation == "stream_octets" || operation == "stream_structs") {
            take_told();
        } else {
            busy(delay_ns);
        }
    }

    char* _primary_interface(const PortableServer::ObjectId&, PortableServer::POA_ptr) override {
        return CORBA::string_dup("IDL:Experiment/Subject:1.0");
    }

private:
    CORBA::ORB_var orb_;
};

class Hall : public POA_Experiment::Subjects {
public:
    Hall(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa)
        : orb_(CORBA::ORB::_duplicate(orb)), poa_(PortableServer::POA::_duplicate(poa)) {}

    void activate(CORBA::ULong count, CORBA::Boolean are_dynamic) override {
        if (count > 10000) throw CORBA::BAD_PARAM();
        std::lock_guard<std::mutex> guard(mutex_);
        std::vector<PortableServer::ObjectId_var>& own = active_[are_dynamic ? 1 : 0];
        while (own.size() > count) {
            poa_->deactivate_object(own.back());
            own.pop_back();
        }
        while (own.size() < count) {
            if (are_dynamic) {
                PortableServer::Servant_var<Dynamic> servant = new Dynamic(orb_);
                own.push_back(poa_->activate_object(servant));
            } else {
                PortableServer::Servant_var<Generated> servant = new Generated;
                own.push_back(poa_->activate_object(servant));
            }
        }
    }

    Subject_ptr by_index(CORBA::ULong index, CORBA::Boolean is_dynamic) override {
        std::lock_guard<std::mutex> guard(mutex_);
        std::vector<PortableServer::ObjectId_var>& own = active_[is_dynamic ? 1 : 0];
        if (index >= own.size()) throw CORBA::BAD_PARAM();
        CORBA::Object_var object = poa_->id_to_reference(own[index]);
        return Subject::_unchecked_narrow(object);
    }

private:
    CORBA::ORB_var orb_;
    PortableServer::POA_var poa_;
    std::mutex mutex_;
    std::vector<PortableServer::ObjectId_var> active_[2];
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

std::atomic<std::uint64_t> factored{0};
std::atomic<std::uint64_t> factor_cpu_ns{0};
// It is told to: several servers share a processor, and one is looked at at a time.
std::mutex factor_mutex;
std::condition_variable factor_changed;
std::atomic<bool> factor_wanted{false};

// The same two primes as our own thread's.
void factor() {
    sched_param parameters = {};
    sched_setscheduler(0, SCHED_OTHER, &parameters);
    for (;;) {
        if (!factor_wanted.load(std::memory_order_relaxed)) {
            std::unique_lock<std::mutex> lock(factor_mutex);
            factor_changed.wait(lock, [] { return factor_wanted.load(); });
        }
        volatile std::uint64_t product = UINT64_C(3989) * 4001;
        const std::uint64_t number = product;
        std::uint64_t candidate = 2;
        while (candidate * candidate <= number && number % candidate != 0) ++candidate;
        factored.fetch_add(1, std::memory_order_relaxed);
        timespec used;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        factor_cpu_ns.store(used.tv_sec * UINT64_C(1000000000) + used.tv_nsec, std::memory_order_relaxed);
    }
}

void serve(CORBA::ORB_ptr orb, bool factors) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<Hall> hall = new Hall(orb, root);
    PortableServer::ObjectId_var id = root->activate_object(hall);
    CORBA::Object_var reference = root->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    if (factors) std::thread(factor).detach();
    greet(text);
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line == "factor" || line == "rest") {
            std::lock_guard<std::mutex> lock(factor_mutex);
            factor_wanted = line == "factor";
            factor_changed.notify_all();
        }
        if (line == "factored" || line == "factor" || line == "rest") {
            std::printf("factored %llu %llu %lld\n", static_cast<unsigned long long>(factored.load()),
                        static_cast<unsigned long long>(factor_cpu_ns.load()), static_cast<long long>(now_ns()));
        } else {
            std::printf("error '%s' is no question\n", line.c_str());
        }
        std::fflush(stdout);
    }
    // What the ORB's threads do at this moment is nobody's any more.
    std::_Exit(0);
}

// One run that a client is told to make.
struct Command {
    std::string kind;
    unsigned long there, back, count;
    long long budget_ns, period_ns;
};

using One = std::function<void()>;

void answer(const std::vector<std::uint32_t>& samples) {
    std::printf("ok %zu\n", samples.size());
    std::fwrite(samples.data(), sizeof samples[0], samples.size(), stdout);
}

template <class Call> std::vector<std::uint32_t> take(const Command& command, Call one) {
    std::vector<std::uint32_t> times(command.count, 0);
    for (int warm_up = 0; warm_up < 64; ++warm_up) one();
    std::size_t taken = 0;
    const std::int64_t begin = now_ns();
    std::int64_t before = begin;
    while (taken < command.count && before - begin < command.budget_ns) {
        one();
        const std::int64_t after = now_ns();
        times[taken++] = static_cast<std::uint32_t>(after - before);
        before = after;
    }
    times.resize(taken);
    return times;
}

template <class Call> std::vector<std::uint32_t> paced(const Command& command, Call one) {
    one();
    std::vector<std::uint32_t> round_trips, from_due;
    const std::int64_t begin = now_ns();
    std::int64_t due = begin;
    while (round_trips.size() < command.count) {
        due += command.period_ns;
        if (due - begin > command.budget_ns) break;
        timespec until = {due / 1000000000, due % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {}
        const std::int64_t sent = now_ns();
        one();
        const std::int64_t done = now_ns();
        round_trips.push_back(static_cast<std::uint32_t>(done - sent));
        from_due.push_back(static_cast<std::uint32_t>(done - due));
    }
    round_trips.insert(round_trips.end(), from_due.begin(), from_due.end());
    return round_trips;
}

ComplexStruct element() {
    ComplexStruct one;
    one.s = 12;
    one.l = 34567;
    one.f = 0.5F;
    one.d = 2.25;
    one.c = 'x';
    one.name = CORBA::string_dup("contact");
    return one;
}

template <class Sequence, class Value> Sequence filled(unsigned long count, const Value& value) {
    Sequence sequence;
    sequence.length(count);
    for (unsigned long i = 0; i < count; ++i) sequence[i] = value;
    return sequence;
}

template <> Strings filled<Strings, const char*>(unsigned long count, const char* const& value) {
    Strings sequence;
    sequence.length(count);
    for (unsigned long i = 0; i < count; ++i) sequence[i] = CORBA::string_dup(value);
    return sequence;
}

void drain(Subject_ptr subject, std::uint64_t told) {
    while (subject->told() < told) sched_yield();
}

class Caller {
public:
    Caller(CORBA::ORB_ptr orb, const char* reference) {
        CORBA::Object_var object = orb->string_to_object(reference);
        subjects_ = Subjects::_unchecked_narrow(object);
    }

    void run(const Command& command) {
        std::vector<std::string> words;
        std::stringstream text(command.kind);
        for (std::string word; std::getline(text, word, '/');) words.push_back(word);
        if (words.size() == 2 && (words[0] == "process" || words[0] == "stream")) return marshal(words, command);
        if (words.size() == 2 && words[0] == "compute") {
            hold(2, false);
            Subject_ptr subject = held_[words[1] == "low" ? 1 : 0];
            auto one = [&] { subject->compute(command.there); };
            return answer(command.period_ns == 0 ? take(command, one) : paced(command, one));
        }
        if (words.size() == 6 && words[0] == "call") return call(words, command);
        unknown(command);
    }

private:
    void unknown(const Command& command) { std::printf("error '%s' is nothing that this end can do\n", command.kind.c_str()); }

    void hold(unsigned long count, bool are_dynamic) {
        if (are_dynamic_ == are_dynamic && held_.size() == count) return;
        held_.clear();
        subjects_->activate(0, !are_dynamic);
        subjects_->activate(count, are_dynamic);
        for (unsigned long i = 0; i < count; ++i) held_.push_back(subjects_->by_index(i, are_dynamic));
        are_dynamic_ = are_dynamic;
    }

    template <class Sequence, class Value>
    void passed(bool is_stream, const Command& command, const Value& value, void (_objref_Subject::*process)(Sequence&),
                void (_objref_Subject::*stream)(const Sequence&)) {
        Subject_ptr subject = held_[0];
        Sequence data = filled<Sequence, Value>(command.there, value);
        if (!is_stream) return answer(take(command, [&] { (subject->*process)(data); }));
        const std::uint64_t before = subject->told();
        const std::int64_t begin = now_ns();
        std::uint64_t count = 0;
        while (count < command.count && now_ns() - begin < command.budget_ns) {
            for (int n = 0; n < 16; ++n) (subject->*stream)(data);
            count += 16;
        }
        drain(subject, before + count);
        std::printf("sum %llu %lld\n", static_cast<unsigned long long>(count), static_cast<long long>(now_ns() - begin));
    }

    void marshal(const std::vector<std::string>& words, const Command& command) {
        hold(1, false);
        const bool is_stream = words[0] == "stream";
        const std::string& kind = words[1];
        using S = _objref_Subject;
        CORBA::Any any;
        any <<= static_cast<CORBA::Long>(34567);
#define KIND(word, Sequence, value, process, stream) \
        if (kind == word) return passed<Sequence>(is_stream, command, value, &S::process, &S::stream);
        KIND("octet", Octets, CORBA::Octet(7), process_octets, stream_octets)
        KIND("char", Chars, CORBA::Char('x'), process_chars, stream_chars)
        KIND("wchar", WChars, CORBA::WChar(L'x'), process_wchars, stream_wchars)
        KIND("boolean", Booleans, CORBA::Boolean(true), process_booleans, stream_booleans)
        KIND("short", Shorts, CORBA::Short(-12), process_shorts, stream_shorts)
        KIND("ushort", UShorts, CORBA::UShort(12), process_ushorts, stream_ushorts)
        KIND("long", Longs, CORBA::Long(-34567), process_longs, stream_longs)
        KIND("ulong", ULongs, CORBA::ULong(34567), process_ulongs, stream_ulongs)
        KIND("longlong", LongLongs, CORBA::LongLong(-1234567890123), process_longlongs, stream_longlongs)
        KIND("ulonglong", ULongLongs, CORBA::ULongLong(1234567890123), process_ulonglongs, stream_ulonglongs)
        KIND("float", Floats, CORBA::Float(0.5), process_floats, stream_floats)
        KIND("double", Doubles, CORBA::Double(2.25), process_doubles, stream_doubles)
        KIND("string", Strings, static_cast<const char*>("contact"), process_strings, stream_strings)
        KIND("enum", Alerts, warning, process_enums, stream_enums)
        KIND("any", Anys, any, process_anys, stream_anys)
        KIND("struct", Structs, element(), process_structs, stream_structs)
        unknown(command);
    }

    void call(const std::vector<std::string>& words, const Command& command) {
        const bool is_oneway = words[1] == "one-way";
        const bool by_stub = words[2] == "static";
        const std::string& what = words[3];
        hold(command.back, words[4] == "dynamic");
        const bool one_alone = words[5] == "one";
        std::size_t turn = 0;
        std::uint64_t sent = 0;
        auto next = [&]() -> Subject_ptr {
            ++sent;
            return one_alone ? held_.back() : held_[++turn % held_.size()];
        };
        const Octets octets = filled<Octets, CORBA::Octet>(command.there, 7);
        const Structs structs = filled<Structs, ComplexStruct>(what == "structs" ? command.there : 0, element());
        const std::string operation = what == "nothing" ? (is_oneway ? "tell_nothing" : "nothing")
                                                        : (is_oneway ? "stream_" : "take_") + what;
        const std::uint64_t before = is_oneway ? held_[0]->told() : 0;
        std::vector<std::uint32_t> times = take(command, [&] {
            Subject_ptr subject = next();
            if (!by_stub) {
                CORBA::Request_var request = subject->_request(operation.c_str());
                if (what == "octets") request->add_in_arg("m") <<= octets;
                if (what == "structs") request->add_in_arg("m") <<= structs;
                request->set_return_type(CORBA::_tc_void);
                if (is_oneway) {
                    request->send_oneway();
                } else {
                    request->invoke();
                    if (request->env()->exception() != nullptr) request->env()->exception()->_raise();
                }
            } else if (what == "octets") {
                if (is_oneway) subject->stream_octets(octets); else subject->take_octets(octets);
            } else if (what == "structs") {
                if (is_oneway) subject->stream_structs(structs); else subject->take_structs(structs);
            } else {
                if (is_oneway) subject->tell_nothing(); else subject->nothing();
            }
        });
        if (is_oneway) drain(held_[0], before + sent);
        answer(times);
    }

    Subjects_var subjects_;
    bool are_dynamic_ = false;
    std::vector<Subject_var> held_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    place(argv[2], argv[3]);
    // Its own protocol, whole messages where it can, and no name to be looked up.
    const char* options[][2] = {{"endPoint", "giop:tcp:127.0.0.1:"}, {"giopMaxMsgSize", "33554432"}, {nullptr, nullptr}};
    int none = 0;
    CORBA::ORB_var orb = CORBA::ORB_init(none, nullptr, "omniORB4", options);
    if (std::strcmp(argv[1], "server") == 0) {
        if (std::strcmp(argv[4], "-") != 0) delay_ns = std::atoll(argv[4]);
        serve(orb, argc > 5 && std::strcmp(argv[5], "factors") == 0);
    }
    Caller caller(orb, argv[4]);
    greet("ready");
    std::string line;
    while (std::getline(std::cin, line)) {
        std::stringstream text(line);
        Command command;
        if (!(text >> command.kind >> command.there >> command.back >> command.count >> command.budget_ns >> command.period_ns)) {
            std::printf("error '%s' is no command\n", line.c_str());
        } else {
            try {
                caller.run(command);
            } catch (const CORBA::Exception& exception) {
                std::printf("error %s\n", exception._name());
            }
        }
        std::fflush(stdout);
    }
}
