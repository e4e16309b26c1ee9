#!/usr/bin/env bash
# What `make test` runs after it has configured the build: every test without sanitizers, every one with
# AddressSanitizer and UndefinedBehaviorSanitizer, and a server under load for a minute. tests/run/nightly.sh has the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
export JOBS=${1:-$(nproc)}
. tests/run/stages.sh

build_sanitized() { cmake --preset "$1" >/dev/null && cmake --build --preset "$1" --parallel "$JOBS"; }

stage 'release: build' cmake --build build --parallel "$JOBS"
stage 'release: all tests' run_tests build
stage 'AddressSanitizer, UndefinedBehaviorSanitizer: build' build_sanitized asan
stage 'AddressSanitizer, UndefinedBehaviorSanitizer: all tests' run_tests build-asan
# An epoch every four seconds, where the machine is fast enough.
stage 'soak of a minute' tests/programs/soak.py --bin build/bin --seconds 60 --every 4
finish
