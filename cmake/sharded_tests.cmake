# add_sharded_tests(NAME TARGET SHARDS FILTER [VARIABLE=VALUE...])
#
# The tests of a GoogleTest program as SHARDS tests of ctest, NAME_1 and so on: starting a process for every
# single test takes longer than the tests themselves. FILTER is as in --gtest_filter; the variables are put into the
# environment. Each shard leaves its results in test-results/NAME_1.xml of the build folder, where
# tests/run/count.py finds every single one.
function(add_sharded_tests name target shards filter)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${target} --gtest_filter=${filter})
    set(environment GTEST_TOTAL_SHARDS=${shards} GTEST_SHARD_INDEX=${index}
                    GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${name}_${shard}.xml ${ARGN})
    set_tests_properties(${name}_${shard} PROPERTIES TIMEOUT 900 ENVIRONMENT "${environment}")
  endforeach()
endfunction()
