// Intel's matrix instructions (AMX): whether they can be used, and the shapes of their registers.
// For x86-64 alone.
#pragma once

namespace blindfuse {

// True if this processor has AMX for bytes, and the system lets this process use it.
//
// Linux gives a process the tile registers on request (Documentation/arch/x86/xstate.rst). It
// refuses if a stack for signals has no room for them. Afterwards no thread can have a signal stack
// (sigaltstack) of less than some 11 KiB, with any kernel.
bool amx_runs_here();

}  // namespace blindfuse
