// Tests of the CUDA engine that the suite of all engines lacks: that a matrix which arrives
// altered, and one that is multiplied wrong, are found out, and what it says of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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
#include "tests/cuda/small_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using support::SeededRandom;

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
  EXPECT_NE(
      seal_error(*set).find("the matrix of 130 rows and 5 columns is not what was sent to the "
                            "device's memory"),
      std::string::npos);

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
  const std::vector<uint32_t> queries = random.words(8 * kRows);
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

// A GPU that multiplies the matrix wrong is found out before it answers: by the product that the
// host knows.
constexpr uint64_t kCheckedRows = 320, kCheckedColumns = 41;
constexpr size_t kLargestBatch = 40;

class EmulatedCudaMatrixCheck : public ::testing::Test {
 protected:
  EmulatedCudaMatrixCheck() : matrix_(random_.octets(kCheckedRows * kCheckedColumns)) {
    canary_.words = plain_product::query_words(random_, kCheckedRows, 26);
    canary_.products = plain_product::product(matrix_, canary_.words);
  }

  std::unique_ptr<Engine> engine(
      const std::vector<std::string>& kernels = {},
      std::shared_ptr<Calibrations> calibrations = std::make_shared<Calibrations>()) const {
    auto engine =
        make_cuda_engine(kernels, 0, kCheckedRows, kCheckedColumns, {}, std::move(calibrations));
    engine->set_columns(0, matrix_);
    engine->seal();
    return engine;
  }
  // Returns the message of the check of these kernels with these faults; "" if all is right.
  std::string check(const std::vector<std::string>& kernels, const std::string& faults) const {
    const auto engine = this->engine(kernels);
    const fake_cuda::ScopedFaults scoped(faults);
    try {
      engine->check_kernels(canary_, kLargestBatch);
    } catch (const DeviceLostError& error) {
      return error.what();
    }
    return "";
  }

  const fake_cuda::Anew anew_;
  support::SeededRandom random_{140};
  std::vector<uint8_t> matrix_;
  Canary canary_;
};

// Each tile of each kernel, where it is the one that answers, and no kernel that is not.
TEST_F(EmulatedCudaMatrixCheck, FindsATileThatIsWrongOnTheMatrix) {
  for (const std::string tile :
       {"dp4a<1>", "dp4a<2>", "dp4a<3>", "mma<16>", "mma<32>", "mma<64>", "mma<128>", "wgmma<32>",
        "wgmma<64>", "wgmma<128>", "wgmma<256>", "wgmma_tma<32>", "wgmma_tma<64>", "wgmma_tma<128>",
        "wgmma_tma<256>"}) {
    std::string kernel = tile.substr(0, tile.find('<'));
    std::ranges::replace(kernel, '_', '-');
    const std::string wrong = check({kernel}, "spoil=scan_" + tile);
    EXPECT_EQ(wrong.substr(0, wrong.find(':')), "the kernel " + kernel + " is wrong") << tile;
    EXPECT_NE(wrong.find("with the matrix of 320 rows and 41 columns differ from the host's"),
              std::string::npos)
        << wrong;
    // The matrix is too small to be timed: dp4a and mma answer.
    const bool is_used = kernel == "dp4a" || kernel == "mma";
    EXPECT_EQ(check({}, "spoil=scan_" + tile) != "", is_used) << tile;
  }
  EXPECT_EQ(check({}, ""), "");
}

// A word of the matrix that is not the one of which the host knows the product.
TEST_F(EmulatedCudaMatrixCheck, FindsAMatrixThatIsAnother) {
  matrix_[7 * kCheckedRows + 100] ^= 4;
  const std::string wrong = check({}, "");
  EXPECT_NE(wrong.find("the first in column 7 of query 0"), std::string::npos) << wrong;
}

// Where kernels are timed, it is before they are checked: those that were chosen are.
TEST_F(EmulatedCudaMatrixCheck, TimesTheKernelsFirst) {
  const auto calibrations = std::make_shared<Calibrations>(0);
  const auto engine = this->engine({"dp4a", "mma", "wgmma"}, calibrations);
  EXPECT_FALSE(calibrations->find(kCheckedRows, kCheckedColumns));
  const fake_cuda::ScopedFaults faults("spoil=scan_mma,spoil=scan_dp4a");
  EXPECT_NO_THROW(engine->check_kernels(canary_, kLargestBatch));
  const auto measured = calibrations->find(kCheckedRows, kCheckedColumns);
  ASSERT_TRUE(measured);
  // The emulator's clock takes all for as fast as the first.
  for (const uint32_t queries : {1, 3, 4, 64, 65}) {
    EXPECT_EQ(measured->kernel_for(queries), ScanKernel::kWgmma);
  }
}

}  // namespace
}  // namespace blindfuse
