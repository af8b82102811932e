# Builds an adapter in C++: NAME, and optionally CPPFLAGS, LDLIBS and GENERATED (sources that a stub compiler makes, by
# a rule there), are set by its Makefile. The result is the program and carrier.toml in OUT.
OUT := $(or $(DECKWATCH_ADAPTER_OUT),../../target/adapters/$(NAME))
CPP := $(dir $(lastword $(MAKEFILE_LIST)))
C := $(CPP)../c/
FLAGS = -O2 -g -Wall -Wextra -Werror -I$(C) -I$(CPP) -isystem $(OUT) $(CPPFLAGS)
OBJECTS = $(OUT)/$(NAME).o $(GENERATED:.cc=.o) $(OUT)/deckwatch_carrier.o

.PHONY: all
all: $(OUT)/$(NAME) $(OUT)/carrier.toml

$(OUT)/$(NAME): $(OBJECTS)
	$(CXX) -o $@.new $(OBJECTS) $(LDLIBS) -pthread
	@mv $@.new $@

$(OUT)/$(NAME).o: $(NAME).cc $(C)deckwatch_carrier.h $(CPP)own_sockets.h $(GENERATED) Makefile $(CPP)adapter.mk | $(OUT)
	$(CXX) -std=c++17 $(FLAGS) -c -o $@ $<

$(OUT)/deckwatch_carrier.o: $(C)deckwatch_carrier.c $(C)deckwatch_carrier.h | $(OUT)
	$(CC) -std=c11 $(FLAGS) -c -o $@ $<

# Generated code is not ours to mend: no warnings are asked for.
$(GENERATED:.cc=.o): %.o: %.cc
	$(CXX) -std=c++17 $(FLAGS) -w -c -o $@ $<

$(OUT)/carrier.toml: carrier.toml | $(OUT)
	cp $< $@

$(OUT):
	mkdir -p $@
