// Deckwatch::Values by omniORB: without an argument a server that prints its reference, with one a client of it.
#include <cstdio>
#include <cstring>
#include <string>
#include "values.hh"
#include "../program.h"

using namespace Deckwatch::Values;

template <class Base>
class Held : public virtual Base, public virtual CORBA::DefaultValueRefCountBase {};

typedef Held<OBV_Deckwatch::Values::Point> PointHeld;
typedef Held<OBV_Deckwatch::Values::Place> PlaceHeld;
typedef Held<OBV_Deckwatch::Values::Berth> BerthHeld;
typedef Held<OBV_Deckwatch::Values::Node> NodeHeld;

class CircleHeld : public virtual Held<OBV_Deckwatch::Values::Circle> {
    CORBA::Double area() { return radius() * radius() * 3; }
};

class AccountHeld : public virtual Held<OBV_Deckwatch::Values::Account> {
public:
    CORBA::Long total() { return balance(); }
    CORBA::Long credit(CORBA::Long amount) { return balance() + amount; }
    void set(CORBA::Long amount) { balance(amount); }
};

template <class V>
class Factory : public virtual CORBA::ValueFactoryBase {
    CORBA::ValueBase* create_for_unmarshal() { return new V; }
};

// What a servant returns is the caller's.
template <class V>
static V* again(V* value) {
    if (value) value->_add_ref();
    return value;
}

class MirrorServant : public POA_Deckwatch::Values::Mirror {
public:
    Point* echo_point(Point* value) { return again(value); }
    Node* echo_list(Node* value) { return again(value); }
    CORBA::Boolean same(Point* one, Point* other, Point_out first, Point_out second) {
        first = again(one);
        second = again(one);
        return one && one == other;
    }
    Pair* echo_pair(const Pair& value) { return new Pair(value); }
    Points* echo_points(const Points& value) { return new Points(value); }
    Choice* echo_choice(const Choice& value) { return new Choice(value); }
    CORBA::ValueBase* echo_base(CORBA::ValueBase* value) { return again(value); }
    Shape* echo_shape(Shape* value) { return again(value); }
    Account* echo_account(Account* value) {
        AccountHeld* changed = new AccountHeld;
        changed->set(value->credit(1));
        return changed;
    }
    Names* echo_names(Names* value) { return again(value); }
    Label* echo_label(Label* value) { return again(value); }
    CORBA::Any* anything(const CORBA::Any& value) { return new CORBA::Any(value); }
    void lose(Point* last) {
        Lost lost;
        lost.last = again(last);
        lost.before = again(last);
        throw lost;
    }
    void change(Place*& value) {
        value->x(value->x() + 1);
        value->name((std::string(value->name()) + "!").c_str());
    }
};

static int wrong = 0;

static void expect(const char* what, bool is_right) {
    if (is_right) return;
    std::printf("wrong: %s\n", what);
    wrong++;
}

static int call(CORBA::ORB_ptr orb, const char* reference) {
    CORBA::Object_var object = orb->string_to_object(reference);
    Mirror_var mirror = Mirror::_unchecked_narrow(object);
    PointHeld* point = new PointHeld;
    point->x(3);
    point->y(4);
    Point_var back = mirror->echo_point(point);
    expect("a point", back.in() && back->x() == 3 && back->y() == 4);
    back = mirror->echo_point(0);
    expect("null", back.in() == 0);
    Point_var first, second;
    expect("one value", mirror->same(point, point, first.out(), second.out()));
    expect("one result", first.in() && first.in() == second.in());
    PointHeld* other = new PointHeld;
    other->x(3);
    other->y(4);
    expect("two values", !mirror->same(point, other, first.out(), second.out()));
    NodeHeld* list = 0;
    for (CORBA::Long number = 0; number < 100; number++) {
        NodeHeld* node = new NodeHeld;
        node->number(number);
        node->next(list);
        list = node;
    }
    Node_var nodes = mirror->echo_list(list);
    CORBA::Long count = 0;
    for (Node* node = nodes.in(); node; node = node->next()) count++;
    expect("a list", count == 100 && nodes->number() == 99);
    Pair pair;
    pair.left = again<Point>(point);
    pair.right = again<Point>(point);
    Pair_var pairs = mirror->echo_pair(pair);
    expect("a pair", pairs->left.in() == pairs->right.in() && pairs->left->y() == 4);
    PlaceHeld *far = new PlaceHeld, *near = new PlaceHeld;
    far->x(2); far->y(-2); far->name("far"); far->next(0);
    near->x(1); near->y(-1); near->name(std::string(20000, 'n').c_str()); near->next(far);
    Place_var place = again<Place>(near);
    mirror->change(place.inout());
    expect("places", place->x() == 2 && std::strlen(place->name()) == 20001 && std::string(place->next()->name()) == "far");
    back = mirror->echo_point(near);
    expect("a place as a point", back->x() == 1 && !Place::_downcast(back));
    CircleHeld* circle = new CircleHeld;
    circle->radius(2);
    Shape_var shape = mirror->echo_shape(circle);
    expect("a shape", shape.in() && shape->area() == 12);
    CORBA::ValueBase_var base = mirror->echo_base(circle);
    expect("a base", Circle::_downcast(base.in()) != 0);
    AccountHeld* account = new AccountHeld;
    account->set(41);
    Account_var more = mirror->echo_account(account);
    expect("an account", more->total() == 42);
    Label* label = new Label("ahoy");
    Label_var labels = mirror->echo_label(label);
    expect("a label", std::string(labels->_value()) == "ahoy");
    try {
        mirror->lose(point);
        expect("lost", false);
    } catch (const Lost& lost) {
        expect("what is lost", lost.last.in() && lost.last.in() == lost.before.in() && lost.last->x() == 3);
    }
    CORBA::Any any;
    any <<= again<Place>(far);
    CORBA::Any_var anything = mirror->anything(any);
    Place* in_any;
    expect("an any", (anything.in() >>= in_any) && in_any && std::string(in_any->name()) == "far");
    std::printf("%s\n", wrong ? "wrong" : "all right");
    return wrong;
}

static int work(CORBA::ORB_ptr orb, int argc, char** argv) {
    orb->register_value_factory("IDL:Deckwatch/Values/Point:1.0", new Factory<PointHeld>);
    orb->register_value_factory("IDL:Deckwatch/Values/Place:1.0", new Factory<PlaceHeld>);
    orb->register_value_factory("IDL:Deckwatch/Values/Berth:1.0", new Factory<BerthHeld>);
    orb->register_value_factory("IDL:Deckwatch/Values/Node:1.0", new Factory<NodeHeld>);
    orb->register_value_factory("IDL:Deckwatch/Values/Circle:1.0", new Factory<CircleHeld>);
    orb->register_value_factory("IDL:Deckwatch/Values/Account:1.0", new Factory<AccountHeld>);
    if (argc > 1) return call(orb, argv[1]);
    PortableServer::Servant_var<MirrorServant> mirror = new MirrorServant;
    return serve(orb, mirror);
}

int main(int argc, char** argv) { return reported(work, argc, argv); }
