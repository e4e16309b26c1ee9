# The client library: static for this project's own programs and tests, and as the shared library that `cmake --install`
# gives to others, who find it with find_package(blindfuse) as blindfuse::client. The shared one shows the public headers'
# classes alone.
blindfuse_add_layers(client/include/blindfuse client)
compile_one_by_one(blindfuse_client)

set_target_properties(blindfuse_base blindfuse_arithmetic blindfuse_protocol blindfuse_system blindfuse_client PROPERTIES
                      POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

configure_file(client/include/blindfuse/version.h.in generated/include/blindfuse/version.h @ONLY)
file(GLOB public_headers CONFIGURE_DEPENDS client/include/blindfuse/*.h src/include/blindfuse/*.h)
# Without the parts that read a program's command line.
add_library(blindfuse_client_shared SHARED
            "$<FILTER:$<TARGET_OBJECTS:blindfuse_client>,EXCLUDE,/key_text[.]cpp>")
blindfuse_link_layer(blindfuse_client_shared PRIVATE client)
target_sources(blindfuse_client_shared PUBLIC FILE_SET HEADERS
               BASE_DIRS client/include src/include ${CMAKE_BINARY_DIR}/generated/include
               FILES ${public_headers} ${CMAKE_BINARY_DIR}/generated/include/blindfuse/version.h)
# What it lacks is to be missed here, not by those who link with it; what a sanitizer adds comes later.
if(NOT BLINDFUSE_SANITIZE)
  target_link_options(blindfuse_client_shared PRIVATE LINKER:--no-undefined)
endif()
target_compile_features(blindfuse_client_shared INTERFACE cxx_std_20)
# Before 1.0.0 every minor version may change what it shows.
set_target_properties(blindfuse_client_shared PROPERTIES
                      OUTPUT_NAME blindfuse-client EXPORT_NAME client VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/blindfuse)
install(TARGETS blindfuse_client_shared EXPORT blindfuse COMPONENT client-library
        LIBRARY NAMELINK_COMPONENT client-library FILE_SET HEADERS COMPONENT client-library)
install(EXPORT blindfuse NAMESPACE blindfuse:: FILE blindfuse-config.cmake DESTINATION ${package}
        COMPONENT client-library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/blindfuse-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/blindfuse-config-version.cmake DESTINATION ${package} COMPONENT client-library)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/blindfuse COMPONENT client-library)
