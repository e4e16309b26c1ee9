# The files of an installed blindfuse other than its programs, and the Debian package, for `cpack` and `make package`.
set(BLINDFUSE_MAINTAINER "blindfuse maintainers <maintainers@blindfuse.example>" CACHE STRING
    "Who answers for the package: Name <address>")
set(BLINDFUSE_PACKAGE_RELEASE 1 CACHE STRING "Which package of this version it is")

include(GNUInstallDirs)
set(packaging ${CMAKE_SOURCE_DIR}/host/packaging)
set(packaged ${CMAKE_BINARY_DIR}/packaging)

# Debian wants manual pages and changelogs compressed.
function(install_compressed source name destination)
  execute_process(COMMAND ${BLINDFUSE_GZIP} -9nc ${source} OUTPUT_FILE ${packaged}/${name}.gz
                  COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  install(FILES ${packaged}/${name}.gz DESTINATION ${destination})
endfunction()

file(MAKE_DIRECTORY ${packaged})
file(GLOB pages CONFIGURE_DEPENDS ${packaging}/man/*.[15])
foreach(page IN LISTS pages)
  cmake_path(GET page FILENAME name)
  string(REGEX REPLACE ".*\\." "" section ${name})
  install_compressed(${page} ${name} ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# SOURCE_DATE_EPOCH, where it is set, is the time.
string(TIMESTAMP BLINDFUSE_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(${packaging}/debian/changelog.in ${packaged}/changelog.Debian @ONLY)
install_compressed(${packaged}/changelog.Debian changelog.Debian ${CMAKE_INSTALL_DOCDIR})
install_compressed(${CMAKE_SOURCE_DIR}/CHANGELOG.md changelog ${CMAKE_INSTALL_DOCDIR})

# As in the source tree, so that links between documents lead somewhere.
install(FILES ${packaging}/debian/copyright LICENSE NOTICE README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${packaging}/completion/blindfuse ${packaging}/completion/blindfuse-client
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN __pycache__ EXCLUDE)
install(FILES ${packaging}/systemd/gpu.conf ${packaging}/grafana/blindfuse.json ${packaging}/prometheus/alerts.yml
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${packaging}/nginx/blindfuse.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples RENAME nginx.conf)
# The unit names /usr/bin and /etc, whatever the prefix: it is the package's.
install(FILES ${packaging}/systemd/blindfuse.service ${packaging}/systemd/blindfuse-gpu-devices.service
        DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${packaging}/config/blindfuse.conf DESTINATION /etc/blindfuse COMPONENT service EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME blindfuse)
set(CPACK_PACKAGE_CONTACT "${BLINDFUSE_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
# One package with both components.
set(CPACK_COMPONENTS_ALL Unspecified service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${BLINDFUSE_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "server for private look-ups in a published database
A client asks for the value of one key, and the server does not learn which
key, nor whether it exists. It takes one server, no trusted hardware, and no
second, independent server.
.
This package has the operator's program, which builds a database from text
files or SQLite and serves it over HTTP, a systemd unit for it, and the client.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${packaged}/conffiles "/etc/blindfuse/blindfuse.conf\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${packaging}/debian/postinst ${packaging}/debian/prerm
    ${packaging}/debian/postrm ${packaged}/conffiles)
include(CPack)
