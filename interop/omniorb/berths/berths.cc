// Deckwatch::Berths by omniORB: prints its reference, and serves values of value types in Anys.
#include <cstdio>
#include <string>
#include "berths.hh"
#include "../program.h"

using namespace Deckwatch::Berths;

class PointValue : public virtual OBV_Deckwatch::Berths::Point, public virtual CORBA::DefaultValueRefCountBase {};
class PlaceValue : public virtual OBV_Deckwatch::Berths::Place, public virtual CORBA::DefaultValueRefCountBase {};
class PairValue : public virtual OBV_Deckwatch::Berths::Pair, public virtual CORBA::DefaultValueRefCountBase {};

template <class Base>
class Weighed : public virtual Base, public virtual CORBA::DefaultValueRefCountBase {
    CORBA::Long mass() { return this->kilos(); }
};
class CrateValue : public virtual Weighed<OBV_Deckwatch::Berths::Crate> {};
class ChestValue : public virtual Weighed<OBV_Deckwatch::Berths::Chest> {};

template <class V>
class Factory : public virtual CORBA::ValueFactoryBase {
    CORBA::ValueBase* create_for_unmarshal() { return new V; }
};

static void change(Place* place) {
    place->x(place->x() + 1);
    place->name((std::string(place->name()) + "!").c_str());
    if (place->next() && place->next() != place) change(place->next());
}

class MirrorServant : public POA_Deckwatch::Berths::Mirror {
public:
    CORBA::Any* changed(const CORBA::Any& data) {
        CORBA::Any_var result = new CORBA::Any;
        Place* place;
        Pair* pair;
        Label* label;
        Cargo_ptr cargo;
        if (data >>= place) {
            if (place) change(place);
            result.inout() <<= place;
        } else if (data >>= pair) {
            pair->left()->x(pair->left()->x() + 1);
            // What is shared has changed already.
            if (pair->left() != pair->right()) pair->right()->x(pair->right()->x() + 1);
            result.inout() <<= pair;
        } else if (data >>= label) {
            if (label) {
                std::string text = label->_value();
                label->_value((text + "!").c_str());
            }
            result.inout() <<= label;
        } else if (data >>= cargo) {
            CORBA::ValueBase* value = cargo->_to_value();
            Crate* crate = Crate::_downcast(value);
            crate->kilos(crate->kilos() + 1);
            Chest* chest = Chest::_downcast(value);
            if (chest) chest->mark((std::string(chest->mark()) + "!").c_str());
            result.inout() <<= cargo;
        } else {
            throw CORBA::BAD_PARAM(1, CORBA::COMPLETED_NO);
        }
        return result._retn();
    }

    CORBA::Any* cut() {
        CORBA::Any_var result = new CORBA::Any;
        PlaceValue* place = new PlaceValue;
        place->x(41);
        place->name("berth");
        place->next(0);
        Point* point = place;
        result.inout() <<= point;
        place->_remove_ref();
        return result._retn();
    }

    CORBA::Any* sealed() {
        CORBA::Any_var result = new CORBA::Any;
        ChestValue* chest = new ChestValue;
        chest->kilos(41);
        chest->mark("berth");
        Cargo_ptr cargo = chest;
        result.inout() <<= cargo;
        chest->_remove_ref();
        return result._retn();
    }
};

static int work(CORBA::ORB_ptr orb, int, char**) {
    orb->register_value_factory("IDL:Deckwatch/Berths/Point:1.0", new Factory<PointValue>);
    orb->register_value_factory("IDL:Deckwatch/Berths/Place:1.0", new Factory<PlaceValue>);
    orb->register_value_factory("IDL:Deckwatch/Berths/Pair:1.0", new Factory<PairValue>);
    orb->register_value_factory("IDL:Deckwatch/Berths/Crate:1.0", new Factory<CrateValue>);
    orb->register_value_factory("IDL:Deckwatch/Berths/Chest:1.0", new Factory<ChestValue>);
    PortableServer::Servant_var<MirrorServant> mirror = new MirrorServant;
    return serve(orb, mirror);
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
