// Memory of strings and vectors that are not needed any more.
#pragma once

namespace blindfuse {

// Empties a string or a vector, and gives its memory back. An assignment of {} or of an empty
// string keeps the memory.
template <typename Container>
void release_memory(Container& container) {
  Container().swap(container);
}

}  // namespace blindfuse
