# Two interface targets: what every target is compiled with, and what the programs that run outside a user's process
# are compiled with besides. The injected libraries never carry a sanitizer: they live in processes that have none.
add_library(devsan_warnings INTERFACE)
target_compile_options(
  devsan_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wcast-align -Wconversion
                            -Wno-sign-conversion $<$<BOOL:${DEVSAN_WERROR}>:-Werror>)

add_library(devsan_sanitized INTERFACE)
target_link_libraries(devsan_sanitized INTERFACE devsan_warnings)
if(DEVSAN_SANITIZE)
  target_compile_options(devsan_sanitized INTERFACE -fsanitize=${DEVSAN_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(devsan_sanitized INTERFACE -fsanitize=${DEVSAN_SANITIZE})
endif()

# Last on the list of what a test is linked with. UBSan's checks of assertions take half of the time of compiling a test,
# and say nothing of devsan.
add_library(devsan_test_sources INTERFACE)
if(DEVSAN_SANITIZE)
  target_compile_options(devsan_test_sources INTERFACE -fno-sanitize=undefined)
endif()

# devsan_unify(TARGET [SIZE]): sources are compiled together, SIZE in one unit; those of one folder, without it. A name in
# an anonymous namespace then has to be the only one of its kind in its folder.
function(devsan_unify target)
  if(NOT DEVSAN_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  if(ARGC GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${ARGV1})
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}")
  endforeach()
endfunction()

# devsan_precompile(TARGET HEADER…): the headers are parsed once for the target.
function(devsan_precompile target)
  if(DEVSAN_PRECOMPILE)
    target_precompile_headers(
      ${target} PRIVATE <algorithm> <array> <cstring> <filesystem> <fstream> <functional> <map> <memory> <optional> <set>
      <span> <sstream> <string> <string_view> <utility> <variant> <vector> ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # as ccache needs it
  endif()
endfunction()
