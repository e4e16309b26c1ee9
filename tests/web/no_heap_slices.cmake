# cmake -DFILE=blindfuse_core.js -P no_heap_slices.cmake: fails where the file takes a slice() of the heap, which would
# count a negative pointer from the heap's end, and so take, and send, other memory than was meant. Emscripten has one of
# its own, for files mapped into memory, which there are none of.
file(READ ${FILE} text)
string(REPLACE "doMsync:function(addr,stream,len,flags,offset){var buffer=HEAPU8.slice(" "" text "${text}")
string(REGEX MATCH "HEAP[A-Z]*[0-9]+[.]slice[(]" found "${text}")
if(text STREQUAL "" OR found)
  message(FATAL_ERROR "${FILE} is empty, or has ${found}...)")
endif()
