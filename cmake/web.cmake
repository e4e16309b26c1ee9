# The browser client, where Emscripten is: built by a project of its own (client/web/CMakeLists.txt) into web/dist/, and
# its tests, which run under node, when they are run.
option(BLINDFUSE_WEB "Build the browser client if there is em++" ON)

if(NOT BLINDFUSE_WEB)
  message(STATUS "Browser client: switched off")
  return()
endif()
find_program(BLINDFUSE_EMXX em++)
find_program(BLINDFUSE_EMCMAKE emcmake)
if(NOT BLINDFUSE_EMXX OR NOT BLINDFUSE_EMCMAKE)
  message(STATUS "Browser client: not built; there is no em++ here (Debian's package emscripten)")
  return()
endif()

set(web ${CMAKE_BINARY_DIR}/web)
file(GLOB web_modules CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/client/web/*.js ${CMAKE_SOURCE_DIR}/client/web/*.d.ts)
list(TRANSFORM web_modules REPLACE ".*/" "${web}/dist/")
set(web_files ${web_modules} ${web}/dist/build_id.js ${web}/dist/blindfuse_core.js ${web}/dist/blindfuse_core.wasm)

include(ExternalProject)
ExternalProject_Add(blindfuse_web
  SOURCE_DIR ${CMAKE_SOURCE_DIR}/client/web
  BINARY_DIR ${web}
  PREFIX ${CMAKE_BINARY_DIR}/web-project
  CONFIGURE_COMMAND ${BLINDFUSE_EMCMAKE} ${CMAKE_COMMAND} -S <SOURCE_DIR> -B <BINARY_DIR>
    -DBLINDFUSE_WERROR=${BLINDFUSE_WERROR} -DBLINDFUSE_WEB_TESTS=${BLINDFUSE_TESTS}
  BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR>
  INSTALL_COMMAND ""
  BUILD_ALWAYS ON
  BUILD_BYPRODUCTS ${web_files}
  EXCLUDE_FROM_ALL OFF
  USES_TERMINAL_BUILD ON)

# The files that a page needs next to it.
set_target_properties(blindfuse_web PROPERTIES BLINDFUSE_FILES "${web_files}")

find_program(BLINDFUSE_NODE NAMES node nodejs)
if(BLINDFUSE_TESTS AND BLINDFUSE_NODE)
  enable_testing()
  # Above 2 GiB a pointer is negative, and slice() would take other memory than was meant.
  add_test(NAME web_core_takes_no_slices COMMAND ${CMAKE_COMMAND} -DFILE=${web}/dist/blindfuse_core.js
           -P ${CMAKE_SOURCE_DIR}/tests/web/no_heap_slices.cmake)
  # The library again, with GoogleTest: built when it is to be run.
  add_test(NAME web_tests_build COMMAND ${CMAKE_COMMAND} --build ${web} --target blindfuse_web_tests)
  set_tests_properties(web_tests_build PROPERTIES FIXTURES_SETUP web_tests TIMEOUT 1800)
  # Processes, threads and locks between them are what a browser does not have.
  set(not_in_a_browser *ManyThreads*:*AnotherClient*:*ClientsAtOnce*)
  add_test(NAME web_tests COMMAND ${BLINDFUSE_NODE} ${web}/tests/blindfuse_web_tests.js --gtest_filter=-${not_in_a_browser})
  set_tests_properties(web_tests PROPERTIES FIXTURES_REQUIRED web_tests TIMEOUT 900)
  add_test(NAME web_exchange COMMAND ${BLINDFUSE_NODE} --test ${CMAKE_SOURCE_DIR}/tests/web/exchange_test.mjs)
  add_test(NAME web_connect COMMAND ${BLINDFUSE_NODE} --test ${CMAKE_SOURCE_DIR}/tests/web/connect_test.mjs)
  add_test(NAME web_signatures COMMAND ${BLINDFUSE_NODE} --test ${CMAKE_SOURCE_DIR}/tests/web/signatures_test.mjs)
endif()
find_program(BLINDFUSE_TSC tsc)
if(BLINDFUSE_TESTS AND BLINDFUSE_TSC)
  add_test(NAME web_types_are_as_declared
           COMMAND ${BLINDFUSE_TSC} --strict --noEmit --target es2022 --module es2022 --lib es2022,dom
                   ${CMAKE_SOURCE_DIR}/tests/web/usage.ts)
endif()
message(STATUS "Browser client: in ${web}/dist")
