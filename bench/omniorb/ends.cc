// The omniORB ends of the laboratory: `ends server PROCESSOR FIFO OBJECTS|subjects FILE [DELAY_NS FACTORS]` and `ends
// client PROCESSOR FIFO REFERENCE`. `-` stands for an argument that is not used. A REFERENCE that begins with `@` is a
// file of references. The protocol is in crates/probe/src/laboratory/end.rs.
#include "objects.h"
#include "subjects.h"

#include <iostream>

namespace {

char* activate_subjects(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa) {
    PortableServer::Servant_var<ActiveSubjects> subjects = new ActiveSubjects(orb, poa);
    PortableServer::ObjectId_var id = poa->activate_object(subjects);
    CORBA::Object_var reference = poa->id_to_reference(id);
    return orb->object_to_string(reference);
}

void serve(CORBA::ORB_ptr orb, int argc, char** argv) {
    const auto argument = [&](int index) { return argc > index ? argv[index] : "-"; };
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    const bool subjects = std::strcmp(argument(4), "subjects") == 0;
    delay_ns = std::atoll(argument(6));
    CORBA::String_var reference =
        subjects ? activate_subjects(orb, root) : activate_objects(orb, root, std::atol(argument(4)), argument(5));
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    if (std::strcmp(argument(7), "factors") == 0) std::thread(factor).detach();
    greet(reference);
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line == "factor" || line == "rest") {
            std::lock_guard<std::mutex> lock(factor_mutex);
            factor_enabled = line == "factor";
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
    // The ORB's threads are not stopped first.
    std::_Exit(0);
}

void call(CORBA::ORB_ptr orb, const char* reference) {
    // The reference is of an object or of subjects. Only the one that a command needs is called.
    ObjectsCaller objects(orb, reference);
    SubjectsCaller subjects(orb, *reference == '@' ? nullptr : reference);
    greet("ready");
    std::string line;
    while (std::getline(std::cin, line)) {
        std::stringstream text(line);
        Command command;
        if (!(text >> command.kind >> command.there >> command.back >> command.count >> command.budget_ns)) {
            std::printf("error '%s' is no command\n", line.c_str());
        } else {
            if (!(text >> command.period_ns)) command.period_ns = 0;
            try {
                if (!objects.run(command) && !subjects.run(command)) {
                    std::printf("error '%s' is unknown to this end\n", command.kind.c_str());
                }
            } catch (const CORBA::Exception& exception) {
                std::printf("error %s\n", exception._name());
            }
        }
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    place(argv[2], argv[3]);
    // TCP as in the other ends, no name look-up, and messages of the bench's sizes.
    const char* plain[][2] = {{"endPoint", "giop:tcp:127.0.0.1:"}, {"giopMaxMsgSize", "33554432"}, {nullptr, nullptr}};
    // Over SSL the transport is a library that is loaded beside this program. Without a password omniORB sets no key.
    const char* folder = std::getenv("DECKWATCH_CERTIFICATES");
    const std::string place = folder ? folder : "";
    const std::string authority = place + "/authority.pem", both = place + "/end.both";
    const char* ssl[][2] = {{"endPoint", "giop:ssl:127.0.0.1:"},
                            {"giopMaxMsgSize", "33554432"},
                            {"sslCAFile", authority.c_str()},
                            {"sslKeyFile", both.c_str()},
                            {"sslKeyPassword", "none"},
                            {"sslVerifyMode", "peer,fail"},
                            {nullptr, nullptr}};
    const auto options = folder ? ssl : plain;
    int none = 0;
    CORBA::ORB_var orb = CORBA::ORB_init(none, nullptr, "omniORB4", options);
    if (std::strcmp(argv[1], "server") == 0) {
        serve(orb, argc, argv);
    } else {
        call(orb, argv[4]);
    }
}
