#!/usr/bin/env bash
# What `make unit-tests` runs after it has configured the build: the tests in C++, without sanitizers.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
export JOBS=${1:-$(nproc)}
. tests/run/stages.sh

stage 'unit tests: build' cmake --build build --parallel "$JOBS" \
  --target blindfuse-tests blindfuse-load-tests blindfuse-scheme-tests
stage 'unit tests' run_tests build --tests-regex '^blindfuse_(load_|scheme_)?tests'
finish
