#!/usr/bin/env bash
# What `make nightly` runs: what the gate has no time for. Every stage is run, whatever fails before it; a table at the
# end says how each ended.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec </dev/null
export JOBS=${1:-$(nproc)} STAGES_GO_ON=1
. tests/run/stages.sh

build_separate() { cmake --preset separate >/dev/null && cmake --build --preset separate --parallel "$JOBS"; }
build_and_test() {
  cmake --preset "$1" >/dev/null && cmake --build --preset "$1" --parallel "$JOBS" && run_tests "build-$1"
}

# What a run before left would be counted as this one's, should it end before its tests.
rm -rf build/test-results
stage 'make test' make test JOBS="$JOBS"
stages_result_folders+=(build/test-results)
stage 'CUDA kernels without one of their barriers' build/bin/blindfuse-kernel-tests --gtest_filter='*AreFound*'
# Without nvcc there is no emulated GPU.
if [ -x build/bin/blindfuse-emulated-cuda-tests ]; then
  stage 'emulated GPU, as early as CUDA permits: every kernel' env BLINDFUSE_FAKE_CUDA=eager \
    build/bin/blindfuse-emulated-cuda-tests \
    --gtest_filter='Engines/*/cuda_*:EmulatedCudaSelfTest.FindsEachTileThatIsWrong'
fi
stage 'AddressSanitizer, UndefinedBehaviorSanitizer: all tests' build_and_test asan
stage 'ThreadSanitizer: all tests' build_and_test tsan
stage 'every file by itself: build' build_separate
stage '64-bit Arm in QEMU: engine and packing' build_and_test aarch64
stage "fuzzing: ${FUZZ_SECONDS:=300} s a target" make fuzz JOBS="$JOBS" FUZZ_SECONDS="$FUZZ_SECONDS"
stage 'Debian package' make package JOBS="$JOBS"
BARE_ROOT_CCACHE=$(ccache --get-config cache_dir 2>/dev/null) || BARE_ROOT_CCACHE=
export BARE_ROOT_CCACHE
stage 'bare Debian 12: make demo, make test' make bare-root JOBS="$JOBS"
stage 'bare Debian 13: make demo, make check' make bare-root-trixie JOBS="$JOBS"
stage 'slow readers of every kind of response' tests/soak/slow_readers.py --bin build/bin
stage "soak of ${SOAK_SECONDS:=600} s" make soak JOBS="$JOBS" SOAK_SECONDS="$SOAK_SECONDS"
finish
