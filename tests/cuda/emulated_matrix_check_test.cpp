// A GPU that multiplies the matrix wrong is found out before it answers: by the product that the
// host knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/cuda_engine.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

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
  // What the check says of these kernels with these faults; "" if all is right.
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

// The checksum, of the copy to the device and of any other time.
TEST_F(EmulatedCudaMatrixCheck, FindsAMatrixThatArrivedAltered) {
  const auto engine = make_cuda_engine({}, 0, kCheckedRows, kCheckedColumns);
  const fake_cuda::ScopedFaults faults("alter=cudaMemcpy2DAsync");
  engine->set_columns(0, matrix_);
  try {
    engine->seal();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 81),
              "the matrix of 320 rows and 41 columns is not what was sent to the device's memory");
  }
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
