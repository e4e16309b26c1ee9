# What the client stands on: src, and the libraries that the client needs of the system.
function(blindfuse_require found library debian_package)
  if(NOT ${found})
    message(FATAL_ERROR "${library} is missing; on Debian: apt-get install ${debian_package}")
  endif()
endfunction()

find_package(OpenSSL QUIET COMPONENTS Crypto SSL)
blindfuse_require(OpenSSL_FOUND "OpenSSL, with its headers," libssl-dev)
find_package(nlohmann_json QUIET)
blindfuse_require(nlohmann_json_FOUND nlohmann_json nlohmann-json3-dev)
find_package(PkgConfig QUIET)
blindfuse_require(PkgConfig_FOUND pkg-config pkg-config)
pkg_check_modules(httplib QUIET IMPORTED_TARGET cpp-httplib)
blindfuse_require(httplib_FOUND cpp-httplib libcpp-httplib-dev)

# src: the protocol, what both sides compute.
file(GLOB protocol_sources CONFIGURE_DEPENDS src/*.cpp src/ring/*.cpp)
list(REMOVE_ITEM protocol_sources ${CMAKE_SOURCE_DIR}/src/errors.cpp ${CMAKE_SOURCE_DIR}/src/hex.cpp
     ${CMAKE_SOURCE_DIR}/src/bit_packing.cpp ${CMAKE_SOURCE_DIR}/src/ring/butterflies.cpp
     ${CMAKE_SOURCE_DIR}/src/ring/exact_products.cpp
     ${CMAKE_SOURCE_DIR}/src/ring/ring_transform.cpp)
add_library(blindfuse_protocol STATIC ${protocol_sources})
target_link_libraries(blindfuse_protocol PUBLIC blindfuse_ring OpenSSL::Crypto nlohmann_json::nlohmann_json)
compile_one_by_one(blindfuse_protocol)
