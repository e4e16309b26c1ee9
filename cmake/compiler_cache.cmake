# Compilers run through ccache where it is: what one copy of the source has compiled, another one takes
# from the cache, wherever it lies. Paths below the source are hashed relative to the build folder, and
# debugging information may name the folder of the copy that was compiled first.
option(BLINDFUSE_COMPILER_CACHE "Compile through ccache if there is one" ON)
find_program(BLINDFUSE_CCACHE ccache)
if(BLINDFUSE_COMPILER_CACHE AND BLINDFUSE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  get_filename_component(cache_base ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${cache_base} CCACHE_NOHASHDIR=1
               CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  if(EMSCRIPTEN)
    list(APPEND launcher CCACHE_COMPILERTYPE=clang)  # which the name em++ does not tell
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher} ${BLINDFUSE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher} ${BLINDFUSE_CCACHE})
endif()
