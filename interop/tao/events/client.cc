// A supplier or a consumer of a real-time event channel, with TAO's own stubs: `supply IOR COUNT`, `consume IOR COUNT`.
#include "../reported.h"

#include "orbsvcs/RtecEventChannelAdminC.h"
#include "orbsvcs/RtecEventCommS.h"
#include "tao/PortableServer/PortableServer.h"

#include <cstdlib>
#include <cstring>

static const CORBA::Long TYPE = 17;
static const CORBA::Long SOURCE = 3;

// Prints each event; ends the ORB after the last.
class Consumer : public POA_RtecEventComm::PushConsumer {
public:
    Consumer(CORBA::ORB_ptr orb, int count) : orb_(CORBA::ORB::_duplicate(orb)), left_(count) {}

    void push(const RtecEventComm::EventSet& events) {
        for (CORBA::ULong i = 0; i < events.length(); ++i) {
            const RtecEventComm::EventHeader& header = events[i].header;
            CORBA::ULong value = 0;
            events[i].data.any_value >>= value;
            const CORBA::ULong size = events[i].data.payload.length();
            std::printf("event %d %d %d %llu %u %u\n", int(header.type), int(header.source), int(header.ttl),
                        static_cast<unsigned long long>(header.creation_time), unsigned(size), unsigned(value));
            std::fflush(stdout);
            if (--left_ == 0) orb_->shutdown(false);
        }
    }

    void disconnect_push_consumer() {}

private:
    CORBA::ORB_var orb_;
    int left_;
};

static int supply(RtecEventChannelAdmin::EventChannel_ptr channel, int count) {
    RtecEventChannelAdmin::SupplierAdmin_var admin = channel->for_suppliers();
    RtecEventChannelAdmin::ProxyPushConsumer_var proxy = admin->obtain_push_consumer();
    RtecEventChannelAdmin::SupplierQOS qos;
    qos.is_gateway = false;
    qos.publications.length(1);
    qos.publications[0].event.header.type = TYPE;
    qos.publications[0].event.header.source = SOURCE;
    qos.publications[0].event.header.ttl = 1;
    qos.publications[0].dependency_info.rt_info = 0;
    qos.publications[0].dependency_info.number_of_calls = 1;
    proxy->connect_push_supplier(RtecEventComm::PushSupplier::_nil(), qos);
    for (int i = 0; i < count; ++i) {
        RtecEventComm::EventSet events(1);
        events.length(1);
        events[0].header.type = TYPE;
        events[0].header.source = SOURCE;
        events[0].header.ttl = 1;
        events[0].header.creation_time = 1000 + i;
        // TAO leaves the members of a new event as the memory was.
        events[0].header.ec_recv_time = 0;
        events[0].header.ec_send_time = 0;
        events[0].data.payload.length(i);
        for (int at = 0; at < i; ++at) events[0].data.payload[at] = CORBA::Octet(at);
        events[0].data.any_value <<= CORBA::ULong(i);
        proxy->push(events);
    }
    // Two-way on the same connection: the channel has all events when it returns.
    proxy->disconnect_push_consumer();
    return 0;
}

static int consume(CORBA::ORB_ptr orb, RtecEventChannelAdmin::EventChannel_ptr channel, int count) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object.in());
    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();
    Consumer servant(orb, count);
    PortableServer::ObjectId_var id = poa->activate_object(&servant);
    object = poa->id_to_reference(id.in());
    RtecEventComm::PushConsumer_var own = RtecEventComm::PushConsumer::_narrow(object.in());
    RtecEventChannelAdmin::ConsumerAdmin_var admin = channel->for_consumers();
    RtecEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_push_supplier();
    RtecEventChannelAdmin::ConsumerQOS qos;
    qos.is_gateway = false;
    qos.dependencies.length(1);
    qos.dependencies[0].event.header.type = TYPE;
    qos.dependencies[0].event.header.source = SOURCE;
    qos.dependencies[0].rt_info = 0;
    proxy->connect_push_consumer(own.in(), qos);
    std::printf("connected\n");
    std::fflush(stdout);
    orb->run();
    return 0;
}

static int work(int argc, char** argv) {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc != 4) return 2;
    CORBA::Object_var object = orb->string_to_object(argv[2]);
    RtecEventChannelAdmin::EventChannel_var channel = RtecEventChannelAdmin::EventChannel::_narrow(object.in());
    if (CORBA::is_nil(channel.in())) return 3;
    const int count = std::atoi(argv[3]);
    return std::strcmp(argv[1], "supply") == 0 ? supply(channel.in(), count) : consume(orb.in(), channel.in(), count);
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
