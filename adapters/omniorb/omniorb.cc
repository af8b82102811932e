// The carrier `omniorb`: one-way CORBA calls by omniORB, one connection to each consumer.
#include "deckwatch_carrier.h"
#include "own_sockets.h"
#include "stream.hh"

#include <omniORB4/omniInterceptors.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

namespace {

using Octets = DeckwatchStream::Octets;

// How long a supplier waits for each consumer's first answer.
constexpr auto connect_wait = std::chrono::seconds(10);
constexpr CORBA::ULong ping_ms = 1000;

CORBA::ORB_var orb;
const dw_plan* the_plan = nullptr;

// omniORB has no setting for the marks of its packets.
CORBA::Boolean mark(omni::omniInterceptors::clientOpenConnection_T::info_T&) {
    deckwatch::mark_own_sockets(the_plan);
    return true;
}

void start(const dw_plan* plan) {
    the_plan = plan;
    const std::string end_point = std::string("giop:tcp:") + plan->address + ":";
    const char* options[][2] = {
        {"endPoint", end_point.c_str()},
        {"clientTransportRule", "* tcp"},
        {"serverTransportRule", "* tcp"},
        {"giopMaxMsgSize", "2097152"},
        // One connection, read by one thread: the messages stay in order. By default a connection may have 100 threads.
        {"maxGIOPConnectionPerServer", "1"},
        {"threadPerConnectionPolicy", "1"},
        {"maxServerThreadPerConnection", "1"},
        // An idle connection stays open: a one-way call into a closing connection is lost.
        {"inConScanPeriod", "0"},
        {"outConScanPeriod", "0"},
        {nullptr, nullptr},
    };
    // The machine's own configuration file does not change the measurement.
    char program[] = "omniorb", flag[] = "-ORBconfigFile", none[] = "/dev/null";
    char* arguments[] = {program, flag, none, nullptr};
    int count = 3;
    orb = CORBA::ORB_init(count, arguments, "omniORB4", options);
    omniORB::getInterceptors()->clientOpenConnection.add(mark);
}

std::string text_of(const CORBA::SystemException& exception) {
    const char* minor = exception.NP_minorString();
    return std::string(exception._name()) + (minor == nullptr ? "" : std::string(" ") + minor);
}

// TCP is reliable and has no other history than its buffers. The ORB has no priorities of its own.
void report(const dw_plan* plan) {
    plan->reliability == DW_RELIABLE ? dw_honoured("reliability") : dw_ignored("reliability");
    dw_ignored("history");
    dw_ignored("priority");
    dw_ignored("idl-type");
    plan->role == DW_SUPPLIER ? dw_honoured("deadline") : dw_ignored("receive-buffer");
}

// --- Supplier ---

void* connect(const dw_plan* plan, unsigned slot) {
    static std::once_flag once;
    const char* end_point = plan->destinations[slot].endpoint;
    try {
        std::call_once(once, [&] { start(plan); });
        CORBA::Object_var object = orb->string_to_object(end_point);
        DeckwatchStream::Consumer_var consumer = DeckwatchStream::Consumer::_unchecked_narrow(object);
        omniORB::setClientCallTimeout(consumer, ping_ms);
        const auto until = std::chrono::steady_clock::now() + connect_wait;
        for (;;) {
            try {
                consumer->ping();
                break;
            } catch (const CORBA::SystemException&) {
                if (dw_stopped() || std::chrono::steady_clock::now() > until) throw;
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
        }
        // omniORB counts in milliseconds, and 0 would be no limit.
        report(plan);
        const int64_t bound_ms = std::max<int64_t>(plan->send_bound_ns / 1000000, 1);
        omniORB::setClientCallTimeout(consumer, static_cast<CORBA::ULong>(bound_ms));
        return new DeckwatchStream::Consumer_var(consumer);
    } catch (const CORBA::SystemException& exception) {
        dw_fail("The consumer on %s does not answer: CORBA::%s. Check that it runs, and the route to it.",
                plan->destinations[slot].host, text_of(exception).c_str());
        return nullptr;
    }
}

int send(void* sender, uint64_t, const uint8_t* octets, size_t size_bytes) {
    auto& consumer = *static_cast<DeckwatchStream::Consumer_var*>(sender);
    const auto size = static_cast<CORBA::ULong>(size_bytes);
    try {
        // The sequence borrows the octets; it does not write to them.
        consumer->push(Octets(size, size, const_cast<CORBA::Octet*>(octets), false));
        return DW_SENT;
    } catch (const CORBA::TIMEOUT&) {
        return DW_TIMED_OUT;
    } catch (const CORBA::TRANSIENT& exception) {
        return exception.minor() == omni::TRANSIENT_CallTimedout ? DW_TIMED_OUT : DW_DISCONNECTED;
    } catch (const CORBA::COMM_FAILURE&) {
        return DW_DISCONNECTED;
    } catch (const CORBA::SystemException&) {
        return DW_REFUSED;
    }
}

void disconnect(void* sender) {
    delete static_cast<DeckwatchStream::Consumer_var*>(sender);
}

// --- Consumer ---

class Servant : public POA_DeckwatchStream::Consumer {
public:
    explicit Servant(dw_consumer* to) : consumer(to) {}

    void push(const Octets& message) override {
        dw_arrived(consumer, message.get_buffer(), message.length());
    }

    void ping() override {}

private:
    dw_consumer* const consumer;
};

// Returns `address:port` of a reference.
std::string listening_of(const CORBA::Object_ptr object) {
    omniIOR_var ior = object->_PR_getobj()->_getIOR();
    const omni::giopAddressList& addresses = ior->getIORInfo()->addresses();
    const std::string address = addresses.empty() ? "" : addresses[0]->address();
    const std::string prefix = "giop:tcp:";
    return address.compare(0, prefix.size(), prefix) == 0 ? address.substr(prefix.size()) : address;
}

void* listen(const dw_plan* plan, dw_consumer* consumer) {
    try {
        start(plan);
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::Servant_var<Servant> servant = new Servant(consumer);
        PortableServer::ObjectId_var id = root->activate_object(servant);
        CORBA::Object_var reference = root->id_to_reference(id);
        PortableServer::POAManager_var manager = root->the_POAManager();
        manager->activate();
        report(plan);
        CORBA::String_var text = orb->object_to_string(reference);
        dw_announce(text, listening_of(reference).c_str());
        return consumer;
    } catch (const CORBA::SystemException& exception) {
        dw_fail("omniORB cannot listen on %s: CORBA::%s. Check that this host has the address.", plan->address,
                text_of(exception).c_str());
        return nullptr;
    }
}

void receive(void*) {
    // omniORB's own threads receive.
    while (!dw_stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void close(void*) {
    try {
        orb->destroy();
    } catch (const CORBA::SystemException&) {
        // The process ends in any case.
    }
}

}  // namespace

int main() {
    dw_carrier carrier{};
    carrier.name = "omniorb";
    carrier.connect = connect;
    carrier.send = send;
    carrier.disconnect = disconnect;
    carrier.listen = listen;
    carrier.receive = receive;
    carrier.close = close;
    return dw_main(&carrier);
}
