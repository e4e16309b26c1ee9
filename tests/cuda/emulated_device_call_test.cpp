// Calls of a device that do not return.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "cuda/device/device_call.h"

namespace blindfuse {
namespace {

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

}  // namespace
}  // namespace blindfuse
