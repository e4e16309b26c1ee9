# The page that the server shows to browsers, put into the program: one file to copy, nothing to install next to it.
# Without the client for browsers (cmake/web.cmake) there is no page, and the server says so at /.
set(page_folder ${CMAKE_BINARY_DIR}/page)
set(page_source ${CMAKE_BINARY_DIR}/generated/host/server/routes/page_files.cpp)
set(page_assembly "")
set(page_declarations "")
set(page_entries "")
set(page_dependencies "")

# Makes `file` what the server answers at `path`, both as it is and compressed.
function(embed_page_file path file)
  set(types_html "text/html; charset=utf-8")
  set(types_css "text/css; charset=utf-8")
  set(types_js "text/javascript; charset=utf-8")
  set(types_ts "text/plain; charset=utf-8")
  set(types_svg "image/svg+xml")
  set(types_wasm "application/wasm")
  string(REGEX REPLACE ".*\\." "" extension ${file})
  if(NOT DEFINED types_${extension})
    message(FATAL_ERROR "${file}: cmake/page.cmake knows no content type for .${extension}")
  endif()
  string(MAKE_C_IDENTIFIER "page${path}" name)
  set(compressed ${page_folder}/${name}.gz)
  add_custom_command(OUTPUT ${compressed}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${page_folder}
                     COMMAND ${BLINDFUSE_GZIP} -9nc ${file} > ${compressed}
                     DEPENDS ${file} VERBATIM)
  foreach(part bytes gzip)
    set(bytes_of ${file})
    if(part STREQUAL "gzip")
      set(bytes_of ${compressed})
    endif()
    string(APPEND page_assembly
           "    \".hidden ${name}_${part}\\n.hidden ${name}_${part}_end\\n\"\n"
           "    \".globl ${name}_${part}\\n.globl ${name}_${part}_end\\n\"\n"
           "    \"${name}_${part}: .incbin \\\"${bytes_of}\\\"\\n${name}_${part}_end:\\n\"\n")
    string(APPEND page_declarations
           "extern const uint8_t ${name}_${part}[], ${name}_${part}_end[];\n")
  endforeach()
  string(APPEND page_entries "      {\"${path}\", \"${types_${extension}}\",\n"
         "       {${name}_bytes, ${name}_bytes_end}, {${name}_gzip, ${name}_gzip_end}},\n")
  list(APPEND page_dependencies ${file} ${compressed})
  foreach(variable page_assembly page_declarations page_entries page_dependencies)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
endfunction()

if(TARGET blindfuse_web)
  embed_page_file(/ ${CMAKE_SOURCE_DIR}/client/web/page/index.html)
  file(GLOB page_files CONFIGURE_DEPENDS client/web/page/*.css client/web/page/*.js client/web/page/*.svg)
  foreach(file IN LISTS page_files)
    cmake_path(GET file FILENAME name)
    embed_page_file(/page/${name} ${file})
  endforeach()
  # The target's own list of what it makes: modules, workers and WebAssembly, which import each other by name.
  get_target_property(client_files blindfuse_web BLINDFUSE_FILES)
  if(NOT client_files)
    message(FATAL_ERROR "cmake/web.cmake has to say in the property BLINDFUSE_FILES what blindfuse_web makes")
  endif()
  foreach(file IN LISTS client_files)
    cmake_path(GET file FILENAME name)
    embed_page_file(/client/${name} ${file})
  endforeach()
else()
  message(STATUS "No Emscripten (em++): the server will have no page for browsers at /")
endif()

if(page_entries)
  set(page_body "  static const PageFile kFiles[] = {\n${page_entries}  };\n  return kFiles;")
  set(page_assembly "asm(\".section .rodata\\n\"\n${page_assembly}    \".previous\\n\");\n\nextern \"C\" {\n${page_declarations}}")
else()
  set(page_body "  return {};")
endif()
configure_file(host/server/routes/page_files.cpp.in ${page_source} @ONLY)
if(page_dependencies)
  # By itself: in a unity build nothing would follow from what it depends on, and the program would keep the former page.
  set_source_files_properties(${page_source} PROPERTIES OBJECT_DEPENDS "${page_dependencies}"
                              SKIP_UNITY_BUILD_INCLUSION ON)
endif()
target_sources(blindfuse_host_server PRIVATE ${page_source})
