#!/usr/bin/env bash
# What `make check` runs after it has configured the build: the tests in C++, without sanitizers.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
export JOBS=${1:-$(nproc)}
. tests/run/stages.sh

stage 'build' cmake --build build --parallel "$JOBS" --target blindfuse-tests blindfuse-scheme-tests
stage 'tests in C++' run_tests build --tests-regex '^blindfuse_(scheme_)?tests'
finish
