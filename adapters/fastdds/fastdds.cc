// The carrier `fastdds`: DDS by Fast DDS over UDP.
//
// * Each consumer has a participant and a writer of its own. A reliable writer waits for its slowest reader, so one that
//   has stopped would hold up the others.
// * Only the plan's address is used. Fast DDS would choose shared memory between two hosts that are emulated on one
//   machine, so the transport is UDP alone.
// * Discovery is unicast: a consumer announces where it listens, and the supplier's participant announces itself there.
// * A flow's IDL type is the topic's type. The body is the CDR encoding of a value, which is what DDS sends.
#include "deckwatch_carrier.h"
#include "own_sockets.h"

#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::types::ReturnCode_t;

// How long a supplier waits for each consumer.
constexpr int64_t match_wait_ns = 10'000'000'000;
// How long a part waits until the interface of its address runs.
constexpr int64_t interface_wait_ns = 5'000'000'000;
// What a reader or writer keeps at most.
constexpr size_t history_octets = size_t{64} << 20;
constexpr int32_t history_samples_min = 8;
constexpr int32_t history_samples_max = 4096;
// A lost last message is found by the next heartbeat. Fast DDS' default of 3 s is longer than most deadlines.
constexpr int64_t heartbeat_ns = 100'000'000;
constexpr uint32_t socket_buffer_octets = 4u << 20;
// Fragments need the asynchronous writer.
constexpr size_t whole_octets_max = 60'000;

Duration_t duration(int64_t ns) {
    return {static_cast<int32_t>(ns / 1'000'000'000), static_cast<uint32_t>(ns % 1'000'000'000)};
}

// A message to send, or the storage of a received one.
struct Message {
    const uint8_t* octets = nullptr;
    size_t size_bytes = 0;
    std::vector<uint8_t> storage;
};

// The topic's type: the flow's IDL type, or `struct Octets { sequence<octet> octets; };`.
class MessageType : public dds::TopicDataType {
public:
    explicit MessageType(const dw_plan* plan) : typed(plan->idl_type != nullptr), size_bytes(plan->size_bytes) {
        setName(typed ? plan->idl_type : "DeckwatchStream::Octets");
        m_typeSize = static_cast<uint32_t>(header + plan->size_bytes + (typed ? 0 : length));
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
        const auto* message = static_cast<const Message*>(data);
        const size_t before = header + (typed ? 0 : length);
        if (payload->max_size < before + message->size_bytes) return false;
        const auto count = static_cast<uint32_t>(message->size_bytes);
        const uint8_t start[header + length] = {
            0, CDR_LE, 0, 0,
            static_cast<uint8_t>(count), static_cast<uint8_t>(count >> 8),
            static_cast<uint8_t>(count >> 16), static_cast<uint8_t>(count >> 24),
        };
        std::memcpy(payload->data, start, before);
        std::memcpy(payload->data + before, message->octets, count);
        payload->encapsulation = CDR_LE;
        payload->length = static_cast<uint32_t>(before + count);
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
        auto* message = static_cast<Message*>(data);
        const size_t before = header + (typed ? 0 : length);
        if (payload->length < before || payload->data[1] != CDR_LE) return false;
        // RTPS rounds a payload up to a multiple of four octets.
        const size_t room = payload->length - before;
        size_t size = typed && room - size_bytes < 4 ? size_bytes : room;
        if (!typed) {
            uint32_t count = 0;
            for (size_t i = length; i > 0; --i) count = count << 8 | payload->data[header + i - 1];
            size = count;
        }
        if (size > room) return false;
        message->storage.assign(payload->data + before, payload->data + before + size);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
        const auto* message = static_cast<const Message*>(data);
        const size_t size = header + (typed ? 0 : length) + message->size_bytes;
        return [size] { return static_cast<uint32_t>(size); };
    }

    void* createData() override { return new Message; }
    void deleteData(void* data) override { delete static_cast<Message*>(data); }
    bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }

private:
    static constexpr size_t header = 4;  // of the encapsulation
    static constexpr size_t length = 4;  // of the sequence
    const bool typed;
    const size_t size_bytes;
};

// Notes when the supplier's writer is known.
class Discovery : public dds::DomainParticipantListener {
public:
    explicit Discovery(std::string of) : topic(std::move(of)) {}

