# The libraries that the client needs of the system.
function(blindfuse_require found library debian_package)
  if(NOT ${found})
    message(FATAL_ERROR "${library} is missing; on Debian: apt-get install ${debian_package}")
  endif()
endfunction()

find_package(OpenSSL QUIET COMPONENTS Crypto SSL)
blindfuse_require(OpenSSL_FOUND "OpenSSL, with its headers," libssl-dev)
find_package(nlohmann_json QUIET)
blindfuse_require(nlohmann_json_FOUND nlohmann_json nlohmann-json3-dev)
find_package(Boost 1.74 QUIET)
blindfuse_require(Boost_FOUND "Boost 1.74 or newer" libboost-dev)
