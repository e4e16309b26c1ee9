// What was put into streams and not waited for yet. CUDA reports a fault of a kernel at some later
// call, which need not have to do with it: so the message names what was running.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace blindfuse::launch_trail {

// Any thread, all of these. `what`: a kernel's name, or for people what kernels after it belong to.
// Of what is noted without ever being waited for, the latest is kept.
void note(cudaStream_t stream, std::string what);

// How much has been noted so far, for forget().
uint64_t position();

// What was noted for this stream up to that position is done, and went well.
void forget(cudaStream_t stream, uint64_t up_to);

// "" when there is nothing; otherwise for the end of a message, what is the same several times in a
// row once: "; in the device since the last good wait: a batch of 3 queries, cut_bit_sequences,
// scan_mma<16> (2 times)".
std::string text();

}  // namespace blindfuse::launch_trail
