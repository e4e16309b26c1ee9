# A thin entry point over CMake: what it needs of the system, and what a person types. CMakeLists.txt and
# CMakePresets.json know everything else.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help deps deps-web deps-demo deps-package deps-check deps-test deps-soak in-place cuda-tools api-tools web-tools python-tools deps-fuzz deps-aarch64 deps-format configure configure-check configure-tests build web check test nightly bare-root bare-root-trixie soak package demo asan tsan aarch64 fuzz bench format clean

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 3600
SOAK_EVERY ?= 20
CTEST := ctest --output-on-failure --parallel $(JOBS)

# What the project needs, by its names in Debian 12: to build the programs, the page, to try them, to test everything.
BUILD_PACKAGES := g++ ccache cmake ninja-build pkg-config libboost-dev libssl-dev nlohmann-json3-dev \
  libcli11-dev libfmt-dev libspdlog-dev libsqlite3-dev prometheus-cpp-dev
WEB_PACKAGES := emscripten
DEMO_PACKAGES := python3 wordnet-base
PACKAGING_PACKAGES := dpkg-dev file
CHECK_PACKAGES := libgtest-dev libgmock-dev libcpp-httplib-dev openssl sqlite3 tinyproxy-bin
TEST_PACKAGES := $(CHECK_PACKAGES) $(WEB_PACKAGES) $(DEMO_PACKAGES) $(PACKAGING_PACKAGES) libbenchmark-dev \
  ca-certificates chromium curl node-typescript python3-dev python3-numpy python3-venv
SOAK_PACKAGES := libfuse2 python3 python3-fusepy
FUZZ_PACKAGES := clang-14 libclang-rt-14-dev llvm-14
AARCH64_PACKAGES := g++-aarch64-linux-gnu googletest qemu-user
FORMAT_PACKAGES := clang-format-14

BUILD_FOLDERS := build build-python build-separate build-separate-python build-asan build-tsan build-aarch64 build-fuzz

help: ## explain the targets (what make does by itself)
	@echo 'Targets:'
	awk -F ':[^#]*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-17s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	echo
	echo 'Variables: JOBS=$(JOBS) (parallel jobs), FUZZ_SECONDS=$(FUZZ_SECONDS) (for each fuzz target),'
	echo '  SOAK_SECONDS=$(SOAK_SECONDS), SOAK_EVERY=$(SOAK_EVERY).'
	echo 'On Debian 12, build, test and demo install the packages they lack; that needs root.'

# Installs those of the packages in $(1) that are missing. Fast and silent when none is: one dpkg-query.
define install
	@if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	  echo 'This is not Debian, so nothing is installed for you. Needed is what these packages hold:' >&2
	  echo '  $(1)' >&2
	  exit 0
	fi
	missing=$$(comm -23 <(printf '%s\n' $(1) | sort) \
	  <(dpkg-query -W -f '$${Package} $${db:Status-Status}\n' $(1) 2>/dev/null |
	    sed -n 's/ installed$$//p' | sort -u))
	[ -n "$$missing" ] || exit 0
	if [ "$$(id -u)" != 0 ]; then
	  echo "Missing packages: "$$missing >&2
	  echo "Installing them needs root; run this once: sudo make $@" >&2
	  exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt=(apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300)
	log=$$(mktemp)
	trap 'rm -f "$$log"' EXIT
	# Package lists may be absent (a new machine) or name versions that are gone (an old one).
	try() {
	  "$${apt[@]}" --simulate install $$missing >/dev/null 2>&1 &&
	  "$${apt[@]}" install $$missing ||
	  { "$${apt[@]}" update && "$${apt[@]}" install $$missing; }
	}
	echo "Installing with apt-get, which may take a few minutes: "$$missing
	try >"$$log" 2>&1 </dev/null || { cat "$$log" >&2; echo 'Installing the packages failed; see above.' >&2; exit 1; }
endef

deps: ## install the packages that the build of the programs needs
	$(call install,$(BUILD_PACKAGES))

deps-web: deps
	$(call install,$(WEB_PACKAGES))

deps-demo: deps
	$(call install,$(DEMO_PACKAGES))

