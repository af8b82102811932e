// An omniORB consumer of NAV events: finds an event channel by its name, takes COUNT events, prints each one's
// sequence number, heading and source, and disconnects.
//
//   nav_consumer -ORBInitRef NameService=corbaloc::HOST:PORT/NameService NAME COUNT

#include <cstdlib>
#include <cstring>
#include <iostream>

#include <omniORB4/CORBA.h>
#include <omnithread.h>

#include "CosEventChannelAdmin.hh"
#include "nav.hh"
#include "program.h"

namespace {

// A label is padded with NULs.
std::string label(const Nav::Label text) {
  const char* begin = reinterpret_cast<const char*>(text);
  return std::string(begin, strnlen(begin, sizeof(Nav::Label)));
}

class NavConsumer : public POA_CosEventComm::PushConsumer {
 public:
  explicit NavConsumer(unsigned long wanted) : wanted_(wanted), arrived_(&mutex_) {}

  void push(const CORBA::Any& event) override {
    const Nav::NavData* data = nullptr;
    omni_mutex_lock lock(mutex_);
    if (!(event >>= data)) {
      std::cout << "strange event" << std::endl;
      ++strange_;
    } else {
      std::cout << "event " << data->sequence_number << " heading " << data->attitude.heading_deg << " source "
                << label(data->source) << std::endl;
      ++taken_;
    }
    arrived_.signal();
  }

  void disconnect_push_consumer() override { std::cout << "disconnected" << std::endl; }

  bool wait(unsigned long seconds) {
    unsigned long until_s, until_ns;
    omni_thread::get_time(&until_s, &until_ns, seconds);
    omni_mutex_lock lock(mutex_);
    while (taken_ + strange_ < wanted_) {
      if (!arrived_.timedwait(until_s, until_ns)) return false;
    }
    return strange_ == 0;
  }

 private:
  unsigned long wanted_;
  unsigned long taken_ = 0;
  unsigned long strange_ = 0;
  omni_mutex mutex_;
  omni_condition arrived_;
};

int consume(CORBA::ORB_ptr orb, const char* name, unsigned long count) {
  PortableServer::POA_var poa = serving_adapter(orb);

  CORBA::Object_var object = orb->resolve_initial_references("NameService");
  CosNaming::NamingContext_var names = CosNaming::NamingContext::_narrow(object);
  if (CORBA::is_nil(names)) throw std::runtime_error("NameService is no naming context");
  CosNaming::Name path;
  path.length(1);
  path[0].id = name;
  object = names->resolve(path);
  CosEventChannelAdmin::EventChannel_var channel = CosEventChannelAdmin::EventChannel::_narrow(object);
  if (CORBA::is_nil(channel)) throw std::runtime_error("the name leads to no event channel");

  NavConsumer* consumer = new NavConsumer(count);
  PortableServer::ObjectId_var id = poa->activate_object(consumer);
  CosEventComm::PushConsumer_var reference = consumer->_this();
  CosEventChannelAdmin::ConsumerAdmin_var admin = channel->for_consumers();
  CosEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_push_supplier();
  proxy->connect_push_consumer(reference);
  std::cout << "ready" << std::endl;
  bool complete = consumer->wait(60);
  proxy->disconnect_push_supplier();
  return complete ? 0 : 1;
}

int work(CORBA::ORB_ptr orb, int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: nav_consumer -ORBInitRef NameService=... NAME COUNT" << std::endl;
    return 2;
  }
  return consume(orb, argv[1], std::strtoul(argv[2], nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) { return reported(work, argc, argv); }
