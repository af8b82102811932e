// Deckwatch::Interop by omniORB. `types server` prints its reference and serves; `types client REFERENCE [wide] [latin]` calls every
// operation with every row of the tables, those of wide characters and of letters beyond ASCII where told, and ends with 1 where an
// answer is not the one expected. `utf8` behind either: what -ORBnativeCharCodeSet says. `only OPERATION`: that one, which may be one
// that omniORB has in a form of its own.
#include "client.h"
#include "server.h"
#include "../program.h"

static int work(CORBA::ORB_ptr orb, int argc, char** argv) {
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
    if (words.size() == 1 && words[0] == "server") {
        PortableServer::Servant_var<Tables> tables = new Tables;
        return serve(orb, tables);
    }
    if (words.size() != 2 || words[0] != "client") {
        std::fprintf(stderr, "usage: types server | types client REFERENCE [wide] [latin]\n");
        return 2;
    }
    object = orb->string_to_object(words[1].c_str());
    Types_var types = Types::_narrow(object);
    PortableServer::POA_var root = serving_adapter(orb);
    return Caller(types, wide, latin, only).call_all(root);
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
