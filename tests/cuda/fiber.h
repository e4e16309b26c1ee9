// Fibers: threads that one thread of the host runs by turns, each on a stack of its own.
#pragma once

#include <cstddef>

#if defined(__x86_64__)
#define BLINDFUSE_OWN_SWITCH
#else
#include <ucontext.h>
#endif

namespace blindfuse::emulator {

// A place where control rests while it is elsewhere: the host's, or a fiber's.
struct Context {
#ifdef BLINDFUSE_OWN_SWITCH
  void* stack_pointer = nullptr;
#else
  ucontext_t registers;
#endif
#ifdef __SANITIZE_ADDRESS__
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  size_t stack_bytes = 0;
#endif
};

// Goes from where we are, which becomes `from`, to `to`; returns when a fiber goes back to `from`,
// which none may after `for_ever`.
void switch_context(Context& from, Context& to, bool for_ever = false);

// Makes `context` one that calls entry() on the n-th stack, 126 KiB at least. entry() begins with
// arrive_from() where it was first switched from, and never returns. Stacks are kept for all to
// come.
void prepare_context(Context& context, size_t stack_number, void (*entry)());
void arrive_from(Context& from);

}  // namespace blindfuse::emulator
