// What keeps a device from being used: what of that the machine may have later, and what is said
// about it.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "cuda/cuda_engine_maker.h"
#include "cuda/device/device_info.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"

namespace blindfuse {
namespace {

struct Refusal {
  std::string kind;
  std::string text;
};

Refusal refusal_of(const std::string& faults, int device = 0) {
  const fake_cuda::ScopedFaults scoped(faults);
  try {
    make_cuda_engine_maker({}, device);
  } catch (const DeviceLostError& error) {
    return {"lost", error.what()};
  } catch (const ResourceError& error) {
    return {"resource", error.what()};
  } catch (const UsageError& error) {
    return {"usage", error.what()};
  }
  return {"none", ""};
}

// Numbers from CUDA's driver_types.h, and a word of what an operator has to know about each.
TEST(EmulatedCudaDeviceStates, ThatMayPassAreNotTheCommandLinesFault) {
  const struct {
    const char* faults;
    const char* word;
  } kStates[] = {
      {"fail=cudaGetDeviceCount:802", "systemctl status nvidia-fabricmanager"},
      {"fail=cudaSetDevice:802", "systemctl status nvidia-fabricmanager"},
      {"fail=cudaGetDeviceCount:803", "different versions"},
      {"fail=cudaGetDeviceCount:804", "cuda-compat"},
      {"fail=cudaGetDeviceCount:999", "modprobe nvidia-uvm"},
      {"fail=cudaGetDeviceCount:3", "modprobe nvidia-uvm"},
      {"fail=cudaGetDeviceCount:304", "modprobe nvidia-uvm"},
      {"fail=cudaSetDevice:800", "DeviceAllow"},
      {"fail=cudaSetDevice:46", "nvidia-smi -c DEFAULT"},
      {"fail=cudaSetDevice:216", "nvidia-smi -c DEFAULT"},
      {"fail=cudaSetDevice:2", "nvidia-smi lists those that have it"},
      {"fail=cudaSetDevice:805", "nvidia-cuda-mps-control"},
      {"fail=cudaSetDevice:807", "nvidia-cuda-mps-control"},
      {"fail=cudaSetDevice:101", "kernel's log"},
      {"fail=cudaGetDeviceCount:127", "kernel's log"},
      {"devices=0", "no CUDA device"},
  };
  for (const auto& state : kStates) {
    const Refusal refusal = refusal_of(state.faults);
    EXPECT_EQ(refusal.kind, "resource") << state.faults << ": " << refusal.text;
    EXPECT_NE(refusal.text.find("the engine cuda cannot run: "), std::string::npos);
    EXPECT_NE(refusal.text.find(state.word), std::string::npos)
        << state.faults << ": " << refusal.text;
  }
}

TEST(EmulatedCudaDeviceStates, TellWhatIsTheCommandLinesFault) {
  EXPECT_EQ(refusal_of("devices=2", 1).kind, "none");
  const Refusal no_such = refusal_of("devices=2", 2);
  EXPECT_EQ(no_such.kind, "usage");
  EXPECT_NE(no_such.text.find("there is no CUDA device 2; this machine has 2"), std::string::npos);
  const Refusal old = refusal_of("capability=7");
  EXPECT_EQ(old.kind, "usage");
  EXPECT_NE(old.text.find("compute capability 8.0 or later is needed"), std::string::npos);
}

TEST(EmulatedCudaDeviceStates, NameBothVersionsOfAnOldDriver) {
  const Refusal old = refusal_of("driver=11080");
  EXPECT_EQ(old.kind, "resource");
  EXPECT_NE(
      old.text.find("the NVIDIA driver is for CUDA 11.8, and this program needs one for CUDA " +
                    std::to_string(CUDART_VERSION / 1000) + ".0, that is 5"),
      std::string::npos)
      << old.text;
  EXPECT_NE(refusal_of("driver=0").text.find("there is no NVIDIA driver here"), std::string::npos);
  // Every driver of the same major version will do.
  EXPECT_EQ(refusal_of("driver=" + std::to_string(CUDART_VERSION / 1000 * 1000)).kind, "none");
}

// A device that fails in a process that was using it does not come back in it.
TEST(EmulatedCudaDeviceStates, TellALostDeviceFromOneThatIsNotReady) {
  for (const char* faults : {"lose=any@0:700", "lose=cudaSetDevice:719", "lose=any@0:214"}) {
    EXPECT_EQ(refusal_of(faults).kind, "lost") << faults;
  }
}

TEST(EmulatedCudaDeviceStates, AreAskedForWithoutAnError) {
  const fake_cuda::ScopedFaults faults("fail=cudaDeviceGetAttribute:999");
  EXPECT_NE(why_no_cuda_device(0).find("modprobe nvidia-uvm"), std::string::npos);
  fake_cuda::set_faults("");
  EXPECT_EQ(why_no_cuda_device(0), "");
}

}  // namespace
}  // namespace blindfuse
