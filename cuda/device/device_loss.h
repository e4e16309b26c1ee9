// Whether this process has lost its device: nothing is given back to it then, since the driver may
// not return.
#pragma once

namespace blindfuse {

// Once check_cuda() has thrown DeviceLostError, on any thread. What destructors would have given
// back stays until the process ends.
bool is_device_lost();
void note_device_lost();
// Where nothing is held of it; and for tests, whose devices come back.
void forget_lost_device();

}  // namespace blindfuse
