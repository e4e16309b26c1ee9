// Threads of the operating system, which may have no more of them to give.
#pragma once

#include <functional>
#include <string>
#include <system_error>
#include <thread>

namespace blindfuse {

// What std::thread threw, as a ResourceError that names the limits and the cure. `what` could not
// be started: "a thread", "8 threads".
[[noreturn]] void fail_starting(const std::string& what, const std::system_error& error);

// A thread that runs `work`. Throws as fail_starting() does.
std::thread start_thread(std::function<void()> work);

}  // namespace blindfuse
