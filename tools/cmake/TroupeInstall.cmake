# Install rules: each component is an export set of its own, so that a program that asks for
# COMPONENTS actors needs no LibTorch. troupeConfig.cmake knows who needs whom.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(TROUPE_CONFIG_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
set(TROUPE_MODULE_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(troupe_install_component name)
  install(TARGETS troupe_${name} EXPORT troupe_${name} FILE_SET HEADERS)
  install(EXPORT troupe_${name} NAMESPACE troupe:: FILE troupe_${name}.cmake DESTINATION ${TROUPE_CONFIG_FOLDER})
  set(components ${ARGN})
  list(FILTER components INCLUDE REGEX "^troupe::")
  list(TRANSFORM components REPLACE "^troupe::" "")
  set(packages ${ARGN})
  list(FILTER packages INCLUDE REGEX "::")
  list(FILTER packages EXCLUDE REGEX "^troupe::")
  list(TRANSFORM packages REPLACE "::.*" "")
  list(TRANSFORM packages REPLACE "^tl$" "tl-expected")
  list(REMOVE_DUPLICATES packages)
  set_property(GLOBAL APPEND PROPERTY TROUPE_COMPONENTS ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY TROUPE_NEEDS
    "set(_troupe_components_${name} ${components})\nset(_troupe_packages_${name} ${packages})\n")
endfunction()

function(troupe_install_package)
  get_property(components GLOBAL PROPERTY TROUPE_COMPONENTS)
  get_property(needs GLOBAL PROPERTY TROUPE_NEEDS)
  list(JOIN components " " components)
  configure_package_config_file(${TROUPE_MODULE_FOLDER}/troupeConfig.cmake.in
    ${PROJECT_BINARY_DIR}/troupeConfig.cmake INSTALL_DESTINATION ${TROUPE_CONFIG_FOLDER})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/troupeConfig.cmake ${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake
    ${TROUPE_MODULE_FOLDER}/FindCAF.cmake ${TROUPE_MODULE_FOLDER}/FindLibTorch.cmake ${TROUPE_MODULE_FOLDER}/FindUCX.cmake
    DESTINATION ${TROUPE_CONFIG_FOLDER})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endfunction()
