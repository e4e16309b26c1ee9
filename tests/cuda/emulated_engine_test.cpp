// Tests of the CUDA engine that the suite of all engines lacks: that a matrix which arrives altered
// is found out, and what it says of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/cuda_engine.h"
#include "cuda/device/stream.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/machine.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

// Of a device of which nothing is known.
std::vector<uint32_t> random_words(SeededRandom& random, size_t count) {
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = random.u32();
  return words;
}

// The message of seal()'s exception; empty when it throws none.
std::string seal_error(Engine& engine) {
  try {
    engine.seal();
  } catch (const ResourceError& error) {
    return error.what();
  }
  return "";
}

TEST(EmulatedCuda, FindsAnAlteredByteOfTheMatrix) {
  const fake_cuda::Anew anew;
  SeededRandom random(130);
  for (const uint64_t rows : {1, 7, 8, 64, 129, 1000}) {
    constexpr uint64_t kColumns = 5;
    DeviceMatrix matrix(0, rows, kColumns, 0);
    // More than there are buffers to send from.
    for (uint64_t c = 0; c + 1 < kColumns; ++c) {
      matrix.set_columns(c, random.octets(rows * (c == 2 ? 2 : 1)));
    }
    EXPECT_NO_THROW(matrix.check());
    const_cast<int8_t*>(matrix.data())[3 * matrix.pitch() + random.below(rows)] ^= 0x10;
    EXPECT_THROW(matrix.check(), ResourceError) << rows << " rows";
  }
}

// Columns that were set elsewhere are checked here again, against what was set.
TEST(EmulatedCuda, FindsAnAlteredByteOfSharedColumns) {
  const fake_cuda::Anew anew;
  SeededRandom random(131);
  constexpr uint64_t kRows = 130;
  DeviceMatrix old(0, kRows, 5, 0);
  old.set_columns(0, random.octets(kRows * 5));
  old.check();
  const_cast<int8_t*>(old.data())[3 * old.pitch() + random.below(kRows)] ^= 0x10;
  for (const uint64_t count : {2, 3}) {
    DeviceMatrix matrix(0, kRows, 5, 0);
    matrix.set_columns(0, random.octets(kRows));
    ASSERT_TRUE(matrix.share_columns(1, count, old));
    if (count == 2) {
      EXPECT_NO_THROW(matrix.check());
    } else {
      EXPECT_THROW(matrix.check(), ResourceError);
    }
  }
}

// An engine looks at what has arrived before it computes with it.
TEST(EmulatedCuda, SealsNoMatrixThatArrivedAltered) {
  const fake_cuda::Anew anew;
  SeededRandom random(132);
  constexpr uint64_t kRows = 130;
  constexpr uint64_t kColumns = 5;
  const std::vector<uint8_t> bytes = random.octets(kRows * kColumns);
  const auto old = make_cuda_engine({}, 0, kRows, kColumns);
  old->set_columns(0, bytes);
  EXPECT_NO_THROW(old->seal());

  const auto set = make_cuda_engine({}, 0, kRows, kColumns);
  set->set_columns(0, std::span(bytes).first(3 * kRows));
  const fake_cuda::ScopedFaults faults("alter=copy@0");
  set->set_columns(3, std::span(bytes).subspan(3 * kRows));
  EXPECT_NE(seal_error(*set).find("is not what was sent"), std::string::npos);

  const auto shared = make_cuda_engine({}, 0, kRows, kColumns);
  shared->set_columns(0, std::span(bytes).first(2 * kRows));
  fake_cuda::set_faults("alter=copy@0");
  ASSERT_TRUE(shared->share_columns(2, 3, *old));
  EXPECT_NE(seal_error(*shared).find("is not what was sent"), std::string::npos);
}

TEST(EmulatedCuda, RefusesAMatrixThatMemoryCannotHold) {
  try {
    make_cuda_engine({}, 0, uint64_t{1} << 22, 1 << 12);
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("CUDA device 0 has 4294967296 free of 4294967296"), std::string::npos)
        << message;
  }
}

// As <cuda_runtime_api.h> has it: 13000 is 13.0.
std::string runtime_version() {
  return std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 100 / 10);
}

TEST(EmulatedCuda, NamesItsDeviceAndItsKernels) {
  const auto engine = make_cuda_engine({}, 0, 64, 3);
  EXPECT_EQ(engine->hardware(),
            "emulator, compute capability 9.0, 3 multiprocessors, 4 GB, PCI 0000:1B:00.0, "
            "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0, driver for CUDA " +
                runtime_version() + ", runtime " + runtime_version() +
                ", dp4a for batches of up to 3, mma for others");
  for (const std::string kernel : {"wgmma", "wgmma-tma"}) {
    EXPECT_EQ(make_cuda_engine({kernel}, 0, 64, 3)->name(), "cuda:" + kernel);
  }
}

