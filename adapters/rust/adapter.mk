# Builds an adapter in Rust: NAME is set by its Makefile. The result is the program and carrier.toml in OUT.
OUT := $(or $(DECKWATCH_ADAPTER_OUT),../../target/adapters/$(NAME))
RUST := $(dir $(lastword $(MAKEFILE_LIST)))
BUILD := $(or $(CARGO_TARGET_DIR),../../target)/adapters-build/$(NAME)

# Cargo finds out itself what has changed.
.PHONY: all
all:
	@mkdir -p $(OUT)
	cargo build --locked --release --target-dir $(BUILD)
	cp $(BUILD)/release/$(NAME) $(OUT)/$(NAME).new
	@mv $(OUT)/$(NAME).new $(OUT)/$(NAME)
	cp carrier.toml $(OUT)/carrier.toml
