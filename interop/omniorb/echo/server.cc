// An omniORB server of Deckwatch::Echo: prints its reference and serves until it is ended.
#include "echo.hh"
#include "../program.h"

#include <atomic>
#include <cstdio>

using namespace Deckwatch;

class Mirror : public POA_Deckwatch::Echo {
    std::atomic<CORBA::ULongLong> count{0};

public:
    CORBA::ULongLong calls() override { return count; }
    void ping() override {}
    char* echo_string(const char* message) override { return CORBA::string_dup(message); }
    OctetSequence* echo_octets(const OctetSequence& data) override { return new OctetSequence(data); }
    ComplexStruct* echo_complex(const ComplexStruct& data) override { return new ComplexStruct(data); }
    ComplexSequence* echo_complex_sequence(const ComplexSequence& data) override { return new ComplexSequence(data); }
    CORBA::Any* echo_any(const CORBA::Any& data) override { return new CORBA::Any(data); }
    CORBA::Object_ptr echo_object(CORBA::Object_ptr reference) override { return CORBA::Object::_duplicate(reference); }
    void refuse(const char* reason, CORBA::Long code) override { throw Refused(reason, code); }
    void send_octets(const OctetSequence& data) override {
        if (data.length() > 0 && data[0] == static_cast<CORBA::Octet>(count)) ++count;
    }
    void send_complex_sequence(const ComplexSequence& data) override { count += data.length(); }
};

static int work(CORBA::ORB_ptr orb, int, char**) {
    PortableServer::Servant_var<Mirror> mirror = new Mirror;
    return serve(orb, mirror);
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