// CUDA_FORCE_PTX_JIT: a device of compute capability 9.0 that runs code without wgmma.
TEST(EmulatedCuda, HasNoWgmmaWhereOtherCodeRuns) {
  emulator::set_wgmma_code(false);
  for (const std::string kernel : {"wgmma", "wgmma-tma"}) {
    EXPECT_EQ(std::ranges::count(scan_kernel_names(), kernel), 0);
    try {
      make_cuda_engine({kernel}, 0, 64, 3);
      ADD_FAILURE();
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("the kernel cuda:" + kernel + " needs"),
                std::string::npos);
      EXPECT_NE(std::string(error.what()).find("CUDA_FORCE_PTX_JIT"), std::string::npos);
    }
  }
  emulator::set_wgmma_code(true);
  for (const std::string kernel : {"wgmma", "wgmma-tma"}) {
    EXPECT_EQ(std::ranges::count(scan_kernel_names(), kernel), 1);
  }
}

// A kernel that failed the self-test is not among them.
TEST(EmulatedCuda, UsesNoOtherKernelsThanItsOwn) {
  SeededRandom random(133);
  constexpr uint64_t kRows = 300, kColumns = 37;
  const auto bytes = random.octets(kRows * kColumns);
  const std::vector<uint32_t> queries = random_words(random, 8 * kRows);
  const auto products = [&](const std::vector<std::string>& kernels, size_t count) {
    const auto engine = make_cuda_engine(kernels, 0, kRows, kColumns);
    engine->set_columns(0, bytes);
    engine->seal();
    std::vector<uint32_t> words(count * kColumns);
    engine->multiply({queries.data(), count, kRows}, {0, kRows}, {words.data(), count, kColumns});
    return words;
  };
  const std::vector<std::string> all = {"dp4a", "mma", "wgmma", "wgmma-tma"};
  for (const size_t count : {1, 8}) {
    const auto expected = products({}, count);
    for (const std::string& wrong : all) {
      std::string name = wrong;
      std::ranges::replace(name, '-', '_');
      const fake_cuda::ScopedFaults faults("spoil=scan_" + name);
      std::vector<std::string> others = all;
      std::erase(others, wrong);
      EXPECT_EQ(products(others, count), expected) << wrong;
      EXPECT_NE(products({wrong}, count), expected) << wrong;
    }
  }
}

// A spoilt kernel is one that the tests of faults can count on.
TEST(EmulatedCuda, ComputesWrongProductsWithASpoiltKernel) {
  SeededRandom random(134);
  constexpr uint64_t kRows = 300, kColumns = 37;
  const auto engine = make_cuda_engine({"mma"}, 0, kRows, kColumns);
  engine->set_columns(0, random.octets(kRows * kColumns));
  engine->seal();
  const std::vector<uint32_t> query = random_words(random, kRows);
  const auto product = [&] {
    std::vector<uint32_t> words(kColumns);
    engine->multiply({query.data(), 1, kRows}, {0, kRows}, {words.data(), 1, kColumns});
    return words;
  };
  const auto expected = product();
  const fake_cuda::ScopedFaults faults("spoil=scan_mma<16>@1");
  EXPECT_EQ(product(), expected);
  EXPECT_NE(product(), expected);
  EXPECT_EQ(product(), expected);
}

// A call may fail once, after which nothing is left behind, or the device may be lost: nothing is
// given back to it then.
TEST(EmulatedCuda, TellsWhatFailsOnceFromALostDevice) {
  const uint64_t before = fake_cuda::allocated_bytes();
  {
    const fake_cuda::ScopedFaults faults("fail=cudaMalloc@0:2");
    EXPECT_THROW(make_cuda_engine({}, 0, 64, 3), ResourceError);
    EXPECT_NO_THROW(make_cuda_engine({}, 0, 64, 3));
    EXPECT_EQ(fake_cuda::allocated_bytes(), before);
  }
  {
    const fake_cuda::ScopedFaults faults("fault=cut_plain_words");
    const auto engine = make_cuda_engine({}, 0, 64, 3);
    engine->seal();
    const std::vector<uint32_t> query(64);
    std::vector<uint32_t> words(3);
    try {
      engine->multiply({query.data(), 1, 64}, {0, 64}, {words.data(), 1, 3});
      ADD_FAILURE();
    } catch (const DeviceLostError& error) {
      EXPECT_NE(std::string(error.what()).find("cudaErrorIllegalAddress"), std::string::npos);
    }
    EXPECT_THROW(make_cuda_engine({}, 0, 64, 3), DeviceLostError);
    EXPECT_EQ(fake_cuda::late_give_back_count(), 0u);
  }
  fake_cuda::begin_anew();
}

TEST(EmulatedCuda, AllowsKernelsTheirSharedMemory) {
  int kernel = 0;
  const Stream stream;
  const auto launch = [&](uint32_t bytes) {
    return fake_cuda::launch("none", &kernel, bytes, stream.get(), [](fake_cuda::LaunchFault) {});
  };
  EXPECT_EQ(launch(48 << 10), cudaSuccess);
  EXPECT_THROW(launch((48 << 10) + 1), std::logic_error);
  EXPECT_EQ(fake_cuda::allow_shared(&kernel, 100 << 10), cudaSuccess);
  EXPECT_EQ(launch(100 << 10), cudaSuccess);
  EXPECT_THROW(launch((100 << 10) + 1), std::logic_error);
  EXPECT_THROW(fake_cuda::allow_shared(&kernel, (227 << 10) + 1), std::logic_error);
}

}  // namespace
}  // namespace blindfuse
