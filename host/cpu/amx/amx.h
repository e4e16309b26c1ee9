// Intel's matrix instructions: whether they can be used, and how their registers are shaped. For
// x86-64 alone.
#pragma once

namespace blindfuse {

// Whether this processor has AMX for bytes, and the system lets this process use it.
//
// Linux gives a process the tile registers when it asks (Documentation/arch/x86/xstate.rst), and
// refuses where a stack for signals has no room for them; afterwards no thread can have one of less
// than some 11 KiB (sigaltstack), whatever kernel is taken.
bool amx_runs_here();

}  // namespace blindfuse
