// Deckwatch::Interop by omniORB. `types server` prints its reference and serves; `types client REFERENCE [wide] [latin]` calls every
// operation with every row of the tables, those of wide characters and of letters beyond ASCII where told, and ends with 1 where an
// answer is not the one expected. `utf8` behind either: what -ORBnativeCharCodeSet says. `only OPERATION`: that one, which may be one
// that omniORB has in a form of its own.
#include "client.h"
#include "server.h"

static int serve(CORBA::ORB_ptr orb, PortableServer::POA_ptr root) {
    PortableServer::Servant_var<Tables> tables = new Tables;
    PortableServer::ObjectId_var id = root->activate_object(tables);
    CORBA::Object_var reference = root->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(reference);
    std::printf("%s\n", text.in());
    std::fflush(stdout);
    orb->run();
    return 0;
}

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        bool wide = false, latin = false;
        std::string only;
        std::vector<std::string> words;
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            if (word == "utf8") values::utf8() = true;
            else if (word == "wide") wide = true;
            else if (word == "latin") latin = true;
            else if (word == "only" && i + 1 < argc) only = argv[++i];
            else words.push_back(word);
        }
        CORBA::Object_var object = orb->resolve_initial_references("DynAnyFactory");
        dynamic_factory() = DynamicAny::DynAnyFactory::_narrow(object);
        object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var manager = root->the_POAManager();
        manager->activate();
        if (words.size() == 1 && words[0] == "server") return serve(orb, root);
        if (words.size() != 2 || words[0] != "client") {
            std::fprintf(stderr, "usage: types server | types client REFERENCE [wide] [latin]\n");
            return 2;
        }
        object = orb->string_to_object(words[1].c_str());
        Types_var types = Types::_narrow(object);
        const int status = Caller(types, wide, latin, only).call_all(root);
        orb->destroy();
        return status;
    } catch (const CORBA::SystemException& exception) {
        std::fprintf(stderr, "%s minor %#x\n", exception._name(), exception.minor());
    } catch (const CORBA::Exception& exception) {
        std::fprintf(stderr, "%s\n", exception._name());
    }
    return 1;
}