deps-package: deps
	$(call install,$(PACKAGING_PACKAGES))

deps-check: deps
	$(call install,$(CHECK_PACKAGES))

deps-test: deps ## install the packages that the tests need
	$(call install,$(TEST_PACKAGES))

deps-soak: deps-test
	$(call install,$(SOAK_PACKAGES))

deps-fuzz: deps-test
	$(call install,$(FUZZ_PACKAGES))

deps-aarch64: deps-test
	$(call install,$(AARCH64_PACKAGES))

deps-format:
	$(call install,$(FORMAT_PACKAGES))

# Where CUDA's compiler is installed without its disassembler, the latter, for the test that looks into the machine code.
cuda-tools: deps-test in-place
	@nvcc=$$(PATH=$$PATH:/usr/local/cuda/bin command -v nvcc) || exit 0
	if [ -x "$$(dirname "$$nvcc")/cuobjdump" ] ||
	  [ -x build/cuda-tools/nvidia/cu13/bin/nvdisasm ]; then exit 0; fi
	python3 -m pip install -q --root-user-action=ignore --target build/cuda-tools \
	  'nvidia-cuda-cuobjdump==13.*' 'nvidia-cuda-nvdisasm==13.*' ||
	  echo 'No cuobjdump could be installed: the test of the CUDA machine code is skipped.' >&2

# Tools that compare the server with its own description.
api-tools: deps-test in-place
	@[ -e build/api-tools/complete ] && exit 0
	python3 -m venv --clear build/api-tools && build/api-tools/bin/pip install -q 'schemathesis==4.*' &&
	  touch build/api-tools/complete ||
	  echo 'schemathesis could not be installed: the test of /openapi.json is skipped.' >&2

# Tools that drive Debian's browser over the page that the server shows.
web-tools: deps-test in-place
	@[ -e build/web-tools/complete ] && exit 0
	python3 -m venv --clear build/web-tools && build/web-tools/bin/pip install -q 'playwright==1.*' \
	  'axe-playwright-python==0.1.*' && touch build/web-tools/complete ||
	  echo 'Playwright could not be installed: the test of the page is skipped.' >&2

# Tools that build, check and test the Python package.
python-tools: deps-test in-place
	@[ -e build/python-tools/complete ] && exit 0
	python3 -m venv --clear build/python-tools && build/python-tools/bin/pip install -q 'build==1.*' 'mypy==2.*' \
	  'nanobind==3.*' 'pytest==9.*' 'scikit-build-core==1.*' 'tqdm==4.*' && touch build/python-tools/complete ||
	  echo 'What tests the Python package could not be installed: its test is skipped.' >&2

# What was built belongs to where the tree lay: a tree that was moved or copied builds again, out of the compiler's
# cache.
in-place:
	@for folder in $(BUILD_FOLDERS); do
	  home=$$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' $$folder/CMakeCache.txt 2>/dev/null) || continue
	  [ -n "$$home" ] && ! [ "$$home" -ef . ] || continue
	  echo "$$folder was built for $$home: building anew"
	  rm -rf "$$folder"
	done

# Ninja runs CMake again by itself when a CMake file changes.
configure: deps in-place
	@[ -e build/build.ninja ] || cmake --preset release -DBLINDFUSE_TESTS=OFF -DBLINDFUSE_BENCH=OFF

configure-check: deps-check in-place
	@grep -qsx 'BLINDFUSE_TESTS:BOOL=ON' build/CMakeCache.txt && [ -e build/build.ninja ] ||
	  cmake --preset release -DBLINDFUSE_TESTS=ON -DBLINDFUSE_BENCH=OFF

configure-tests: deps-test in-place
	@for option in TESTS BENCH WEB; do
	  grep -qsx "BLINDFUSE_$$option:BOOL=ON" build/CMakeCache.txt && [ -e build/build.ninja ] || missing=1
	done
	[ -z "$${missing:-}" ] || cmake --preset release -DBLINDFUSE_TESTS=ON -DBLINDFUSE_BENCH=ON -DBLINDFUSE_WEB=ON

