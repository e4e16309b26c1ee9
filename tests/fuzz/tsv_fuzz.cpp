#include <cstddef>
#include <cstdint>

#include "host/ingest/csv_source.h"
#include "tests/fuzz/ingest_fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return blindfuse::fuzzing::fuzz_text<blindfuse::TsvSource>(data, size);
}
