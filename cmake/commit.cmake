# The commit of the source, for --version of the programs: a file that is made in every build, and changes with the commit.
# The programs alone link it, so that nothing else is compiled or linked again. Where there is no git, as in an unpacked
# archive, the commit is "unknown".
#
#   cmake -DSOURCE=FOLDER -DOUTPUT=commit.cpp -P commit.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  if(EXISTS ${SOURCE}/.git)
    execute_process(COMMAND git --git-dir=${SOURCE}/.git --work-tree=${SOURCE} describe --always --exclude=* --abbrev=12 --dirty
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT commit)
    set(commit unknown)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Written by cmake/commit.cmake.\nnamespace blindfuse {\nextern const char* const kSourceCommit;\nconst char* const kSourceCommit = \"${commit}\";\n}\n")
  return()
endif()

set(commit_source ${CMAKE_BINARY_DIR}/generated/commit.cpp)
add_custom_target(blindfuse_commit
                  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${commit_source}
                          -P ${CMAKE_CURRENT_LIST_FILE}
                  BYPRODUCTS ${commit_source} VERBATIM)
# blindfuse_add_commit(PROGRAM): the program knows the commit of its source.
function(blindfuse_add_commit program)
  target_sources(${program} PRIVATE ${CMAKE_BINARY_DIR}/generated/commit.cpp)
  set_source_files_properties(${CMAKE_BINARY_DIR}/generated/commit.cpp PROPERTIES GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(${program} blindfuse_commit)
endfunction()
blindfuse_add_commit(blindfuse)
blindfuse_add_commit(blindfuse-client)
