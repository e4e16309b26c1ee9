// What -fsanitize=thread compiles in, for a program that is linked without its library
// (compiler-rt, tsan_interface.h and tsan_interface_atomic.h): who reads and writes goes to the
// detector.
#include <cstddef>
#include <cstdint>

#include "tests/cuda/races/run.h"

namespace {

using blindfuse::races::Kind;
using blindfuse::races::runtime::touch;

template <class T>
T load(const volatile T* place) {
  touch(Kind::kAtomic, const_cast<const T*>(place), sizeof(T));
  return __atomic_load_n(place, __ATOMIC_SEQ_CST);
}
template <class T>
void store(volatile T* place, T value) {
  touch(Kind::kAtomic, const_cast<const T*>(place), sizeof(T));
  __atomic_store_n(place, value, __ATOMIC_SEQ_CST);
}
template <class T>
bool exchange_if(volatile T* place, T* expected, T value) {
  touch(Kind::kAtomic, const_cast<const T*>(place), sizeof(T));
  return __atomic_compare_exchange_n(place, expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

}  // namespace

// The names are the compiler's.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}

#define BLINDFUSE_SIZE(bytes)                                                                   \
  void __tsan_read##bytes(void* place) { touch(Kind::kRead, place, bytes); }                    \
  void __tsan_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }                  \
  void __tsan_unaligned_read##bytes(void* place) { touch(Kind::kRead, place, bytes); }          \
  void __tsan_unaligned_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }        \
  void __tsan_volatile_read##bytes(void* place) { touch(Kind::kRead, place, bytes); }           \
  void __tsan_volatile_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }         \
  void __tsan_unaligned_volatile_read##bytes(void* place) { touch(Kind::kRead, place, bytes); } \
  void __tsan_unaligned_volatile_write##bytes(void* place) { touch(Kind::kWrite, place, bytes); }
BLINDFUSE_SIZE(1)
BLINDFUSE_SIZE(2)
BLINDFUSE_SIZE(4)
BLINDFUSE_SIZE(8)
BLINDFUSE_SIZE(16)
#undef BLINDFUSE_SIZE

void __tsan_read_range(void* place, size_t bytes) { touch(Kind::kRead, place, bytes); }
void __tsan_write_range(void* place, size_t bytes) { touch(Kind::kWrite, place, bytes); }
void __tsan_vptr_update(void** place, void*) { touch(Kind::kWrite, place, sizeof(*place)); }
void __tsan_vptr_read(void** place) { touch(Kind::kRead, place, sizeof(*place)); }

#define BLINDFUSE_UPDATE(bits, name)                                                             \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* place, uint##bits##_t by, \
                                              int) {                                             \
    touch(Kind::kAtomic, const_cast<const uint##bits##_t*>(place), bits / 8);                    \
    return __atomic_##name(place, by, __ATOMIC_SEQ_CST);                                         \
  }
#define BLINDFUSE_EXCHANGE_IF(bits, strength)                                                     \
  int __tsan_atomic##bits##_compare_exchange_##strength(                                          \
      volatile uint##bits##_t* place, uint##bits##_t* expected, uint##bits##_t value, int, int) { \
    return exchange_if(place, expected, value);                                                   \
  }
#define BLINDFUSE_ATOMIC(bits)                                                                  \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* place, int) {        \
    return load(place);                                                                         \
  }                                                                                             \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* place, uint##bits##_t value, int) { \
    store(place, value);                                                                        \
  }                                                                                             \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* place,                 \
                                                uint##bits##_t value, int) {                    \
    touch(Kind::kAtomic, const_cast<const uint##bits##_t*>(place), bits / 8);                   \
    return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);                                 \
  }                                                                                             \
  BLINDFUSE_UPDATE(bits, fetch_add)                                                             \
  BLINDFUSE_UPDATE(bits, fetch_sub)                                                             \
  BLINDFUSE_UPDATE(bits, fetch_and)                                                             \
  BLINDFUSE_UPDATE(bits, fetch_or)                                                              \
  BLINDFUSE_UPDATE(bits, fetch_xor)                                                             \
  BLINDFUSE_EXCHANGE_IF(bits, strong)                                                           \
  BLINDFUSE_EXCHANGE_IF(bits, weak)
BLINDFUSE_ATOMIC(8)
BLINDFUSE_ATOMIC(16)
BLINDFUSE_ATOMIC(32)
BLINDFUSE_ATOMIC(64)
#undef BLINDFUSE_ATOMIC
#undef BLINDFUSE_EXCHANGE_IF
#undef BLINDFUSE_UPDATE

}  // extern "C"
