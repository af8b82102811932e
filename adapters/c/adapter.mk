# Builds an adapter in C: NAME, and optionally SOURCES, PACKAGES (of pkg-config), CFLAGS and LDLIBS, are set by its
# Makefile. The result is the program and carrier.toml in OUT.
OUT := $(or $(DECKWATCH_ADAPTER_OUT),../../target/adapters/$(NAME))
SOURCES ?= $(NAME).c
C := $(dir $(lastword $(MAKEFILE_LIST)))
FLAGS = -std=c11 -O2 -g -Wall -Wextra -Werror -I$(C) $(CFLAGS) $(if $(PACKAGES),$(shell pkg-config --cflags $(PACKAGES)))
LIBS = $(if $(PACKAGES),$(shell pkg-config --libs $(PACKAGES))) $(LDLIBS) -pthread

.PHONY: all
all: $(OUT)/$(NAME) $(OUT)/carrier.toml

$(OUT)/$(NAME): $(SOURCES) $(C)deckwatch_carrier.c $(C)deckwatch_carrier.h $(HEADERS) Makefile $(C)adapter.mk
	@mkdir -p $(OUT)
	$(CC) $(FLAGS) -o $@.new $(SOURCES) $(C)deckwatch_carrier.c $(LIBS)
	@mv $@.new $@

$(OUT)/carrier.toml: carrier.toml
	@mkdir -p $(OUT)
	cp $< $@
