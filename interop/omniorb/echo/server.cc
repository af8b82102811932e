// An omniORB server of Deckwatch::Echo: prints its reference and serves until it is ended.
#include "echo.hh"

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

int main(int argc, char** argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::Servant_var<Mirror> mirror = new Mirror;
    PortableServer::ObjectId_var id = root->activate_object(mirror);
    CORBA::Object_var reference = root->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    std::printf("%s\n", text.in());
    std::fflush(stdout);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    orb->run();
}
