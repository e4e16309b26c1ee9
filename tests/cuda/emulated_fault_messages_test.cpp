// Errors of libraries on a device: memory that is short is told from a device that is lost.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "cuda/checks/thrust_call.cuh"
#include "cuda/device/device_loss.h"
#include "cuda/device/stream.h"
#include "cuda/scan/cublas_status.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"

namespace blindfuse {
namespace {

// Thrust says of every error of cudaMalloc that memory is short.
TEST(EmulatedCudaFaultMessages, TellALostDeviceFromAFullOne) {
  const Stream stream;
  const auto allocate_in_vain = [&] {
    call_thrust("a checksum", [&] {
      (void)policy_of(stream.get());
      throw std::bad_alloc();
    });
  };
  try {
    allocate_in_vain();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    ADD_FAILURE() << error.what();
  } catch (const ResourceError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 42),
              "no room for a checksum on the device: std:");
  }
  const fake_cuda::ScopedFaults faults("lose=cudaMemGetInfo:700");
  try {
    allocate_in_vain();
    ADD_FAILURE();
  } catch (const DeviceLostError& error) {
    EXPECT_NE(std::string(error.what()).find("cudaErrorIllegalAddress"), std::string::npos)
        << error.what();
  } catch (const ResourceError& error) {
    ADD_FAILURE() << error.what();
  }
}

// As cuBLAS does of its own memory.
TEST(EmulatedCudaFaultMessages, TellALostDeviceFromAFullOneForCublas) {
  const auto error_of = [](cublasStatus_t status) -> std::string {
    try {
      check_cublas(status, "cublasCreate", "the library's words");
      return "";
    } catch (const DeviceLostError& error) {
      return std::string("lost: ") + error.what();
    } catch (const ResourceError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of(CUBLAS_STATUS_SUCCESS), "");
  EXPECT_EQ(error_of(CUBLAS_STATUS_ALLOC_FAILED),
            "no room for what cublasCreate needs on the device: the library's words");
  EXPECT_FALSE(is_device_lost());
  {
    const fake_cuda::ScopedFaults faults("lose=cudaMemGetInfo:700");
    EXPECT_EQ(error_of(CUBLAS_STATUS_ALLOC_FAILED).substr(0, 6), "lost: ");
  }
  EXPECT_FALSE(is_device_lost());
  EXPECT_EQ(error_of(CUBLAS_STATUS_EXECUTION_FAILED),
            "lost: cublasCreate failed: the library's words");
  EXPECT_TRUE(is_device_lost());
  fake_cuda::set_faults("");
}

// As the benchmark does when its yardstick fails.
TEST(EmulatedCudaFaultMessages, ADeviceThatWorksIsNotLostWithCublas) {
  const auto fail = [] {
    check_cublas(CUBLAS_STATUS_EXECUTION_FAILED, "cublasGemmEx", "the library's words");
  };
  EXPECT_THROW(fail(), DeviceLostError);
  EXPECT_TRUE(is_device_lost());
  go_on_without_cublas();
  EXPECT_FALSE(is_device_lost());
  const fake_cuda::ScopedFaults faults("lose=cudaDeviceSynchronize:700");
  EXPECT_THROW(fail(), DeviceLostError);
  EXPECT_THROW(go_on_without_cublas(), DeviceLostError);
  EXPECT_TRUE(is_device_lost());
}

}  // namespace
}  // namespace blindfuse
