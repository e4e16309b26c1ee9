// Releases memory of strings and vectors that are not needed any more.
#pragma once

namespace blindfuse {

// Empties a string or a vector, and frees its memory. An assignment of {} or of an empty string
// would keep the memory.
template <typename Container>
void release_memory(Container& container) {
  Container().swap(container);
}

}  // namespace blindfuse
