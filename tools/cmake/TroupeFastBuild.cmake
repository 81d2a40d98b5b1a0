# Speeds up building Troupe itself with what the machine has; never used below another project.

find_program(TROUPE_CCACHE ccache)
mark_as_advanced(TROUPE_CCACHE)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache refuses to cache what uses a precompiled header unless told that a newer time stamp is fine.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TROUPE_CCACHE})
endif()

find_program(TROUPE_MOLD mold)
mark_as_advanced(TROUPE_MOLD)
if(TROUPE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