    void on_publisher_discovery(dds::DomainParticipant*, rtps::WriterDiscoveryInfo&& info) override {
        if (info.info.topicName() != topic.c_str()) return;
        const std::lock_guard<std::mutex> lock(mutex);
        found = true;
        changed.notify_all();
    }

    bool wait(std::chrono::milliseconds bound) {
        std::unique_lock<std::mutex> lock(mutex);
        return changed.wait_for(lock, bound, [this] { return found; });
    }

private:
    const std::string topic;
    std::mutex mutex;
    std::condition_variable changed;
    bool found = false;
};

// The DDS entities of this part. They live until the process ends.
struct Entities {
    const dw_plan* plan = nullptr;
    std::unique_ptr<Discovery> discovery;
    dds::DomainParticipant* participant = nullptr;
    dds::Topic* topic = nullptr;
    dds::DataWriter* writer = nullptr;
    dds::DataReader* reader = nullptr;
    dw_consumer* consumer = nullptr;
    unsigned port = 0;
};

// Returns a UDP port that is free on this address now, or 0.
unsigned free_port(const char* address) {
    const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    socklen_t size = sizeof name;
    name.sin_family = AF_INET;
    unsigned port = 0;
    if (inet_pton(AF_INET, address, &name.sin_addr) == 1 &&
        bind(probe, reinterpret_cast<sockaddr*>(&name), size) == 0 &&
        getsockname(probe, reinterpret_cast<sockaddr*>(&name), &size) == 0) {
        port = ntohs(name.sin_port);
    }
    if (probe >= 0) close(probe);
    return port;
}

// Returns true if the interface with this address is up and has a carrier.
bool is_running(const char* address) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return false;
    bool running = false;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
        char text[INET_ADDRSTRLEN];
        const auto* name = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
        inet_ntop(AF_INET, &name->sin_addr, text, sizeof text);
        running = running || (std::strcmp(text, address) == 0 && (one->ifa_flags & IFF_RUNNING) != 0);
    }
    freeifaddrs(all);
    return running;
}

