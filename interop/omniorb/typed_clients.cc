// Clients of a typed event channel for the interface Ship::Nav.
//
//   typed_clients push CHANNEL COUNT     calls `moved` COUNT times, then `renamed`
//   typed_clients consume CHANNEL COUNT  is called; prints each call and ends after `renamed`
//   typed_clients pull CHANNEL COUNT     pulls COUNT calls of `moved` and one of `renamed`, and prints them

#include <cstdlib>
#include <cstring>
#include <iostream>

#include <omniORB4/CORBA.h>
#include <omnithread.h>

#include "CosTypedEventChannelAdmin.hh"
#include "ship_events.hh"
#include "program.h"

namespace {

const char* const kNav = "IDL:Ship/Nav:1.0";

void print(const Ship::Position& to, CORBA::ULong knots) {
  std::cout << "moved " << to.latitude_deg << " " << to.longitude_deg << " " << knots << std::endl;
}

class Nav : public POA_Ship::Nav {
 public:
  Nav() : changed_(&mutex_) {}

  void moved(const Ship::Position& to, CORBA::ULong knots) override { print(to, knots); }

  void renamed(const char* name) override {
    std::cout << "renamed " << name << std::endl;
    omni_mutex_lock lock(mutex_);
    is_done_ = true;
    changed_.signal();
  }

  bool wait(unsigned long seconds) {
    unsigned long until_s, until_ns;
    omni_thread::get_time(&until_s, &until_ns, seconds);
    omni_mutex_lock lock(mutex_);
    while (!is_done_) {
      if (!changed_.timedwait(until_s, until_ns)) return false;
    }
    return true;
  }

 private:
  bool is_done_ = false;
  omni_mutex mutex_;
  omni_condition changed_;
};

class Consumer : public POA_CosTypedEventComm::TypedPushConsumer {
 public:
  explicit Consumer(Nav* nav) : nav_(nav) {}

  void push(const CORBA::Any&) override { throw CORBA::NO_IMPLEMENT(); }
  void disconnect_push_consumer() override { std::cout << "disconnected" << std::endl; }
  CORBA::Object_ptr get_typed_consumer() override { return nav_->_this(); }

 private:
  Nav* nav_;
};

int push(CosTypedEventChannelAdmin::TypedEventChannel_ptr channel, CORBA::ULong count) {
  CosTypedEventChannelAdmin::TypedSupplierAdmin_var admin = channel->for_suppliers();
  CosTypedEventChannelAdmin::TypedProxyPushConsumer_var proxy = admin->obtain_typed_push_consumer(kNav);
  proxy->connect_push_supplier(CosEventComm::PushSupplier::_nil());
  CORBA::Object_var object = proxy->get_typed_consumer();
  Ship::Nav_var nav = Ship::Nav::_narrow(object);
  if (CORBA::is_nil(nav)) throw std::runtime_error("the typed consumer is no Ship::Nav");
  Ship::Position to = {54.5, 10.25};
  for (CORBA::ULong knots = 0; knots < count; ++knots) nav->moved(to, knots);
  nav->renamed("Kiel");
  proxy->disconnect_push_consumer();
  try {
    admin->obtain_typed_push_consumer("IDL:Ship/Sonar:1.0");
    return 1;
  } catch (const CosTypedEventChannelAdmin::InterfaceNotSupported&) {
    return 0;
  }
}

int consume(CosTypedEventChannelAdmin::TypedEventChannel_ptr channel, PortableServer::POA_ptr poa) {
  Nav* nav = new Nav();
  PortableServer::ObjectId_var nav_id = poa->activate_object(nav);
  Consumer* consumer = new Consumer(nav);
  PortableServer::ObjectId_var id = poa->activate_object(consumer);
  CosEventComm::PushConsumer_var reference = consumer->_this();
  CosTypedEventChannelAdmin::TypedConsumerAdmin_var admin = channel->for_consumers();
  CosEventChannelAdmin::ProxyPushSupplier_var proxy = admin->obtain_typed_push_supplier(kNav);
  proxy->connect_push_consumer(reference);
  std::cout << "ready" << std::endl;
  bool complete = nav->wait(60);
  proxy->disconnect_push_supplier();
  return complete ? 0 : 1;
}

int pull(CosTypedEventChannelAdmin::TypedEventChannel_ptr channel, CORBA::ULong count) {
  CosTypedEventChannelAdmin::TypedConsumerAdmin_var admin = channel->for_consumers();
  CosTypedEventChannelAdmin::TypedProxyPullSupplier_var proxy = admin->obtain_typed_pull_supplier(kNav);
  proxy->connect_pull_consumer(CosEventComm::PullConsumer::_nil());
  CORBA::Object_var object = proxy->get_typed_supplier();
  Ship::PullNav_var nav = Ship::PullNav::_narrow(object);
  if (CORBA::is_nil(nav)) throw std::runtime_error("the typed supplier is no Ship::PullNav");
  std::cout << "ready" << std::endl;
  Ship::Position to;
  CORBA::ULong knots;
  CORBA::String_var name;
  for (CORBA::ULong taken = 0; taken < count; ++taken) {
    nav->moved(to, knots);
    print(to, knots);
  }
  nav->renamed(name.out());
  std::cout << "renamed " << name.in() << std::endl;
  bool is_empty = !nav->try_moved(to, knots) && !nav->try_renamed(name.out());
  proxy->disconnect_pull_supplier();
  return is_empty ? 0 : 1;
}

int run(CORBA::ORB_ptr orb, const char* mode, const char* reference, CORBA::ULong count) {
  PortableServer::POA_var poa = serving_adapter(orb);
  CORBA::Object_var object = orb->string_to_object(reference);
  CosTypedEventChannelAdmin::TypedEventChannel_var channel =
      CosTypedEventChannelAdmin::TypedEventChannel::_narrow(object);
  if (CORBA::is_nil(channel)) throw std::runtime_error("the reference leads to no typed event channel");
  if (strcmp(mode, "push") == 0) return push(channel, count);
  if (strcmp(mode, "consume") == 0) return consume(channel, poa);
  return pull(channel, count);
}

int work(CORBA::ORB_ptr orb, int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: typed_clients push|consume|pull CHANNEL COUNT" << std::endl;
    return 2;
  }
  return run(orb, argv[1], argv[2], std::strtoul(argv[3], nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) { return reported(work, argc, argv); }
