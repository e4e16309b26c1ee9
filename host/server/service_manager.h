// What systemd wants to hear of a service (sd_notify(3)): when it is ready, reads its files again,
// or stops.
#pragma once

#include <string_view>

namespace blindfuse {

// Sends a state such as "READY=1" to the service manager that started this program, if one did, and
// wants to know. Never fails: a manager that does not listen changes nothing.
void notify_service_manager(std::string_view state);

}  // namespace blindfuse
