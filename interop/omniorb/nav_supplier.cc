// An omniORB supplier of NAV events: finds an event channel by its name, pushes COUNT events, and disconnects.
//
//   nav_supplier -ORBInitRef NameService=corbaloc::HOST:PORT/NameService NAME COUNT

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include <omniORB4/CORBA.h>

#include "CosEventChannelAdmin.hh"
#include "nav.hh"
#include "program.h"

namespace {

int supply(CORBA::ORB_ptr orb, const char* name, unsigned long count) {
  CORBA::Object_var object = orb->resolve_initial_references("NameService");
  CosNaming::NamingContext_var names = CosNaming::NamingContext::_narrow(object);
  if (CORBA::is_nil(names)) throw std::runtime_error("NameService is no naming context");
  CosNaming::Name path;
  path.length(1);
  path[0].id = name;
  object = names->resolve(path);
  CosEventChannelAdmin::EventChannel_var channel = CosEventChannelAdmin::EventChannel::_narrow(object);
  if (CORBA::is_nil(channel)) throw std::runtime_error("the name leads to no event channel");

  CosEventChannelAdmin::SupplierAdmin_var admin = channel->for_suppliers();
  CosEventChannelAdmin::ProxyPushConsumer_var proxy = admin->obtain_push_consumer();
  proxy->connect_push_supplier(CosEventComm::PushSupplier::_nil());
  for (unsigned long number = 0; number < count; ++number) {
    Nav::NavData data;
    std::memset(&data, 0, sizeof data);
    data.sequence_number = number;
    data.operating_mode = Nav::navigating;
    data.attitude.heading_deg = 271.5;
    std::memcpy(data.source, "RTS", 3);
    CORBA::Any event;
    event <<= data;
    proxy->push(event);
  }
  proxy->disconnect_push_consumer();
  return 0;
}

int work(CORBA::ORB_ptr orb, int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: nav_supplier -ORBInitRef NameService=... NAME COUNT" << std::endl;
    return 2;
  }
  return supply(orb, argv[1], std::strtoul(argv[2], nullptr, 10));
}

}  // namespace

int main(int argc, char** argv) { return reported(work, argc, argv); }
