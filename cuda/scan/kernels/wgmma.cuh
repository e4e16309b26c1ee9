// Hopper's own instructions: products of a warpgroup (128 threads that begin at a multiple of 128),
// started now and done later. Only code for compute capability 9.0a has them; other code that comes
// here stops.
//
// tests/cuda/emulator.h has the same for the CPU, and stands in for this file there.
#ifndef BLINDFUSE_CUDA_WGMMA_CUH
#define BLINDFUSE_CUDA_WGMMA_CUH

#include <cstdint>

#include "cuda/scan/kernels/wgmma_descriptor.h"

namespace blindfuse {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BLINDFUSE_WGMMA(...) asm volatile(__VA_ARGS__)
constexpr bool kHasWgmma = true;
#else
#define BLINDFUSE_WGMMA(...) __trap()
constexpr bool kHasWgmma = false;
#endif

// True if the running code contains these instructions. A GPU of compute capability 9.0 runs other
// code if its driver compiles the PTX instead (CUDA_FORCE_PTX_JIT).
__device__ __forceinline__ bool runs_wgmma_code() { return kHasWgmma; }

// The products that are started after the next barrier see what this thread wrote to shared memory,
// its asynchronous copies included.
__device__ __forceinline__ void publish_shared() {
  BLINDFUSE_WGMMA("fence.proxy.async.shared::cta;" ::: "memory");
}
// Products read and write their registers while the program goes on. These keep the compiler from
// moving anything that touches them across: before wgmma_fence(), and after wgmma_wait().
template <int kCount>
__device__ __forceinline__ void pin(int32_t (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}
__device__ __forceinline__ void pin(uint4& v) {
  asm volatile("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)::"memory");
}

// Makes registers that were written ready for the products that are started next.
__device__ __forceinline__ void wgmma_fence() {
  BLINDFUSE_WGMMA("wgmma.fence.sync.aligned;" ::: "memory");
}
// Called right after the last of the products that are waited for together.
__device__ __forceinline__ void wgmma_commit() {
  BLINDFUSE_WGMMA("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until all committed groups are done, except the last kPending ones. Their operands may then
// change, and the sums may be read.
template <int kPending = 0>
__device__ __forceinline__ void wgmma_wait() {
  BLINDFUSE_WGMMA("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ uint64_t operand_descriptor(const uint8_t* operand) {
  return wgmma_descriptor(static_cast<uint32_t>(__cvta_generic_to_shared(operand)));
}

// sums += a * b for 64 x 32 signed bytes times 32 x kLimbRows. Each warp has 16 of the 64 rows, its
// fragments as for mma.m16n8k32: sums[4 j .. 4 j + 3] are those of columns 8 j .. 8 j + 7. b is
// read from shared memory: column n has 32 bytes in row n of what the descriptor describes. Wraps.
template <int kLimbRows>
__device__ __forceinline__ void wgmma_s8_s8(int32_t (&sums)[kLimbRows / 2], const uint32_t (&a)[4],
                                            const uint8_t* limbs);

template <>
__device__ __forceinline__ void wgmma_s8_s8<32>(int32_t (&sums)[16], const uint32_t (&a)[4],
                                                const uint8_t* limbs) {
  BLINDFUSE_WGMMA(
      "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19}, %20, 1;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]),
        "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]),
        "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand_descriptor(limbs)));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8<64>(int32_t (&sums)[32], const uint32_t (&a)[4],
                                                const uint8_t* limbs) {
  BLINDFUSE_WGMMA(
      "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, 1;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]),
        "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]),
        "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]),
        "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]),
        "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]),
        "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand_descriptor(limbs)));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8<128>(int32_t (&sums)[64], const uint32_t (&a)[4],
                                                 const uint8_t* limbs) {
  BLINDFUSE_WGMMA(
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]),
        "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]),
        "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]),
        "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]),
        "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]),
        "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31]),
        "+r"(sums[32]), "+r"(sums[33]), "+r"(sums[34]), "+r"(sums[35]), "+r"(sums[36]),
        "+r"(sums[37]), "+r"(sums[38]), "+r"(sums[39]), "+r"(sums[40]), "+r"(sums[41]),
        "+r"(sums[42]), "+r"(sums[43]), "+r"(sums[44]), "+r"(sums[45]), "+r"(sums[46]),
        "+r"(sums[47]), "+r"(sums[48]), "+r"(sums[49]), "+r"(sums[50]), "+r"(sums[51]),
        "+r"(sums[52]), "+r"(sums[53]), "+r"(sums[54]), "+r"(sums[55]), "+r"(sums[56]),
        "+r"(sums[57]), "+r"(sums[58]), "+r"(sums[59]), "+r"(sums[60]), "+r"(sums[61]),
        "+r"(sums[62]), "+r"(sums[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand_descriptor(limbs)));
}

template <>
__device__ __forceinline__ void wgmma_s8_s8<256>(int32_t (&sums)[128], const uint32_t (&a)[4],
                                                 const uint8_t* limbs) {
  BLINDFUSE_WGMMA(
      "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "{%128, %129, %130, %131}, %132, 1;"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]), "+r"(sums[4]), "+r"(sums[5]),
        "+r"(sums[6]), "+r"(sums[7]), "+r"(sums[8]), "+r"(sums[9]), "+r"(sums[10]), "+r"(sums[11]),
        "+r"(sums[12]), "+r"(sums[13]), "+r"(sums[14]), "+r"(sums[15]), "+r"(sums[16]),
        "+r"(sums[17]), "+r"(sums[18]), "+r"(sums[19]), "+r"(sums[20]), "+r"(sums[21]),
        "+r"(sums[22]), "+r"(sums[23]), "+r"(sums[24]), "+r"(sums[25]), "+r"(sums[26]),
        "+r"(sums[27]), "+r"(sums[28]), "+r"(sums[29]), "+r"(sums[30]), "+r"(sums[31]),
        "+r"(sums[32]), "+r"(sums[33]), "+r"(sums[34]), "+r"(sums[35]), "+r"(sums[36]),
        "+r"(sums[37]), "+r"(sums[38]), "+r"(sums[39]), "+r"(sums[40]), "+r"(sums[41]),
        "+r"(sums[42]), "+r"(sums[43]), "+r"(sums[44]), "+r"(sums[45]), "+r"(sums[46]),
        "+r"(sums[47]), "+r"(sums[48]), "+r"(sums[49]), "+r"(sums[50]), "+r"(sums[51]),
        "+r"(sums[52]), "+r"(sums[53]), "+r"(sums[54]), "+r"(sums[55]), "+r"(sums[56]),
        "+r"(sums[57]), "+r"(sums[58]), "+r"(sums[59]), "+r"(sums[60]), "+r"(sums[61]),
        "+r"(sums[62]), "+r"(sums[63]), "+r"(sums[64]), "+r"(sums[65]), "+r"(sums[66]),
        "+r"(sums[67]), "+r"(sums[68]), "+r"(sums[69]), "+r"(sums[70]), "+r"(sums[71]),
        "+r"(sums[72]), "+r"(sums[73]), "+r"(sums[74]), "+r"(sums[75]), "+r"(sums[76]),
        "+r"(sums[77]), "+r"(sums[78]), "+r"(sums[79]), "+r"(sums[80]), "+r"(sums[81]),
        "+r"(sums[82]), "+r"(sums[83]), "+r"(sums[84]), "+r"(sums[85]), "+r"(sums[86]),
        "+r"(sums[87]), "+r"(sums[88]), "+r"(sums[89]), "+r"(sums[90]), "+r"(sums[91]),
        "+r"(sums[92]), "+r"(sums[93]), "+r"(sums[94]), "+r"(sums[95]), "+r"(sums[96]),
        "+r"(sums[97]), "+r"(sums[98]), "+r"(sums[99]), "+r"(sums[100]), "+r"(sums[101]),
        "+r"(sums[102]), "+r"(sums[103]), "+r"(sums[104]), "+r"(sums[105]), "+r"(sums[106]),
        "+r"(sums[107]), "+r"(sums[108]), "+r"(sums[109]), "+r"(sums[110]), "+r"(sums[111]),
        "+r"(sums[112]), "+r"(sums[113]), "+r"(sums[114]), "+r"(sums[115]), "+r"(sums[116]),
        "+r"(sums[117]), "+r"(sums[118]), "+r"(sums[119]), "+r"(sums[120]), "+r"(sums[121]),
        "+r"(sums[122]), "+r"(sums[123]), "+r"(sums[124]), "+r"(sums[125]), "+r"(sums[126]),
        "+r"(sums[127])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand_descriptor(limbs)));
}

#undef BLINDFUSE_WGMMA

}  // namespace blindfuse

#endif
