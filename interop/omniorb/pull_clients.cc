// Clients of an event channel in the pull model.
//
//   pull_clients pull CHANNEL COUNT      waits for COUNT events by `pull`, and prints their numbers
//   pull_clients try_pull CHANNEL COUNT  asks for COUNT events by `try_pull`, and prints their numbers
//   pull_clients supply CHANNEL COUNT    has COUNT events for the channel, and ends when they have been pulled

#include <cstdlib>
#include <cstring>
#include <iostream>

#include <omniORB4/CORBA.h>
#include <omnithread.h>

#include "CosEventChannelAdmin.hh"
#include "program.h"

namespace {

class Supplier : public POA_CosEventComm::PullSupplier {
 public:
  explicit Supplier(CORBA::ULong count) : count_(count), empty_(&mutex_) {}

  CORBA::Any* pull() override { throw CORBA::NO_IMPLEMENT(); }

  CORBA::Any* try_pull(CORBA::Boolean& has_event) override {
    omni_mutex_lock lock(mutex_);
    CORBA::Any* event = new CORBA::Any();
    has_event = next_ < count_;
    if (has_event) {
      *event <<= next_++;
    } else {
      empty_.signal();
    }
    return event;
  }

  void disconnect_pull_supplier() override { std::cout << "disconnected" << std::endl; }

  bool wait(unsigned long seconds) {
    unsigned long until_s, until_ns;
    omni_thread::get_time(&until_s, &until_ns, seconds);
    omni_mutex_lock lock(mutex_);
    while (next_ < count_) {
      if (!empty_.timedwait(until_s, until_ns)) return false;
    }
    return true;
  }

 private:
  CORBA::ULong count_;
  CORBA::ULong next_ = 0;
  omni_mutex mutex_;
  omni_condition empty_;
};

class Consumer : public POA_CosEventComm::PullConsumer {
 public:
  void disconnect_pull_consumer() override { std::cout << "disconnected" << std::endl; }
};

int supply(CosEventChannelAdmin::EventChannel_ptr channel, PortableServer::POA_ptr poa, CORBA::ULong count) {
  Supplier* supplier = new Supplier(count);
  PortableServer::ObjectId_var id = poa->activate_object(supplier);
  CosEventComm::PullSupplier_var reference = supplier->_this();
  CosEventChannelAdmin::SupplierAdmin_var admin = channel->for_suppliers();
  CosEventChannelAdmin::ProxyPullConsumer_var proxy = admin->obtain_pull_consumer();
  proxy->connect_pull_supplier(reference);
  bool complete = supplier->wait(60);
  proxy->disconnect_pull_consumer();
  return complete ? 0 : 1;
}

void print(const CORBA::Any& event) {
  CORBA::ULong value;
  if (event >>= value) {
    std::cout << "event " << value << std::endl;
  } else {
    std::cout << "strange event" << std::endl;
  }
}

int consume(CosEventChannelAdmin::EventChannel_ptr channel, PortableServer::POA_ptr poa, CORBA::ULong count,
            bool waits) {
  Consumer* consumer = new Consumer();
  PortableServer::ObjectId_var id = poa->activate_object(consumer);
  CosEventComm::PullConsumer_var reference = consumer->_this();
  CosEventChannelAdmin::ConsumerAdmin_var admin = channel->for_consumers();
  CosEventChannelAdmin::ProxyPullSupplier_var proxy = admin->obtain_pull_supplier();
  proxy->connect_pull_consumer(reference);
  std::cout << "ready" << std::endl;
  for (CORBA::ULong taken = 0; taken < count;) {
    CORBA::Boolean has_event = true;
    CORBA::Any_var event = waits ? proxy->pull() : proxy->try_pull(has_event);
    if (!has_event) {
      omni_thread::sleep(0, 1000000);
      continue;
    }
    print(event.in());
    ++taken;
  }
  proxy->disconnect_pull_supplier();
  try {
    proxy->pull();
    return 1;
  } catch (const CORBA::OBJECT_NOT_EXIST&) {
    return 0;
  }
}

int run(CORBA::ORB_ptr orb, const char* mode, const char* reference, CORBA::ULong count) {
  PortableServer::POA_var poa = serving_adapter(orb);
  CORBA::Object_var object = orb->string_to_object(reference);
  CosEventChannelAdmin::EventChannel_var channel = CosEventChannelAdmin::EventChannel::_narrow(object);
  if (CORBA::is_nil(channel)) throw std::runtime_error("the reference leads to no event channel");
  if (strcmp(mode, "supply") == 0) return supply(channel, poa, count);
  return consume(channel, poa, count, strcmp(mode, "pull") == 0);
}

int work(CORBA::ORB_ptr orb, int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: pull_clients pull|try_pull|supply CHANNEL COUNT" << std::endl;
    return 2;
  }
  return run(orb, argv[1], argv[2], std::strtoul(argv[3], nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) { return reported(work, argc, argv); }
