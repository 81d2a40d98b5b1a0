# cmake -P: install BINARY_DIR into a scratch prefix, build each sample outside the tree against it, run it.
set(scratch $ENV{TMPDIR})
if(NOT scratch)
  set(scratch /tmp)
endif()
string(RANDOM LENGTH 8 suffix)
set(scratch ${scratch}/troupe-consumer-${suffix})

function(run)
  list(JOIN ARGV " " line)
  message(STATUS "${line}")
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE_RECURSE ${scratch})
    message(FATAL_ERROR "failed (${status}): ${line}")
  endif()
endfunction()

function(build_outside sample component)
  file(COPY ${SAMPLES_DIR}/${sample}/ DESTINATION ${scratch}/${sample})
  # not by file(COPY): that keeps a file of the same time, which all of a fresh clone are
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/outside/CMakeLists.txt ${scratch}/${sample}/CMakeLists.txt)
  run(${CMAKE_COMMAND} -G Ninja -S ${scratch}/${sample} -B ${scratch}/${sample}/build -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_PREFIX_PATH=${scratch}/prefix
    -D SAMPLE=${sample} -D COMPONENT=${component} ${ARGN})
  run(${CMAKE_COMMAND} --build ${scratch}/${sample}/build)
  run(${scratch}/${sample}/build/${sample})
endfunction()

run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${scratch}/prefix)
build_outside(hello_pool actors -D CMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON)  # the actors need no LibTorch
build_outside(custom_module stage)
file(REMOVE_RECURSE ${scratch})
