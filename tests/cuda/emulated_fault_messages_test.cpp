// Errors of libraries on a device: memory that is short is told from a device that is lost.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "cuda/checks/thrust_call.cuh"
#include "cuda/device/device_loss.h"
#include "cuda/device/stream.h"
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

}  // namespace
}  // namespace blindfuse
