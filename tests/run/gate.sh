#!/usr/bin/env bash
# What `make test` runs after it has configured the build: every test without sanitizers, with AddressSanitizer and
# UndefinedBehaviorSanitizer those of all that reads what others sent, and a server under load for a minute.
# tests/run/nightly.sh has the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
export JOBS=${1:-$(nproc)}
. tests/run/stages.sh

build_sanitized() {
  cmake --preset asan >/dev/null && cmake --build --preset asan --parallel "$JOBS" --target blindfuse-tests
}

stage 'release: build' cmake --build build --parallel "$JOBS"
stage 'release: all tests' run_tests build
stage 'AddressSanitizer, UndefinedBehaviorSanitizer: build' build_sanitized
stage 'AddressSanitizer, UndefinedBehaviorSanitizer: tests' run_tests build-asan --tests-regex '^blindfuse_tests'
# An epoch every four seconds, where the machine is fast enough.
stage 'soak of a minute' tests/soak/soak.py --bin build/bin --seconds 60 --every 4 --pairs 0 --good 6 --hostile 40 \
  --visit-seconds 2 --keys 40000 --value-bytes 300 --no-faults
finish
