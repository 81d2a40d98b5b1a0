# Finds LibTorch inside a Python environment: imported target LibTorch::cpu (c10 and torch_cpu).
#
# The wheel's own TorchConfig.cmake is not used: it needs nvcc even to link the CPU library, fails
# with CUDA 13 and C++20 under CMake 3.25, and overwrites CMAKE_CUDA_ARCHITECTURES.
# TROUPE_LIBTORCH_ROOT names the folder `torch` of a site-packages folder; the default is the
# environment that tools/setup makes in .deps/venv.
include(FindPackageHandleStandardArgs)

file(GLOB _torch_defaults ${CMAKE_CURRENT_LIST_DIR}/../../.deps/venv/lib/python3*/site-packages/torch)
set(TROUPE_LIBTORCH_ROOT "" CACHE PATH "The folder torch of a Python environment; empty: the one of tools/setup")
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h NO_DEFAULT_PATH
  HINTS ${TROUPE_LIBTORCH_ROOT} ${TROUPE_LIBTORCH_HINT} ${_torch_defaults} PATH_SUFFIXES include)
mark_as_advanced(LibTorch_INCLUDE_DIR)

if(LibTorch_INCLUDE_DIR)
  cmake_path(GET LibTorch_INCLUDE_DIR PARENT_PATH LibTorch_ROOT_DIR)
  file(STRINGS ${LibTorch_ROOT_DIR}/version.py _torch_line REGEX "^__version__" LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${_torch_line}")
  # libtorch_cpu.so needs these two although nothing here calls CUDA. The environment's own come
  # first: they match the build of the wheel. A toolkit's are taken where the wheel came alone.
  file(GLOB _torch_folders ${LibTorch_ROOT_DIR}/../nvidia/*/lib)
  file(GLOB _torch_toolkits $ENV{CUDA_HOME} /usr/local/cuda /usr/local/cuda-13*)
  foreach(_torch_folder IN LISTS _torch_toolkits)
    list(APPEND _torch_folders ${_torch_folder}/lib64 ${_torch_folder}/lib ${_torch_folder}/extras/CUPTI/lib64)
  endforeach()
  foreach(_torch_library IN ITEMS cudart cupti)
    find_library(LibTorch_${_torch_library}_LIBRARY lib${_torch_library}.so.13 HINTS ${_torch_folders})
    mark_as_advanced(LibTorch_${_torch_library}_LIBRARY)
  endforeach()
endif()

find_package_handle_standard_args(LibTorch VERSION_VAR LibTorch_VERSION
  REQUIRED_VARS LibTorch_INCLUDE_DIR LibTorch_cudart_LIBRARY LibTorch_cupti_LIBRARY
  REASON_FAILURE_MESSAGE "Run tools/setup, or set TROUPE_LIBTORCH_ROOT to the folder torch of a Python \
environment, or build without it: -DTROUPE_WITH_TORCH=OFF.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(LibTorch_c10_LIBRARY ${LibTorch_ROOT_DIR}/lib/libc10.so)
  set(LibTorch_torch_cpu_LIBRARY ${LibTorch_ROOT_DIR}/lib/libtorch_cpu.so)
  set(LibTorch_gomp_LIBRARY ${LibTorch_ROOT_DIR}/lib/libgomp.so.1)  # the wheel's own: one OpenMP per process
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  foreach(_torch_library IN ITEMS torch_cpu c10 gomp cudart cupti)
    add_library(LibTorch::${_torch_library} SHARED IMPORTED)
    set_target_properties(LibTorch::${_torch_library} PROPERTIES IMPORTED_LOCATION ${LibTorch_${_torch_library}_LIBRARY})
    set_property(TARGET LibTorch::cpu APPEND PROPERTY INTERFACE_LINK_LIBRARIES LibTorch::${_torch_library})
  endforeach()
  # torch/include also holds fmt/ and google/: as the last folders searched, they hide no installed copy.
  set_target_properties(LibTorch::cpu PROPERTIES INTERFACE_COMPILE_OPTIONS
    "SHELL:-idirafter ${LibTorch_INCLUDE_DIR};SHELL:-idirafter ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include")
endif()
