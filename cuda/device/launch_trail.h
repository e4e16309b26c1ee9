// The work that was put into streams and not waited for yet. CUDA reports a fault of a kernel at
// some later call, which may be unrelated to it. So the message names the work that was running.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace blindfuse::launch_trail {

// All of these: any thread. `what`: a kernel's name, or a description for people of the work to
// which the kernels after it belong. Of the work that is noted without ever being waited for, the
// latest is kept. A kernel that is noted very often takes the place of its own earlier notes.
void note(cudaStream_t stream, std::string what);

// The number of notes so far, for forget().
uint64_t position();

// The work that was noted for this stream up to that position is done, without an error.
void forget(cudaStream_t stream, uint64_t up_to);

// "" if there is nothing. Otherwise text for the end of a message, in which equal neighbours are
// counted: "; in the device since the last good wait: a batch of 3 queries, cut_bit_sequences,
// scan_mma<16> (2 times)".
std::string text();

}  // namespace blindfuse::launch_trail
