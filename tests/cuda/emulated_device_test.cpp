// The device itself: what keeps it from being used, and what is said about it; calls that do not
// return, errors of libraries, which device is current for which thread, and when the code of
// kernels comes to it.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda/checks/thrust_call.cuh"
#include "cuda/cuda_engine_maker.h"
#include "cuda/device/device_call.h"
#include "cuda/device/device_info.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/memory.h"
#include "cuda/device/stream.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/packing_table.h"
#include "src/base/errors.h"
#include "tests/cuda/fake_faults.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/small_problem.h"

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

TEST(EmulatedCudaDeviceCall, IsReportedOnceWhenItDoesNotReturn) {
  std::promise<std::string> hang;  // can be set once
  const auto watch = watch_device_calls(std::chrono::milliseconds(1),
                                        [&](const std::string& what) { hang.set_value(what); });
  // More than all others may take; and one that returns.
  const DeviceCall start("a start", std::chrono::hours(1));
  { const DeviceCall short_call("one that returns"); }
  std::thread([&] {
    const DeviceCall call("cudaEventSynchronize(event_)");
    EXPECT_EQ(hang.get_future().get(),
              "the device hangs: cudaEventSynchronize(event_) has not returned");
  }).join();
}

// Thrust says of every error of cudaMalloc that memory is short.
TEST(EmulatedCudaFaultMessages, TellALostDeviceFromAFullOne) {
  const Stream stream;
  const auto allocate_in_vain = [&] {
    call_thrust("a checksum", [&] {
      (void)policy_of(stream.get());
      throw std::bad_alloc();
    });
  };
  const auto error = [&]() -> std::string {
    try {
      allocate_in_vain();
    } catch (const DeviceLostError& lost) {
      return std::string("lost: ") + lost.what();
    } catch (const ResourceError& full) {
      return full.what();
    }
    return "";
  };
  EXPECT_EQ(error().substr(0, 42), "no room for a checksum on the device: std:");
  const fake_cuda::ScopedFaults faults("lose=cudaMemGetInfo:700");
  const std::string lost = error();
  EXPECT_EQ(lost.substr(0, 5), "lost:");
  EXPECT_NE(lost.find("cudaErrorIllegalAddress"), std::string::npos) << lost;
}

}  // namespace
}  // namespace blindfuse

namespace blindfuse::small_problem {
namespace {

// A thread that has another device current computes on the engine's own.
TEST(EmulatedCudaCurrentDevice, EnginesFindTheirDeviceOnAnyThread) {
  const fake_cuda::ScopedFaults two("devices=2");
  auto engine = make_cuda_engine({}, 1, kRows, kColumns);
  std::thread([&] {
    engine->set_columns(0, problem().columns(0, kColumns));
    engine->seal();
    auto pipeline = engine->make_answer_pipeline(kBits, kQueries, kQueries);
    std::thread([&] { problem().expect_right(*pipeline); }).join();
    std::thread([&] { pipeline.reset(); }).join();
    std::thread([&] { problem().expect_right(*engine); }).join();
    std::thread([&] { problem().expect_right_panels(*engine); }).join();
  }).join();
  cudaSetDevice(0);
  engine.reset();
}

TEST(EmulatedCudaCurrentDeviceDeathTest, AWrongCurrentDeviceIsFound) {
  EXPECT_DEATH(
      {
        fake_cuda::set_faults("devices=2");
        cudaSetDevice(0);
        const Stream stream;
        const DeviceMemory<uint32_t> words(4);
        cudaSetDevice(1);
        int kernel = 0;
        fake_cuda::launch("none", &kernel, 0, stream.get(), [](fake_cuda::LaunchFault) {});
      },
      "another than the current device");
}

// Nothing is loaded, or compiled, when a client waits for it.
TEST(EmulatedCudaLoading, NoKernelIsLoadedByAClientsBatch) {
  fake_cuda::forget_kernels();
  {
    const auto engine = engine_with(0);
    problem().expect_right(*pipeline_of(*engine));
    problem().expect_right(*engine);
  }
  // Each with every tile that it has.
  constexpr size_t kMost = 65;
  const std::vector<uint8_t> query(bit_sequence_bytes(kRows, kBits.query));
  for (const std::string_view kernel : {"dp4a", "mma", "wgmma", "wgmma-tma"}) {
    const auto engine = engine_with(0, {std::string(kernel)});
    engine->seal();
    const auto pipeline = engine->make_answer_pipeline(kBits, kMost, kMost);
    for (size_t i = 0; i < kMost; ++i) pipeline->put(i, query);
    for (const size_t count : {1, 2, 3, 4, 8, 16, 32, 33, 65}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  // The sums over packing tables, by the same kernels. Their results do not matter here.
  const fake_cuda::ScopedFaults fast(
      "skip=cut_bit_sequences,skip=scan_dp4a,skip=scan_mma,skip=scan_wgmma,skip=scan_wgmma_tma,"
      "skip=cut_table,skip=cut_keys,skip=sum_dp4a,skip=sum_mma,skip=sum_wgmma,skip=finish_packs");
  for (const std::string_view kernel : {"dp4a", "mma", "wgmma", "wgmma-tma"}) {
    const auto engine = make_cuda_engine({std::string(kernel)}, 0, 1, 9);
    engine->seal();
    const auto pipeline = engine->make_packed_answer_pipeline(kBits, zero_tables(1), kMost, kMost);
    for (const size_t count : {1, 2, 3, 4, 8, 16, 32, 33, 65}) {
      pipeline->begin(0, count);
      pipeline->finish();
    }
  }
  std::string late;
  for (const std::string& kernel : fake_cuda::kernels_loaded_late()) late += kernel + " ";
  EXPECT_EQ(late, "");
}

}  // namespace
}  // namespace blindfuse::small_problem
