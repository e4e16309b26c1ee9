// Whether this process has lost its device. If so, nothing is released on it, since the driver may
// not return.
#pragma once

namespace blindfuse {

// True after check_cuda() has thrown DeviceLostError, on any thread. Memory that destructors would
// have released stays until the process ends.
bool is_device_lost();
void note_device_lost();
// Where the device turned out to work, or nothing is held of it; and for tests, whose devices come
// back.
void forget_lost_device();

}  // namespace blindfuse
