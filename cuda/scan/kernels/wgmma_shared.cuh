// wgmma with both operands in shared memory (wgmma.cuh has it with one in registers). Only code for
// compute capability 9.0a has it; other code that comes here stops.
//
// PTX ISA, "wgmma.mma_async": m64nNk32 of signed bytes, A and B by descriptors.
//
// tests/cuda/emulator.h has the same for the CPU, and stands in for this file there.
#ifndef BLINDFUSE_CUDA_WGMMA_SHARED_CUH
#define BLINDFUSE_CUDA_WGMMA_SHARED_CUH

#include <cstdint>

namespace blindfuse {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BLINDFUSE_WGMMA(...) asm volatile(__VA_ARGS__)
#else
#define BLINDFUSE_WGMMA(...) __trap()
#endif

// The names of eight registers, and of 16, 32 and 64 of them.
#define BLINDFUSE_NAMES_0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define BLINDFUSE_NAMES_8 "%8, %9, %10, %11, %12, %13, %14, %15"
#define BLINDFUSE_NAMES_16 "%16, %17, %18, %19, %20, %21, %22, %23"
#define BLINDFUSE_NAMES_24 "%24, %25, %26, %27, %28, %29, %30, %31"
#define BLINDFUSE_NAMES_32 "%32, %33, %34, %35, %36, %37, %38, %39"
#define BLINDFUSE_NAMES_40 "%40, %41, %42, %43, %44, %45, %46, %47"
#define BLINDFUSE_NAMES_48 "%48, %49, %50, %51, %52, %53, %54, %55"
#define BLINDFUSE_NAMES_56 "%56, %57, %58, %59, %60, %61, %62, %63"
#define BLINDFUSE_NAMES_64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define BLINDFUSE_NAMES_72 "%72, %73, %74, %75, %76, %77, %78, %79"
#define BLINDFUSE_NAMES_80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define BLINDFUSE_NAMES_88 "%88, %89, %90, %91, %92, %93, %94, %95"
#define BLINDFUSE_NAMES_96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define BLINDFUSE_NAMES_104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define BLINDFUSE_NAMES_112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define BLINDFUSE_NAMES_120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define BLINDFUSE_SUMS_8(i)                                                                  \
  "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3]), "+r"(sums[i + 4]), \
      "+r"(sums[i + 5]), "+r"(sums[i + 6]), "+r"(sums[i + 7])
#define BLINDFUSE_SUMS_16(i) BLINDFUSE_SUMS_8(i), BLINDFUSE_SUMS_8(i + 8)
#define BLINDFUSE_SUMS_32(i) BLINDFUSE_SUMS_16(i), BLINDFUSE_SUMS_16(i + 16)
#define BLINDFUSE_SUMS_64(i) BLINDFUSE_SUMS_32(i), BLINDFUSE_SUMS_32(i + 32)

// sums += a * b for 64 x 32 signed bytes times 32 x kLimbRows. Row m of a has 32 bytes in row m of
// what its descriptor describes, column n of b in row n. The sums are laid out as in wgmma.cuh.
// Wraps.
template <int kLimbRows>
__device__ __forceinline__ void wgmma_s8_s8_shared(int32_t (&sums)[kLimbRows / 2], uint64_t a,
                                                   uint64_t b);

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<16>(int32_t (&sums)[8], uint64_t a, uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  "}, %8, %9, 1;"
                  : BLINDFUSE_SUMS_8(0)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<32>(int32_t (&sums)[16], uint64_t a,
                                                       uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 "}, %16, %17, 1;"
                  : BLINDFUSE_SUMS_16(0)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<64>(int32_t (&sums)[32], uint64_t a,
                                                       uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                  "}, %32, %33, 1;"
                  : BLINDFUSE_SUMS_32(0)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<96>(int32_t (&sums)[48], uint64_t a,
                                                       uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n96k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                  ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 "}, %48, %49, 1;"
                  : BLINDFUSE_SUMS_32(0), BLINDFUSE_SUMS_16(32)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<128>(int32_t (&sums)[64], uint64_t a,
                                                        uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                  ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                  ", " BLINDFUSE_NAMES_56 "}, %64, %65, 1;"
                  : BLINDFUSE_SUMS_64(0)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<192>(int32_t (&sums)[96], uint64_t a,
                                                        uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n192k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                  ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                  ", " BLINDFUSE_NAMES_56 ", " BLINDFUSE_NAMES_64 ", " BLINDFUSE_NAMES_72
                  ", " BLINDFUSE_NAMES_80 ", " BLINDFUSE_NAMES_88 "}, %96, %97, 1;"
                  : BLINDFUSE_SUMS_64(0), BLINDFUSE_SUMS_32(64)
                  : "l"(a), "l"(b));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8_shared<256>(int32_t (&sums)[128], uint64_t a,
                                                        uint64_t b) {
  BLINDFUSE_WGMMA("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" BLINDFUSE_NAMES_0
                  ", " BLINDFUSE_NAMES_8 ", " BLINDFUSE_NAMES_16 ", " BLINDFUSE_NAMES_24
                  ", " BLINDFUSE_NAMES_32 ", " BLINDFUSE_NAMES_40 ", " BLINDFUSE_NAMES_48
                  ", " BLINDFUSE_NAMES_56 ", " BLINDFUSE_NAMES_64 ", " BLINDFUSE_NAMES_72
                  ", " BLINDFUSE_NAMES_80 ", " BLINDFUSE_NAMES_88 ", " BLINDFUSE_NAMES_96
                  ", " BLINDFUSE_NAMES_104 ", " BLINDFUSE_NAMES_112 ", " BLINDFUSE_NAMES_120
                  "}, %128, %129, 1;"
                  : BLINDFUSE_SUMS_64(0), BLINDFUSE_SUMS_64(64)
                  : "l"(a), "l"(b));
}

#undef BLINDFUSE_SUMS_64
#undef BLINDFUSE_SUMS_32
#undef BLINDFUSE_SUMS_16
#undef BLINDFUSE_SUMS_8
#undef BLINDFUSE_NAMES_0
#undef BLINDFUSE_NAMES_8
#undef BLINDFUSE_NAMES_16
#undef BLINDFUSE_NAMES_24
#undef BLINDFUSE_NAMES_32
#undef BLINDFUSE_NAMES_40
#undef BLINDFUSE_NAMES_48
#undef BLINDFUSE_NAMES_56
#undef BLINDFUSE_NAMES_64
#undef BLINDFUSE_NAMES_72
#undef BLINDFUSE_NAMES_80
#undef BLINDFUSE_NAMES_88
#undef BLINDFUSE_NAMES_96
#undef BLINDFUSE_NAMES_104
#undef BLINDFUSE_NAMES_112
#undef BLINDFUSE_NAMES_120
#undef BLINDFUSE_WGMMA

}  // namespace blindfuse

#endif
