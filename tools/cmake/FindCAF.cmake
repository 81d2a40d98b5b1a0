# Finds the C++ Actor Framework: imported targets CAF::core and CAF::io (and other components asked for).
# Debian's 0.17.6 ships no CMake files, so its headers and libraries are looked up by hand;
# newer versions bring a config file, which wins. CAF_ROOT points to another prefix.
include(FindPackageHandleStandardArgs)

if(NOT CAF_FIND_COMPONENTS)
  set(CAF_FIND_COMPONENTS core io)
endif()

# CAF's version file accepts only the same major version, so each is tried by its name.
foreach(_caf_major IN ITEMS 1 0)
  if(NOT TARGET CAF::core)
    find_package(CAF ${_caf_major} QUIET CONFIG)
  endif()
endforeach()

if(NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  find_path(CAF_INCLUDE_DIR caf/config.hpp HINTS ${CAF_ROOT} PATH_SUFFIXES include)
  mark_as_advanced(CAF_INCLUDE_DIR)
  if(CAF_INCLUDE_DIR)
    # "#define CAF_VERSION 1706" is 0.17.6: two decimal digits each for minor and patch.
    file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp _caf_line REGEX "^#define CAF_VERSION [0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" _caf_number "${_caf_line}")
    if(_caf_number)
      math(EXPR _caf_major "${_caf_number} / 10000")
      math(EXPR _caf_minor "${_caf_number} / 100 % 100")
      math(EXPR _caf_patch "${_caf_number} % 100")
      set(CAF_VERSION ${_caf_major}.${_caf_minor}.${_caf_patch})
    endif()
  endif()
  foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
    find_library(CAF_${_caf_component}_LIBRARY caf_${_caf_component} HINTS ${CAF_ROOT} PATH_SUFFIXES lib)
    mark_as_advanced(CAF_${_caf_component}_LIBRARY)
    if(CAF_INCLUDE_DIR AND CAF_${_caf_component}_LIBRARY)
      add_library(CAF::${_caf_component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${_caf_component} PROPERTIES
        IMPORTED_LOCATION ${CAF_${_caf_component}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
        INTERFACE_LINK_LIBRARIES "$<IF:$<STREQUAL:${_caf_component},core>,Threads::Threads,CAF::core>")
    endif()
  endforeach()
endif()

foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
  if(TARGET CAF::${_caf_component})
    set(CAF_${_caf_component}_FOUND TRUE)
  endif()
endforeach()
find_package_handle_standard_args(CAF VERSION_VAR CAF_VERSION HANDLE_COMPONENTS
  REQUIRED_VARS CAF_VERSION
  REASON_FAILURE_MESSAGE "Run tools/setup, install libcaf-dev, or set CAF_ROOT.")
