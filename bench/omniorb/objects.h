// The objects of `deckwatch bench`, and their client.
#pragma once

#include "end.h"

#include <atomic>
#include <fstream>

using Deckwatch::ComplexSequence;
using Deckwatch::OctetSequence;

// A result that has the elements of an argument: nothing is copied. The skeleton marshals the result before it frees
// the argument.
template <class Sequence> Sequence* view(const Sequence& data) {
    auto* elements = const_cast<Sequence&>(data).get_buffer();
    return new Sequence(data.length(), data.length(), elements, false);
}

// The servant of the bench.
class Mirror : public POA_DeckwatchBench::Bench {
    std::atomic<CORBA::ULongLong> arrived{0};

public:
    CORBA::ULongLong calls() override { return arrived; }
    void ping() override {}
    char* echo_string(const char* message) override { return CORBA::string_dup(message); }
    OctetSequence* echo_octets(const OctetSequence& data) override { return view(data); }
    ComplexStruct* echo_complex(const ComplexStruct& data) override { return new ComplexStruct(data); }
    ComplexSequence* echo_complex_sequence(const ComplexSequence& data) override { return view(data); }
    CORBA::Any* echo_any(const CORBA::Any&) override { throw CORBA::NO_IMPLEMENT(); }
    CORBA::Object_ptr echo_object(CORBA::Object_ptr) override { throw CORBA::NO_IMPLEMENT(); }
    void refuse(const char*, CORBA::Long) override { throw CORBA::NO_IMPLEMENT(); }
    void send_octets(const OctetSequence&) override { ++arrived; }
    void send_complex_sequence(const ComplexSequence&) override { ++arrived; }
    void sink_octets(const OctetSequence&) override {}
    void sink_complex_sequence(const ComplexSequence&) override {}
    void sink_plain_sequence(const DeckwatchBench::PlainSequence&) override {}
};

// Activates objects and writes their references to `file`, or `-` for none. Returns the first reference.
inline char* activate_objects(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, long count, const char* file) {
    std::ofstream references;
    if (std::strcmp(file, "-") != 0) references.open(file);
    CORBA::String_var first;
    for (long i = 0; i < count; ++i) {
        PortableServer::Servant_var<Mirror> mirror = new Mirror;
        PortableServer::ObjectId_var id = poa->activate_object(mirror);
        CORBA::Object_var reference = poa->id_to_reference(id);
        CORBA::String_var text = orb->object_to_string(reference);
        references << text.in() << '\n';
        if (i == 0) first = CORBA::string_dup(text);
    }
    return first._retn();
}

// A client of one object, or of each object in a file `@FILE` in turn.
class ObjectsCaller {
public:
    ObjectsCaller(CORBA::ORB_ptr orb, const char* reference) : all_(targets(orb, reference)) {}

    // Returns false for an unknown command.
    bool run(const Command& command) {
        DeckwatchBench::Bench_ptr bench = all_[0];
        if (command.kind == "octets") {
            const OctetSequence data = octets(command.there);
            std::size_t next = 0;
            answer(take(command, [&] {
                OctetSequence_var got = all_[next]->echo_octets(data);
                if (++next == all_.size()) next = 0;
            }));
        } else if (command.kind == "structs") {
            const auto data = filled<ComplexSequence>(command.there, element());
            answer(take(command, [&] { ComplexSequence_var got = bench->echo_complex_sequence(data); }));
        } else if (command.kind == "sink-octets") {
            const OctetSequence data = octets(command.there);
            answer(take(command, [&] { bench->sink_octets(data); }));
        } else if (command.kind == "sink-structs") {
            const auto data = filled<ComplexSequence>(command.there, element());
            answer(take(command, [&] { bench->sink_complex_sequence(data); }));
        } else if (command.kind == "sink-plain") {
            const DeckwatchBench::PlainStruct track = {0.25, 0.5, 0.75, 1234567890123, 42, 0.875F};
            const auto data = filled<DeckwatchBench::PlainSequence>(command.there, track);
            answer(take(command, [&] { bench->sink_plain_sequence(data); }));
        } else if (command.kind == "stream-octets") {
            const OctetSequence data = octets(command.there);
            const CORBA::ULongLong before = bench->calls();
            stream(command, [&] { bench->send_octets(data); }, [&](std::uint64_t sent) {
                while (bench->calls() < before + sent) {}
            });
        } else {
            return false;
        }
        return true;
    }

private:
    using OctetSequence_var = Deckwatch::OctetSequence_var;
    using ComplexSequence_var = Deckwatch::ComplexSequence_var;

    static std::vector<DeckwatchBench::Bench_var> targets(CORBA::ORB_ptr orb, const char* reference) {
        std::vector<std::string> texts;
        if (*reference == '@') {
            std::ifstream file(reference + 1);
            for (std::string line; std::getline(file, line);) texts.push_back(line);
        } else {
            texts.push_back(reference);
        }
        // A step without a common divisor with the count visits each object once before it repeats one.
        std::size_t step = 1;
        for (std::size_t prime : {1299709, 104729, 7919}) if (texts.size() % prime) step = prime;
        std::vector<DeckwatchBench::Bench_var> found;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            CORBA::Object_var object = orb->string_to_object(texts[i * step % texts.size()].c_str());
            found.push_back(DeckwatchBench::Bench::_unchecked_narrow(object));
        }
        return found;
    }

    static OctetSequence octets(unsigned long count) {
        OctetSequence data;
        data.length(count);
        for (unsigned long i = 0; i < count; ++i) data[i] = static_cast<CORBA::Octet>(i);
        return data;
    }

    std::vector<DeckwatchBench::Bench_var> all_;
};
