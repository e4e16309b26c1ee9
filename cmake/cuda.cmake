# The CUDA engine, the layers of cuda/, where nvcc is: on PATH, or where NVIDIA installs it. The runtime is linked
# statically, so that the programs start on machines that have no CUDA, and the driver is looked for when they run.
option(BLINDFUSE_CUDA "Build the CUDA engine if there is nvcc" ON)

if(NOT BLINDFUSE_CUDA OR BLINDFUSE_ENGINE_ONLY)
  message(STATUS "Engines: CPU; CUDA is switched off")
  return()
endif()
find_program(BLINDFUSE_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
if(NOT BLINDFUSE_NVCC)
  message(STATUS "Engines: CPU; there is no nvcc here to build the CUDA engine with")
  return()
endif()

execute_process(COMMAND ${BLINDFUSE_NVCC} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
string(REGEX MATCH "V([0-9]+\\.[0-9]+)" nvcc_version "${nvcc_version}")
if(NOT CMAKE_MATCH_1 OR CMAKE_MATCH_1 VERSION_LESS 12.0)
  message(STATUS "Engines: CPU; the nvcc here is ${CMAKE_MATCH_1}, and CUDA 12 is needed for the CUDA engine")
  return()
endif()

# Ampere, Ada and Hopper as they are; later ones compile what is kept for compute capability 9.0.
set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 90-virtual)
set(CMAKE_CUDA_COMPILER ${BLINDFUSE_NVCC})
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25 does not know that nvcc has had C++20 since version 12.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)

set(cuda_layers cuda/device cuda/checks cuda/scan cuda/packing cuda/pipelines cuda)
blindfuse_add_layers(${cuda_layers})
foreach(folder IN LISTS cuda_layers)
  blindfuse_layer_target(layer ${folder})
  compile_one_by_one(${layer})
  # constexpr functions of src/ serve on the device, too.
  target_compile_options(${layer} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
      $<$<BOOL:${BLINDFUSE_WERROR}>:-Werror=all-warnings>>)
endforeach()
# Thrust takes most of nvcc's time. What it does here runs before a server answers, or after a product was wrong. Ada runs
# the code for 8.0, and Hopper the code for 9.0 without its own instructions. Later GPUs compile its PTX.
set_target_properties(blindfuse_cuda_checks PROPERTIES CUDA_ARCHITECTURES "80-real;90")
message(STATUS "Engines: CPU, and CUDA by nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
