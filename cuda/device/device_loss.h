// Records that this process has lost its device. Nothing is released on it then, since the driver
// may not return, and no result of it is used.
#pragma once

#include <string>

namespace blindfuse {

// True after lose_device(), on any thread. Memory that destructors would have released stays until
// the process ends.
bool is_device_lost();
// Called for an error of a call that is not one of memory, and for every result that is found
// wrong. Throws DeviceLostError with this text, or with that of the first call.
[[noreturn]] void lose_device(const std::string& why);
// Throws DeviceLostError with the text of the first call of lose_device(), if there was one.
void require_device();
// Called when the device turned out to work, or nothing is held of it; and by tests, whose devices
// come back.
void forget_lost_device();

}  // namespace blindfuse
