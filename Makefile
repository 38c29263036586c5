# SPDX-License-Identifier: BSD-3-Clause
# The front door; Meson does the building. Variables:
#   BUILD=build        build folder       PREFIX=/usr/local  where to install
#   MESON_ARGS=        for meson setup    TEST_ARGS=         for meson test
#   FUZZ_SECONDS=30    per fuzz target    DEVICE=tcp         conformance only
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30

.PHONY: all build demo check bench install lint format fuzz status \
        conformance clean deps

all: build

deps:
	@tools/deps build

$(BUILD)/build.ninja: | deps
	meson setup $(BUILD) $(MESON_ARGS)

build: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD)

demo: build
	@tools/deps demo
	@demo/run $(BUILD)

check: build
	@tools/check $(BUILD) $(TEST_ARGS)

bench: build
	@tools/deps bench
	@bench/run $(BUILD)

install: deps
	@tools/install "$(BUILD)" "$(PREFIX)"

lint: build
	@tools/deps lint
	@tools/lint $(BUILD)

format:
	@tools/deps lint
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

fuzz:
	@tools/deps fuzz
	@tools/fuzz $(FUZZ_SECONDS)

status:
	@tools/status.py

conformance: build
	@tools/deps conformance
	@tests/conformance/mpich/run --build-dir $(BUILD)

clean:
	rm -rf $(BUILD)
