// The subjects of the experiments, and their client.
#pragma once

#include "end.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>

using namespace Experiment;

// One-ways served.
inline std::atomic<std::uint64_t> oneways{0};
// How long a subject keeps busy in each call.
inline std::int64_t delay_ns = 0;

inline void take_oneway() {
    busy(delay_ns);
    oneways.fetch_add(1, std::memory_order_relaxed);
}

#define PASSES(Sequence, process, stream)                   \
    void process(Sequence&) override { busy(delay_ns); }    \
    void stream(const Sequence&) override { take_oneway(); }

// A subject with a generated skeleton.
class Generated : public POA_Experiment::Subject {
public:
    void nothing() override { busy(delay_ns); }
    void compute(CORBA::ULongLong busy_ns) override {
        busy(delay_ns);
        busy(static_cast<std::int64_t>(busy_ns));
    }
    void take_octets(const Octets&) override { busy(delay_ns); }
    void take_structs(const Structs&) override { busy(delay_ns); }
    void tell_nothing() override { take_oneway(); }
    CORBA::ULongLong told() override { return oneways.load(std::memory_order_relaxed); }
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

// A subject with a dynamic skeleton.
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
            result <<= static_cast<CORBA::ULongLong>(oneways.load(std::memory_order_relaxed));
            request->set_result(result);
        } else if (operation == "tell_nothing" || operation == "stream_octets" || operation == "stream_structs") {
            take_oneway();
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

// Activates and deactivates subjects.
class ActiveSubjects : public POA_Experiment::Subjects {
public:
    ActiveSubjects(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa)
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

inline std::atomic<std::uint64_t> factored{0};
inline std::atomic<std::uint64_t> factor_cpu_ns{0};
// Several servers share a processor, and one of them is measured at a time.
inline std::mutex factor_mutex;
inline std::condition_variable factor_changed;
inline std::atomic<bool> factor_enabled{false};

// The same two primes as in crates/probe/src/laboratory/end/factoring.rs.
inline void factor() {
    sched_param parameters = {};
    sched_setscheduler(0, SCHED_OTHER, &parameters);
    for (;;) {
        if (!factor_enabled.load(std::memory_order_relaxed)) {
            std::unique_lock<std::mutex> lock(factor_mutex);
            factor_changed.wait(lock, [] { return factor_enabled.load(); });
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

template <> inline Strings filled<Strings, const char*>(unsigned long count, const char* const& value) {
    Strings sequence;
    sequence.length(count);
    for (unsigned long i = 0; i < count; ++i) sequence[i] = CORBA::string_dup(value);
    return sequence;
}

// Waits until the server has served `told` one-ways.
inline void drain(Subject_ptr subject, std::uint64_t told) {
    while (subject->told() < told) sched_yield();
}

// A client of subjects.
class SubjectsCaller {
public:
    SubjectsCaller(CORBA::ORB_ptr orb, const char* reference) {
        if (reference == nullptr) return;
        CORBA::Object_var object = orb->string_to_object(reference);
        subjects_ = Subjects::_unchecked_narrow(object);
    }

    // Returns false for an unknown command.
    bool run(const Command& command) {
        std::vector<std::string> words;
        std::stringstream text(command.kind);
        for (std::string word; std::getline(text, word, '/');) words.push_back(word);
        if (words.size() == 2 && (words[0] == "process" || words[0] == "stream")) return marshal(words, command);
        if (words.size() == 3 && words[0] == "compute") {
            hold(2, false);
            Subject_ptr subject = held_[words[1] == "low" ? 1 : 0];
            const CORBA::ULongLong busy_ns = std::strtoull(words[2].c_str(), nullptr, 10);
            auto one = [&] { subject->compute(busy_ns); };
            answer(command.period_ns == 0 ? take(command, one) : take_paced(command, one));
            return true;
        }
        if (words.size() == 6 && words[0] == "call") {
            call(words, command);
            return true;
        }
        return false;
    }

private:
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
        ::stream(command, [&] { (subject->*stream)(data); }, [&](std::uint64_t sent) { drain(subject, before + sent); });
    }

    bool marshal(const std::vector<std::string>& words, const Command& command) {
        hold(1, false);
        const bool is_stream = words[0] == "stream";
        const std::string& kind = words[1];
        using S = _objref_Subject;
        CORBA::Any any;
        any <<= static_cast<CORBA::Long>(34567);
#define KIND(word, Sequence, value, process, stream) \
        if (kind == word) {                                                                    \
            passed<Sequence>(is_stream, command, value, &S::process, &S::stream);              \
            return true;                                                                       \
        }
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
        return false;
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
