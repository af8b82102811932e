// What the omniORB programs here share: how each ends, and how one serves an object.
#pragma once

#include <cstdio>
#include <exception>

// Programs whose stubs are TAO's have its headers already.
#ifndef TAO_MAJOR_VERSION
#include <omniORB4/CORBA.h>
#endif

// Returns the status of `work`. An exception is printed and gives 1.
static int reported(int (*work)(CORBA::ORB_ptr, int, char**), int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        const int status = work(orb, argc, argv);
        orb->destroy();
        return status;
    } catch (const CORBA::SystemException& exception) {
        std::fprintf(stderr, "error: %s minor %#x\n", exception._name(), static_cast<unsigned>(exception.minor()));
    } catch (const CORBA::Exception& exception) {
        std::fprintf(stderr, "error: %s\n", exception._name());
    } catch (const std::exception& exception) {
        std::fprintf(stderr, "error: %s\n", exception.what());
    }
    return 1;
}

// Returns the root adapter, which serves from now on.
static inline PortableServer::POA_ptr serving_adapter(CORBA::ORB_ptr orb) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root->the_POAManager();
    manager->activate();
    return root._retn();
}

// Prints a reference to an object and serves it until the process is ended.
static inline int serve(CORBA::ORB_ptr orb, PortableServer::Servant servant) {
    PortableServer::POA_var root = serving_adapter(orb);
    PortableServer::ObjectId_var id = root->activate_object(servant);
    CORBA::Object_var reference = root->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    std::printf("%s\n", text.in());
    std::fflush(stdout);
    orb->run();
    return 0;
}
