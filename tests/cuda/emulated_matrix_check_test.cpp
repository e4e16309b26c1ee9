// A GPU that multiplies the matrix wrong is found out before it answers: by the product that the
// host knows.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cuda/pipelines/answer_pipeline.h"
#include "cuda/scan/device_matrix.h"
#include "cuda/scan/scanner.h"
#include "tests/cuda/canary_fixture.h"
#include "tests/cuda/fake_faults.h"

namespace blindfuse::canary_testing {
namespace {

using EmulatedCudaMatrixCheck = CanaryFixture;

TEST_F(EmulatedCudaMatrixCheck, HasTheResponseOfAQuery) {
  EXPECT_EQ(canary_.query, sequence(canary_.words, kQueryBits));
  EXPECT_EQ(canary_.response, sequence(canary_.products, kResponseBits));
}

TEST_F(EmulatedCudaMatrixCheck, FindsNothingWhereAllIsRight) {
  const auto engine = this->engine();
  engine->check_kernels(canary_, kBatchMax);
  // Batches of 1, 2 and 3; of 4, 8, 16, 32 and 40; twice of 8, 16, 32 and 40.
  EXPECT_EQ(checks("dp4a", CheckStage::kMatrix), 3u);
  EXPECT_EQ(checks("mma", CheckStage::kMatrix), 5u);
  EXPECT_EQ(checks("wgmma", CheckStage::kMatrix), 4u);
  EXPECT_EQ(checks("wgmma-tma", CheckStage::kMatrix), 4u);
  for (const auto& count : record_->counts()) EXPECT_EQ(count.failed, 0u);
}

// Each tile of each kernel, and only that kernel.
TEST_F(EmulatedCudaMatrixCheck, FindsATileThatIsWrongOnTheMatrix) {
  for (const std::string tile :
       {"dp4a<1>", "dp4a<2>", "dp4a<3>", "mma<16>", "mma<32>", "mma<64>", "mma<128>", "wgmma<32>",
        "wgmma<64>", "wgmma<128>", "wgmma<256>", "wgmma_tma<32>", "wgmma_tma<64>", "wgmma_tma<128>",
        "wgmma_tma<256>"}) {
    const auto record = std::make_shared<KernelRecord>();
    auto engine = make_cuda_engine("", 0, record, kRows, kColumns);
    engine->set_columns(0, matrix_);
    engine->seal();
    const fake_cuda::ScopedFaults faults("spoil=scan_" + tile);
    engine->check_kernels(canary_, kBatchMax);
    std::string wrong = tile.substr(0, tile.find('<'));
    std::ranges::replace(wrong, '_', '-');
    for (const std::string kernel : {"dp4a", "mma", "wgmma", "wgmma-tma"}) {
      EXPECT_EQ(record->is_fit(kernel), kernel != wrong) << tile << ", " << kernel;
    }
    EXPECT_NE(record->why_unfit(wrong)->find("differ from those that the host computed"),
              std::string::npos);
  }
}

// One word of the matrix that is not what it was: the canary's product tells.
TEST_F(EmulatedCudaMatrixCheck, FindsAMatrixThatIsAnother) {
  matrix_[7 * kRows + 100] ^= 4;
  const auto engine = this->engine();
  EXPECT_THROW(engine->check_kernels(canary_, kBatchMax), DeviceLostError);
  EXPECT_NE(record_->why_unfit("mma")->find("first column 7 of query 0"), std::string::npos)
      << *record_->why_unfit("mma");
}

// A byte of the device's memory that is not what it was when the matrix was sealed: no kernel is to
// blame, neither before the first batch nor with one.
TEST_F(EmulatedCudaMatrixCheck, BlamesNoKernelForAMatrixThatHasChanged) {
  DeviceMatrix matrix(0, kRows, kColumns, 0);
  matrix.set_columns(0, matrix_);
  matrix.check();
  Scanner scanner(matrix, "", record_);
  const auto pipeline =
      make_device_answer_pipeline(scanner, matrix, {kQueryBits, kResponseBits}, kSlots, kBatchMax);
  pipeline->set_canary(canary_, kNever);
  EXPECT_EQ(answer(*pipeline, 5), "right");
  ASSERT_EQ(cudaMemset(const_cast<int8_t*>(matrix.data()) + 3 * matrix.pitch() + 10,
                       matrix_[3 * kRows + 10] ^ 0x40, 1),
            cudaSuccess);
  EXPECT_FALSE(matrix.is_as_sent());
  const std::string lost = answer(*pipeline, 5);
  EXPECT_EQ(lost.substr(0, 50), "lost: the matrix has changed in the device's memor") << lost;
  try {
    scanner.check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("first column 3 of query 0"), std::string::npos)
        << error.what();
  }
  for (const std::string kernel : {"dp4a", "mma", "wgmma"}) EXPECT_TRUE(record_->is_fit(kernel));
}

// Where kernels are timed, it is while they are checked: within the caller's limit of time.
TEST_F(EmulatedCudaMatrixCheck, TimesTheKernelsThatPass) {
  const auto calibrations = std::make_shared<Calibrations>(0);
  const auto engine = make_cuda_engine("", 0, record_, kRows, kColumns, {}, calibrations);
  engine->set_columns(0, matrix_);
  engine->seal();
  EXPECT_FALSE(calibrations->find(kRows, kColumns));
  const fake_cuda::ScopedFaults faults("spoil=scan_wgmma_tma");
  engine->check_kernels(canary_, kBatchMax);
  const auto measured = calibrations->find(kRows, kColumns);
  ASSERT_TRUE(measured);
  // The first one is in quarantine, and the emulator's clock takes all others for as fast as it.
  for (const uint32_t queries : {1, 3, 4, 64, 65}) {
    EXPECT_EQ(measured->kernel_for(queries), ScanKernel::kWgmma);
  }
}

TEST_F(EmulatedCudaMatrixCheck, EndsWhereANamedKernelIsWrong) {
  const auto engine = this->engine("mma");
  const fake_cuda::ScopedFaults faults("spoil=scan_mma<64>");
  try {
    engine->check_kernels(canary_, kBatchMax);
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:mma is in quarantine"), std::string::npos);
  }
}

}  // namespace
}  // namespace blindfuse::canary_testing
