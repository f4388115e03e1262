# The header-only libraries that devsan uses, as interface targets: devsan_cli (CLI11), devsan_json (nlohmann-json) and
# devsan_log (spdlog with fmt). Installed ones are taken; where there are none, pinned releases are fetched. Of spdlog
# and fmt the headers alone are used: the program then needs no library that the machine it is copied to may lack.
# devsan_toml is toml++, whose header is in third_party/.
include(FetchContent)
set(DEVSAN_HEADERS "" CACHE PATH
    "Directory with CLI/, nlohmann/, spdlog/, fmt/ and yaml.h; nothing else is then looked for")

# devsan_headers(TARGET PACKAGE REPOSITORY COMMIT INCLUDE): the headers are taken from DEVSAN_HEADERS, or from the
# installed PACKAGE, or from INCLUDE in the fetched repository.
function(devsan_headers target package repository commit include)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE)
  endif()
  if(DEVSAN_HEADERS)
    target_include_directories(${target} SYSTEM INTERFACE ${DEVSAN_HEADERS})
    return()
  endif()
  find_package(${package} QUIET)
  if(${package}_FOUND)
    # The namespace is that of the package in all of them.
    foreach(imported ${package}::${package} ${package}::${package}_header_only)
      if(TARGET ${imported})
        target_include_directories(${target} SYSTEM INTERFACE $<TARGET_PROPERTY:${imported},INTERFACE_INCLUDE_DIRECTORIES>)
      endif()
    endforeach()
    return()
  endif()
  message(STATUS "${package} is not installed: fetching it")
  string(TOLOWER devsan_${package} name)
  FetchContent_Declare(${name} GIT_REPOSITORY https://github.com/${repository} GIT_TAG ${commit})
  FetchContent_GetProperties(${name})
  if(NOT ${name}_POPULATED)
    FetchContent_Populate(${name}) # their own builds are not wanted
  endif()
  target_include_directories(${target} SYSTEM INTERFACE ${${name}_SOURCE_DIR}/${include})
endfunction()

# The releases that Debian 12 has.
devsan_headers(devsan_cli CLI11 CLIUtils/CLI11 70f8072f9dd2292fd0b9f9e5f58e279f60483ed3 include)
devsan_headers(devsan_json nlohmann_json nlohmann/json bc889afb4c5bf1c0d8ee29ef35eaaf4c8bef8a5d include)
devsan_headers(devsan_log spdlog gabime/spdlog 76fb40d95455f249bd70824ecfcae7a8f0930fa3 include)
devsan_headers(devsan_log fmt fmtlib/fmt a33701196adfad74917046096bf5a2aa0ab0bb50 include)
target_compile_definitions(devsan_log INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

if(NOT TARGET devsan_toml)
  add_library(devsan_toml INTERFACE)
endif()
target_include_directories(devsan_toml SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/third_party/tomlplusplus)
# One setting for the whole program: with two of them the linker keeps functions of the one for the other.
target_compile_definitions(devsan_toml INTERFACE TOML_EXCEPTIONS=1)
# Assertions of toml++ stand before the checks that tell of the same errors: an array that begins with "}" would end a
# debug build. The definition is an option, since CMake knows none of macros with arguments.
target_compile_options(devsan_toml INTERFACE "-DTOML_ASSERT(expr)=static_assert(true)")

# devsan_tree_sitter: the library tree-sitter and its grammar of Python, which report/program reads source with. The
# sources are those that scripts/setup left in DEVSAN_TREE_SITTER; where there are none, the same releases are fetched.
set(DEVSAN_TREE_SITTER "${PROJECT_SOURCE_DIR}/build/tree-sitter" CACHE PATH
    "Directory with core/ and python/, the sources of tree-sitter and of its grammar of Python")

# devsan_sources(RESULT NAME REPOSITORY COMMIT): the folder of the fetched repository.
function(devsan_sources result name repository commit)
  message(STATUS "${name} is not in ${DEVSAN_TREE_SITTER}: fetching it")
  FetchContent_Declare(${name} GIT_REPOSITORY https://github.com/${repository} GIT_TAG ${commit})
  FetchContent_GetProperties(${name})
  if(NOT ${name}_POPULATED)
    FetchContent_Populate(${name})
  endif()
  set(${result} ${${name}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

if(EXISTS ${DEVSAN_TREE_SITTER}/core AND EXISTS ${DEVSAN_TREE_SITTER}/python)
  set(tree_sitter ${DEVSAN_TREE_SITTER}/core)
  set(tree_sitter_python ${DEVSAN_TREE_SITTER}/python)
else()
  # v0.25.10, the core of tree-sitter 0.25.2 on PyPI; and v0.25.0.
  devsan_sources(tree_sitter treesitter tree-sitter/tree-sitter da6fe9beb4f7f67beb75914ca8e0d48ae48d6406)
  set(tree_sitter ${tree_sitter}/lib)
  devsan_sources(tree_sitter_python treesitterpython tree-sitter/tree-sitter-python
                 293fdc02038ee2bf0e2e206711b69c90ac0d413f)
endif()
add_library(devsan_tree_sitter STATIC ${tree_sitter}/src/lib.c ${tree_sitter_python}/src/parser.c
                                      ${PROJECT_SOURCE_DIR}/third_party/tree-sitter-python/scanner.c)
target_include_directories(devsan_tree_sitter SYSTEM PUBLIC ${tree_sitter}/include)
target_include_directories(devsan_tree_sitter PRIVATE ${tree_sitter}/src ${tree_sitter_python}/src)
target_compile_definitions(devsan_tree_sitter PRIVATE _POSIX_C_SOURCE=200112L _DEFAULT_SOURCE)
# Parsing is quick in every build; the tables of the grammar are no faster when optimized further.
target_compile_options(devsan_tree_sitter PRIVATE -w -O1)
set_target_properties(devsan_tree_sitter PROPERTIES C_STANDARD 11 UNITY_BUILD OFF)

# devsan_yaml: libyaml, linked statically, so that the program needs no library of that name. Its archive needs nothing of
# glibc that a glibc of 2018 lacks. Where none is installed, the same release (0.2.5) is fetched and compiled.
find_library(DEVSAN_YAML_ARCHIVE NAMES libyaml.a PATH_SUFFIXES x86_64-linux-gnu) # where another compiler does not look
find_path(DEVSAN_YAML_INCLUDE_DIR yaml.h HINTS ${DEVSAN_HEADERS})
if(DEVSAN_YAML_ARCHIVE AND DEVSAN_YAML_INCLUDE_DIR)
  add_library(devsan_yaml INTERFACE)
  target_link_libraries(devsan_yaml INTERFACE ${DEVSAN_YAML_ARCHIVE})
  if(NOT DEVSAN_YAML_INCLUDE_DIR STREQUAL "/usr/include")
    target_include_directories(devsan_yaml SYSTEM INTERFACE ${DEVSAN_YAML_INCLUDE_DIR})
  endif()
else()
  message(STATUS "libyaml is not installed: fetching it")
  FetchContent_Declare(libyaml GIT_REPOSITORY https://github.com/yaml/libyaml
                       GIT_TAG 2c891fc7a770e8ba2fec34fc6b545c672beb37e6)
  FetchContent_GetProperties(libyaml)
  if(NOT libyaml_POPULATED)
    FetchContent_Populate(libyaml)
  endif()
  file(GLOB libyaml_sources ${libyaml_SOURCE_DIR}/src/*.c)
  add_library(devsan_yaml STATIC ${libyaml_sources})
  target_include_directories(devsan_yaml SYSTEM PUBLIC ${libyaml_SOURCE_DIR}/include)
  target_compile_definitions(devsan_yaml PRIVATE YAML_VERSION_MAJOR=0 YAML_VERSION_MINOR=2 YAML_VERSION_PATCH=5
                                                 YAML_VERSION_STRING="0.2.5")
  target_compile_options(devsan_yaml PRIVATE -w)
  set_target_properties(devsan_yaml PROPERTIES UNITY_BUILD OFF)
endif()
