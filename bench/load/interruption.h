// Ctrl-C and SIGTERM: the processes of the load are ended and the temporary folder removed.
#pragma once

namespace blindfuse::load {

// From now on they are remembered, and end waiting system calls.
void catch_interruptions();
// Undoes that, for a child.
void leave_interruptions();

// Throws ExitStatus (src/program/program.h) after one.
void throw_if_interrupted();

}  // namespace blindfuse::load
