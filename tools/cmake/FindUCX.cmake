# Finds UCX: imported target UCX::ucp. UCX_ROOT names a site's own; then the wheel that tools/setup puts into .deps/venv;
# then Debian's libucx-dev.
include(FindPackageHandleStandardArgs)

file(GLOB _ucx_wheels ${CMAKE_CURRENT_LIST_DIR}/../../.deps/venv/lib/python3*/site-packages/libucx)
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h HINTS ${UCX_ROOT} ENV UCX_ROOT ${TROUPE_UCX_HINT} ${_ucx_wheels} PATH_SUFFIXES include)
mark_as_advanced(UCX_INCLUDE_DIR)
if(UCX_INCLUDE_DIR)
  cmake_path(GET UCX_INCLUDE_DIR PARENT_PATH UCX_ROOT_DIR)
  file(STRINGS ${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h _ucx_lines REGEX "#define UCP_API_(MAJOR|MINOR)")
  string(REGEX REPLACE "[^0-9;]" "" _ucx_numbers "${_ucx_lines}")
  list(JOIN _ucx_numbers "." UCX_VERSION)
  foreach(_ucx_library IN ITEMS ucp ucs)
    find_library(UCX_${_ucx_library}_LIBRARY ${_ucx_library} HINTS ${UCX_ROOT_DIR} PATH_SUFFIXES lib)
    mark_as_advanced(UCX_${_ucx_library}_LIBRARY)
  endforeach()
endif()

find_package_handle_standard_args(UCX VERSION_VAR UCX_VERSION
  REQUIRED_VARS UCX_INCLUDE_DIR UCX_ucp_LIBRARY UCX_ucs_LIBRARY
  REASON_FAILURE_MESSAGE "Run tools/setup, install libucx-dev, set UCX_ROOT, or build without it: -DTROUPE_WITH_UCX=OFF.")

if(UCX_FOUND AND NOT TARGET UCX::ucp)
  foreach(_ucx_library IN ITEMS ucs ucp)
    add_library(UCX::${_ucx_library} UNKNOWN IMPORTED)
    set_target_properties(UCX::${_ucx_library} PROPERTIES IMPORTED_LOCATION ${UCX_${_ucx_library}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${UCX_INCLUDE_DIR})
  endforeach()
  set_property(TARGET UCX::ucp PROPERTY INTERFACE_LINK_LIBRARIES UCX::ucs)
endif()
