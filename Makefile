# SPDX-License-Identifier: BSD-3-Clause
# The front door; Meson does the building. Variables:
#   BUILD=build        build folder       PREFIX=/usr/local  where to install
#   MESON_ARGS=        for meson setup    TEST_ARGS=         for meson test
#   SOAK_LAUNCHES=10000, SOAK_SECONDS=36000, SOAK_SEED=1     for soak
#   SOAK_SANITIZED=     another build, with sanitizers, whose daemons soak has
#                       for an hour, too, and those whose words it changes
#   FUZZ_SECONDS=30    per fuzz target    DEVICE=tcp         conformance only:
#                                         also scivia and gateways, see
#                                         doc/conformance.md
#   NAME=              applications only: which, e.g. NAME="fftw3 hpcc"
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
SOAK_LAUNCHES ?= 10000
SOAK_SECONDS ?= 36000
SOAK_SEED ?= 1

.PHONY: all build demo check bench bench-papers bench-registration scale install \
        lint format fuzz soak conformance applications clean deps

all: build

# All that the goals need is installed in one go.
PURPOSES = $(filter demo check bench lint fuzz conformance \
    applications,$(MAKECMDGOALS))
deps:
	@tools/deps build $(PURPOSES)

$(BUILD)/build.ninja: | deps
	meson setup $(BUILD) $(MESON_ARGS)

build: deps $(BUILD)/build.ninja
	@ninja -C $(BUILD)

demo: build
	@demo/run $(BUILD)

check: build
	@tools/check $(BUILD) $(TEST_ARGS)

bench: build
	@bench/run $(BUILD)

bench-papers: build
	@bench/papers/run $(BUILD)

scale: build
	@bench/scale/run $(BUILD) --svg $(BUILD)/scale.svg
	@bench/scale/memory $(BUILD)

bench-registration: build
	@$(BUILD)/bench/bench-registration etc/personalities/giganet-clan.yaml

install: deps
	@tools/install "$(BUILD)" "$(PREFIX)"

lint: build
	@tools/lint $(BUILD)

format:
	@tools/deps lint
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

fuzz: deps
	@tools/fuzz $(FUZZ_SECONDS)

# What 'make check' has a small share of: as root, with several users.
SOAK_PROGRAMS = $(abspath $(addprefix $(BUILD)/,chempid/chempirun \
        chempid/chempid chempid/chempictl tests/fault/fault-rank))
# The same with sanitizers, if there is such a build.
SOAK_CHECKED = $(patsubst $(abspath $(BUILD))/%,$(abspath \
        $(or $(SOAK_SANITIZED),$(BUILD)))/%,$(SOAK_PROGRAMS))
soak: build
	@tests/fault/numbers.py $(SOAK_PROGRAMS) --jobs 1000 --together 100 \
	    --output 1024 --daemons 256
	@tests/fault/chaos.py $(SOAK_PROGRAMS) --launches $(SOAK_LAUNCHES) \
	    --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED)
	@test -z "$(SOAK_SANITIZED)" || tests/fault/chaos.py \
	    $(SOAK_CHECKED) --sanitized \
	    --launches $(SOAK_LAUNCHES) --seconds 3600 --seed $(SOAK_SEED)
	@tests/security/mutate.py $(SOAK_CHECKED) --seconds 3600 \
	    --seed $(SOAK_SEED)
	@WINRANDOM_SEED=$(SOAK_SEED) WINRANDOM_TIMES=200 tests/mpi/run \
	    --build-dir $(BUILD) --slow 20 --on shm,tcp,mixed,scivia,gate \
	    random_programs

conformance: build
	@tests/conformance/mpich/run --build-dir $(BUILD)

applications: build
	@tests/applications/run --build-dir $(BUILD) $(NAME)

clean:
	rm -rf $(BUILD)