build: configure ## build the programs, optimized, into build/bin, and the shared client library
	@cmake --build build --parallel $(JOBS) --target blindfuse blindfuse-client blindfuse_client_shared

web: deps-web configure ## build the programs with the page for browsers, which takes Emscripten
	@grep -q '^BLINDFUSE_EMXX:FILEPATH=/' build/CMakeCache.txt || cmake --preset release -DBLINDFUSE_WEB=ON
	cmake --build build --parallel $(JOBS) --target blindfuse blindfuse-client blindfuse_client_shared blindfuse_web

check: configure-check ## build and run the tests in C++, without sanitizers: for daily work
	@tests/run/check.sh $(JOBS)

test: cuda-tools api-tools web-tools python-tools configure-tests ## build everything and run every test, those of what others send also with AddressSanitizer
	@tests/run/gate.sh $(JOBS)

nightly: deps-soak deps-fuzz deps-aarch64 ## run what `make test` has no time for, in hours
	@tests/run/nightly.sh $(JOBS)

bare-root: ## run demo and test on a fresh Debian 12 made by debootstrap, in build/bare-root; needs root
	@tests/bare_root/run.sh bookworm $(JOBS) demo test

bare-root-trixie: ## run demo and check on a fresh Debian 13
	@tests/bare_root/run.sh trixie $(JOBS) demo check

soak: deps-soak configure-tests ## serve good and hostile clients for SOAK_SECONDS, with a new epoch every SOAK_EVERY seconds
	@cmake --build build --parallel $(JOBS) --target blindfuse blindfuse-client blindfuse-bench-load
	tests/soak/soak.py --seconds $(SOAK_SECONDS) --every $(SOAK_EVERY)

package: web deps-package ## the Debian package of what was built, into build
	@cpack --config build/CPackConfig.cmake -B build

demo: build deps-demo ## serve a dictionary on this machine and privately look up a few words
	@bench/demo.sh

asan: ## run every test under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan
tsan: ## run every test under ThreadSanitizer, in build-tsan
aarch64: deps-aarch64 ## run the engine's tests for 64-bit Arm, on an emulator
asan tsan: deps-test
asan tsan aarch64 fuzz: in-place
asan tsan aarch64:
	@cmake --preset $@
	cmake --build --preset $@ --parallel $(JOBS)
	$(CTEST) --preset $@

fuzz: deps-fuzz ## run every fuzz target for FUZZ_SECONDS seconds
	@cmake --preset fuzz
	cmake --build --preset fuzz --parallel $(JOBS) --target fuzz-targets
	# Where Debian keeps llvm-symbolizer, for readable stacks.
	export PATH=/usr/lib/llvm-14/bin:$$PATH
	# New inputs stay in the build folder, so that the next run goes on from them.
	fuzz_one() {
	  name=$$(basename "$$1")
	  work=build-fuzz/runs/$$name
	  corpora=("$$work/corpus")
	  seeds=tests/fuzz/corpus/$${name%_fuzz}
	  [ ! -d "$$seeds" ] || corpora+=("$$seeds")
	  mkdir -p "$$work/corpus"
	  if "$$1" -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
	      -artifact_prefix="$$work/" "$${corpora[@]}" >"$$work/log" 2>&1 </dev/null; then
	    echo "$$name: clean, $$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) .*/\1 runs in \2 s/p' "$$work/log")"
	  else
	    echo "$$name: FAILED; the end of $$work/log:"
	    tail -n 40 "$$work/log"
	    return 1
	  fi
	}
	export -f fuzz_one
	printf '%s\n' build-fuzz/bin/*_fuzz | xargs -P $(JOBS) -I '{}' bash -c 'fuzz_one "$$1"' - '{}'

bench: deps-test configure-tests ## measure what bench/results lacks of this machine (with ONLY=TEXT in its name), in hours
	@cmake --build build --parallel $(JOBS)
	bench/report.py --only '$(ONLY)'

format: deps-format ## lay out every source file as .clang-format says
	@git ls-files -co --exclude-standard -- '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -r clang-format-14 -i

clean: ## remove everything that was built
	@rm -rf $(BUILD_FOLDERS)
