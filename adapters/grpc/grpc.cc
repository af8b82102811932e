// The carrier `grpc`: one client-streaming gRPC call to each consumer, over HTTP/2 without TLS.
#include "deckwatch_carrier.h"
#include "own_sockets.h"
#include "stream.grpc.pb.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace {

using deckwatch::stream::Message;
using deckwatch::stream::Nothing;
using Service = deckwatch::stream::Consumer;
using Clock = std::chrono::system_clock;  // of gRPC's deadlines

// How long a supplier waits for each consumer, and how long a consumer that ends waits for its calls.
constexpr auto connect_wait = std::chrono::seconds(10);
constexpr auto finish_wait = std::chrono::milliseconds(500);

// The reader and writer have TCP's reliability; gRPC has neither a history nor priorities.
void report(const dw_plan* plan) {
    plan->reliability == DW_RELIABLE ? dw_honoured("reliability") : dw_ignored("reliability");
    dw_ignored("history");
    dw_ignored("priority");
    dw_ignored("idl-type");
    plan->role == DW_SUPPLIER ? dw_honoured("deadline") : dw_ignored("receive-buffer");
}

// --- Supplier ---

// One open call. gRPC permits one write at a time, so at most one message waits here for the peer to read.
class Sender {
public:
    Sender(const dw_plan* plan, const char* end_point) : bound(std::chrono::nanoseconds(plan->send_bound_ns)) {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        channel = grpc::CreateCustomChannel(std::string("ipv4:") + end_point, grpc::InsecureChannelCredentials(),
                                            arguments);
        stub = Service::NewStub(channel);
    }

    ~Sender() {
        const auto until = Clock::now() + std::chrono::nanoseconds(dw_linger_ns());
        if (writer != nullptr && open && complete(until)) {
            writer->WritesDone(this);
            pending = true;
            if (complete(until) && open) {
                writer->Finish(&status, this);
                pending = true;
                complete(until);
            }
        }
        context.TryCancel();
        queue.Shutdown();
        void* tag = nullptr;
        bool ok = false;
        while (queue.Next(&tag, &ok)) {
        }
    }

    // Opens the call. Returns true when the consumer has answered.
    bool connect() {
        const auto until = Clock::now() + connect_wait;
        if (!channel->WaitForConnected(until)) return false;
        writer = stub->PrepareAsyncPush(&context, &nothing, &queue);
        writer->StartCall(this);
        pending = true;
        if (!complete(until) || !open) return false;
        writer->ReadInitialMetadata(this);
        pending = true;
        return complete(until) && open;
    }

    int send(const uint8_t* octets, size_t size_bytes) {
        const auto until = Clock::now() + bound;
        if (open && !complete(until)) return DW_TIMED_OUT;
        if (!open) return DW_DISCONNECTED;
        message.set_octets(octets, size_bytes);
        // The message is serialised here: the octets may change after the return.
        writer->Write(message, this);
        pending = true;
        // Without room in the peer's window the message stays in gRPC's buffer, and the next one waits for it.
        complete(until);
        return open ? DW_SENT : DW_DISCONNECTED;
    }

private:
    // Waits for the operation that is under way. Returns false at the deadline.
    bool complete(Clock::time_point until) {
        if (!pending) return true;
        void* tag = nullptr;
        bool ok = false;
        if (queue.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return false;
        pending = false;
        open = open && ok;
        return true;
    }

    const std::chrono::nanoseconds bound;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<Service::Stub> stub;
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    grpc::Status status;
    Nothing nothing;
    Message message;
    std::unique_ptr<grpc::ClientAsyncWriter<Message>> writer;
    bool pending = false;
    bool open = true;
};

void* connect(const dw_plan* plan, unsigned slot) {
    const dw_destination& destination = plan->destinations[slot];
    auto sender = std::make_unique<Sender>(plan, destination.endpoint);
    if (!sender->connect()) {
        dw_fail("gRPC has no connection to the consumer on %s (%s) after 10 s. Check that it runs, and the route.",
                destination.host, destination.endpoint);
        return nullptr;
    }
    deckwatch::mark_own_sockets(plan);
    report(plan);
    return sender.release();
}

int send(void* sender, uint64_t, const uint8_t* octets, size_t size_bytes) {
    return static_cast<Sender*>(sender)->send(octets, size_bytes);
}

void disconnect(void* sender) {
    delete static_cast<Sender*>(sender);
}

// --- Consumer ---

class Receiver final : public Service::Service {
public:
    explicit Receiver(dw_consumer* to) : consumer(to) {}

    grpc::Status Push(grpc::ServerContext*, grpc::ServerReader<Message>* reader, Nothing*) override {
        // The supplier waits for this answer before its stream starts.
        reader->SendInitialMetadata();
        Message message;
        while (reader->Read(&message)) {
            const std::string& octets = message.octets();
            dw_arrived(consumer, reinterpret_cast<const uint8_t*>(octets.data()), octets.size());
        }
        return grpc::Status::OK;
    }

    std::unique_ptr<grpc::Server> server;

private:
    dw_consumer* const consumer;
};

void* listen(const dw_plan* plan, dw_consumer* consumer) {
    auto receiver = std::make_unique<Receiver>(consumer);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(std::string(plan->address) + ":0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(receiver.get());
    receiver->server = builder.BuildAndStart();
    if (receiver->server == nullptr || port == 0) {
        dw_fail("gRPC cannot listen on %s. Check that this host has the address.", plan->address);
        return nullptr;
    }
    const std::string place = std::string(plan->address) + ":" + std::to_string(port);
    report(plan);
    dw_announce(place.c_str(), place.c_str());
    return receiver.release();
}

void receive(void*) {
    // gRPC's own threads receive.
    while (!dw_stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void finish(void* receiver) {
    auto* ended = static_cast<Receiver*>(receiver);
    ended->server->Shutdown(Clock::now() + finish_wait);
    delete ended;
}

}  // namespace

int main() {
    dw_carrier carrier{};
    carrier.name = "grpc";
    carrier.connect = connect;
    carrier.send = send;
    carrier.disconnect = disconnect;
    carrier.listen = listen;
    carrier.receive = receive;
    carrier.close = finish;
    return dw_main(&carrier);
}
