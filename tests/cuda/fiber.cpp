#include "tests/cuda/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef BLINDFUSE_OWN_SWITCH
// swapcontext() saves the signal mask as well, which takes a system call. What the ABI has a
// function preserve is all that a fiber needs. In assembly outside of any function, because the
// compiler would otherwise see, and count on, registers that it leaves alone.
extern "C" void blindfuse_emulator_switch(void** from_stack_pointer, void* to_stack_pointer);
asm(R"(
  .pushsection .text
  .globl blindfuse_emulator_switch
  .type blindfuse_emulator_switch, @function
blindfuse_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size blindfuse_emulator_switch, . - blindfuse_emulator_switch
  .popsection
)");
#endif

namespace blindfuse::emulator {
namespace {

constexpr size_t kStackBytes = 128 << 10;

// The n-th stack. Stacks are kept for all blocks and launches to come. Below each is a page that
// must not be touched, which makes too deep a stack a crash rather than a riddle.
uint8_t* stack_of(size_t n) {
  static std::vector<uint8_t*> stacks;
  while (stacks.size() <= n) {
    const auto guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, guard + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) throw std::bad_alloc();
    stacks.push_back(static_cast<uint8_t*>(memory) + guard);
  }
  return stacks[n];
}

}  // namespace

void switch_context(Context& from, Context& to, [[maybe_unused]] bool for_ever) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#ifdef BLINDFUSE_OWN_SWITCH
  blindfuse_emulator_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.registers, &to.registers);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void prepare_context(Context& context, size_t stack_number, void (*entry)()) {
  uint8_t* const stack = stack_of(stack_number);
  // Stacks are whole pages apart: were the tops at the same place of a page, all threads would
  // compete for the same few lines of the cache.
  const size_t usable_bytes = kStackBytes - stack_number % 16 * 256;
#ifdef __SANITIZE_ADDRESS__
  // The fiber that had the stack before may have been left in the middle of something.
  __asan_unpoison_memory_region(stack, kStackBytes);
  context.fake_stack = nullptr;
  context.stack = stack;
  context.stack_bytes = kStackBytes;
#endif
#ifdef BLINDFUSE_OWN_SWITCH
  // Seen from the top: where entry() would return to, which is nowhere; entry(); six registers.
  void* frame[8] = {};
  std::memcpy(&frame[6], &entry, sizeof(entry));
  context.stack_pointer = stack + usable_bytes - sizeof(frame);
  std::memcpy(context.stack_pointer, frame, sizeof(frame));
#else
  getcontext(&context.registers);
  context.registers.uc_stack.ss_sp = stack;
  context.registers.uc_stack.ss_size = usable_bytes;
  context.registers.uc_link = nullptr;
  makecontext(&context.registers, entry, 0);
#endif
}

void arrive_from([[maybe_unused]] Context& from) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &from.stack, &from.stack_bytes);
#endif
}

}  // namespace blindfuse::emulator
