# cmake -DOUTPUT=build_id.js -DFILES=FILE,FILE,... -P build_id.cmake: names a build by the bytes of its files, so that
# files of two builds, which a browser may get while a site is updated, do not work with each other.
string(REPLACE "," ";" files "${FILES}")
set(hashes)
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 id "${hashes}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUTPUT} "// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0\n// Made by client/web/build_id.cmake.\nexport const buildId = '${id}';\n")