// Fast DDS never uses an interface that is not running when the participant starts. The kernel marks a new link as
// running up to a second after it is up.
void await_interface(const char* address) {
    const int64_t until = dw_now_ns() + interface_wait_ns;
    while (!is_running(address) && !dw_stopped() && dw_now_ns() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

// By default Fast DDS writes its log to standard output, which is for answers.
void write_log_to_stderr() {
    dds::Log::SetVerbosity(dds::Log::Kind::Error);
    dds::Log::ClearConsumers();
    auto consumer = std::make_unique<dds::StdoutErrConsumer>();
    consumer->stderr_threshold(dds::Log::Kind::Info);
    dds::Log::RegisterConsumer(std::move(consumer));
}

rtps::Locator_t locator(const std::string& address, unsigned port) {
    rtps::Locator_t place;
    place.kind = LOCATOR_KIND_UDPv4;
    rtps::IPLocator::setIPv4(place, address);
    place.port = port;
    return place;
}

bool find(const dw_destination* peer, rtps::Locator_t& place) {
    char host[64];
    unsigned port = 0;
    if (!dw_split_endpoint(peer->endpoint, host, sizeof host, &port)) {
        dw_fail("The endpoint '%s' of the consumer on %s is not ADDRESS:PORT.", peer->endpoint, peer->host);
        return false;
    }
    place = locator(host, port);
    return true;
}

// Creates the participant, which announces itself to the peer alone, and the topic. Returns null after `dw_fail`.
std::unique_ptr<Entities> join(const dw_plan* plan, const dw_destination* peer) {
    write_log_to_stderr();
    await_interface(plan->address);
    auto entities = std::make_unique<Entities>();
    entities->plan = plan;
    entities->discovery = std::make_unique<Discovery>(plan->topic);
    dds::DomainParticipantQos qos = dds::PARTICIPANT_QOS_DEFAULT;
    qos.name(plan->topic);
    const auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.emplace_back(plan->address);
    udp->sendBufferSize = socket_buffer_octets;
    const auto asked = static_cast<uint32_t>(std::max(plan->receive_buffer_bytes, 0));
    udp->receiveBufferSize = asked > 0 ? asked : socket_buffer_octets;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    // No multicast: a lone link has no route for it.
    auto& wire = qos.wire_protocol();
    entities->port = free_port(plan->address);
    wire.builtin.metatrafficUnicastLocatorList.push_back(locator(plan->address, entities->port));
    wire.default_unicast_locator_list.push_back(locator(plan->address, free_port(plan->address)));
    // Without an initial peer, Fast DDS would announce a consumer by multicast: the peer is the participant itself.
    rtps::Locator_t to = locator(plan->address, entities->port);
    if (peer != nullptr && !find(peer, to)) return nullptr;
    wire.builtin.initialPeersList.push_back(to);
    entities->participant = dds::DomainParticipantFactory::get_instance()->create_participant(
        0, qos, entities->discovery.get(), dds::StatusMask::none());
    dds::TypeSupport type(new MessageType(plan));
    if (entities->port != 0 && entities->participant != nullptr &&
        type.register_type(entities->participant) == ReturnCode_t::RETCODE_OK) {
        entities->topic =
            entities->participant->create_topic(plan->topic, type.get_type_name(), dds::TOPIC_QOS_DEFAULT);
    }
    if (entities->topic == nullptr) {
        dw_fail("Fast DDS cannot start on %s. Check that this host has the address.", plan->address);
        return nullptr;
    }
    return entities;
}

// Applies the plan's reliability and history to the QoS of a reader or writer.
template <class Qos>
void settle(const dw_plan* plan, Qos& qos) {
    const size_t room = history_octets / std::max<size_t>(plan->size_bytes, 1);
    const auto fit = static_cast<int32_t>(std::min<size_t>(room, history_samples_max));
    const int32_t bound = std::max(fit, history_samples_min);
    qos.reliability().kind =
        plan->reliability == DW_BEST_EFFORT ? dds::BEST_EFFORT_RELIABILITY_QOS : dds::RELIABLE_RELIABILITY_QOS;
    qos.durability().kind = dds::VOLATILE_DURABILITY_QOS;
    const bool keep_last = plan->history == DW_KEEP_LAST;
    qos.history().kind = keep_last ? dds::KEEP_LAST_HISTORY_QOS : dds::KEEP_ALL_HISTORY_QOS;
    const int32_t asked = std::max(1, static_cast<int32_t>(std::min<unsigned>(plan->history_depth, 1u << 20)));
    qos.history().depth = keep_last ? asked : bound;
    const int32_t samples = std::max(bound, qos.history().depth);
    qos.resource_limits().max_samples = samples;
    qos.resource_limits().max_instances = 1;
    qos.resource_limits().max_samples_per_instance = samples;
    qos.resource_limits().allocated_samples = std::min(samples, history_samples_min);
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.data_sharing().off();
}

void report(const dw_plan* plan) {
    dw_honoured("reliability");
    dw_honoured("history");
    if (plan->role == DW_SUPPLIER) dw_honoured("deadline");
    if (plan->role == DW_CONSUMER) dw_honoured("receive-buffer");
    if (plan->idl_type != nullptr) dw_honoured("idl-type");
    // Fast DDS 2.9 accepts TRANSPORT_PRIORITY and does nothing with it.
    dw_ignored("priority");
}

// --- Supplier ---

void* connect(const dw_plan* plan, unsigned slot) {
    const dw_destination* consumer = &plan->destinations[slot];
    std::unique_ptr<Entities> entities = join(plan, consumer);
    if (entities == nullptr) return nullptr;
    dds::Publisher* publisher = entities->participant->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
    dds::DataWriterQos qos = dds::DATAWRITER_QOS_DEFAULT;
    settle(plan, qos);
    qos.reliability().max_blocking_time = duration(plan->send_bound_ns);
    qos.reliable_writer_qos().times.heartbeatPeriod = duration(heartbeat_ns);
    qos.publish_mode().kind = plan->size_bytes > whole_octets_max ? dds::ASYNCHRONOUS_PUBLISH_MODE
                                                                  : dds::SYNCHRONOUS_PUBLISH_MODE;
    entities->writer = publisher->create_datawriter(entities->topic, qos);
    if (entities->writer == nullptr) {
        dw_fail("Fast DDS refuses the writer of topic %s.", plan->topic);
        return nullptr;
    }
    const int64_t until = dw_now_ns() + match_wait_ns;
    dds::StatusCondition& condition = entities->writer->get_statuscondition();
    condition.set_enabled_statuses(dds::StatusMask::publication_matched());
    dds::WaitSet wait;
    wait.attach_condition(condition);
    for (;;) {
        dds::PublicationMatchedStatus status;
        entities->writer->get_publication_matched_status(status);
        if (status.current_count > 0) break;
        if (dw_stopped() || dw_now_ns() > until) {
            dw_fail("Fast DDS has not found the consumer on %s (%s) in 10 s. Check that it runs, and the route to it.",
                    consumer->host, consumer->endpoint);
            return nullptr;
        }
        dds::ConditionSeq active;
        wait.wait(active, duration(int64_t{DW_STOP_LOOK_MS} * 1'000'000));
    }
    deckwatch::mark_own_sockets(plan);
    report(plan);
    return entities.release();
}

int send(void* sender, uint64_t, const uint8_t* octets, size_t size_bytes) {
    auto* entities = static_cast<Entities*>(sender);
    Message message;
    message.octets = octets;
    message.size_bytes = size_bytes;
    // This form of `write` returns the reason of a failure. The handle is nil because the type has no key.
    const ReturnCode_t code = entities->writer->write(&message, dds::HANDLE_NIL);
    if (code == ReturnCode_t::RETCODE_OK) return DW_SENT;
    return code == ReturnCode_t::RETCODE_TIMEOUT ? DW_TIMED_OUT : DW_REFUSED;
}

void leave(Entities* entities) {
    entities->participant->delete_contained_entities();
    dds::DomainParticipantFactory::get_instance()->delete_participant(entities->participant);
    delete entities;
}

void disconnect(void* sender) {
    auto* entities = static_cast<Entities*>(sender);
    if (entities->plan->reliability != DW_BEST_EFFORT) {
        entities->writer->wait_for_acknowledgments(duration(dw_linger_ns()));
    }
    leave(entities);
}

// --- Consumer ---

void* listen(const dw_plan* plan, dw_consumer* consumer) {
    std::unique_ptr<Entities> entities = join(plan, nullptr);
    if (entities == nullptr) return nullptr;
    entities->consumer = consumer;
    report(plan);
    const std::string place = std::string(plan->address) + ":" + std::to_string(entities->port);
    dw_announce(place.c_str(), place.c_str());
    return entities.release();
}

// Takes all messages that are there.
void take(Entities* entities, Message& message) {
    dds::SampleInfo info;
    while (!dw_stopped()) {
        const ReturnCode_t code = entities->reader->take_next_sample(&message, &info);
        if (code == ReturnCode_t::RETCODE_NO_DATA) return;
        if (code != ReturnCode_t::RETCODE_OK) {
            dw_malformed(entities->consumer, 1);
            return;
        }
        if (info.valid_data) dw_arrived(entities->consumer, message.storage.data(), message.storage.size());
    }
}

void receive(void* receiver) {
    auto* entities = static_cast<Entities*>(receiver);
    // The reader exists only when the supplier's writer is known. So the supplier, which waits for readers, sends
    // nothing that a reader would drop because it does not know the writer yet.
    while (!entities->discovery->wait(std::chrono::milliseconds(DW_STOP_LOOK_MS))) {
        if (dw_stopped()) return;
    }
    dds::Subscriber* subscriber = entities->participant->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
    dds::DataReaderQos qos = dds::DATAREADER_QOS_DEFAULT;
    settle(entities->plan, qos);
    entities->reader = subscriber->create_datareader(entities->topic, qos);
    if (entities->reader == nullptr) {
        dw_fail("Fast DDS refuses the reader of topic %s.", entities->plan->topic);
        return;
    }
    dds::StatusCondition& condition = entities->reader->get_statuscondition();
    condition.set_enabled_statuses(dds::StatusMask::data_available());
    dds::WaitSet wait;
    wait.attach_condition(condition);
    Message message;
    message.storage.reserve(entities->plan->size_bytes);
    while (!dw_stopped()) {
        dds::ConditionSeq active;
        wait.wait(active, duration(int64_t{DW_STOP_LOOK_MS} * 1'000'000));
        take(entities, message);
    }
}

void finish(void* receiver) {
    leave(static_cast<Entities*>(receiver));
}

}  // namespace

int main() {
    dw_carrier carrier{};
    carrier.name = "fastdds";
    carrier.connect = connect;
    carrier.send = send;
    carrier.disconnect = disconnect;
    carrier.listen = listen;
    carrier.receive = receive;
    carrier.close = finish;
    return dw_main(&carrier);
}
