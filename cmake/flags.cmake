set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()

# What every target of the project is compiled with.
add_library(qkv_flags INTERFACE)
target_compile_options(qkv_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Warn of "text" + std::string and of string = "text" in correct code (GCC bug 105651), in some builds only; the address
  # sanitizer and clang-tidy look for the real ones.
  target_compile_options(qkv_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 17)
  # libstdc++ before 13 uses a function that it deprecates in every std::stable_sort and std::stable_partition.
  target_compile_options(qkv_flags INTERFACE -Wno-deprecated-declarations)
endif()
# CMake lists all that HDF5 could need. macOS's linker has no such option, and leaves out what is not needed.
include(CheckLinkerFlag)
check_linker_flag(CXX LINKER:--as-needed QKV_AS_NEEDED)
if(QKV_AS_NEEDED)
  target_link_options(qkv_flags INTERFACE LINKER:--as-needed)
endif()
if(QKV_WERROR)
  target_compile_options(qkv_flags INTERFACE -Werror)
endif()
if(QKV_SANITIZE)
  target_compile_options(qkv_flags INTERFACE -fsanitize=${QKV_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
  target_link_options(qkv_flags INTERFACE -fsanitize=${QKV_SANITIZE})
endif()

include(CheckCXXCompilerFlag)
# -ffast-math would reorder sums and delete the checks for NaN; these two allow vectorisation without either.
set(QKV_MATH_FLAGS -fno-math-errno -fno-trapping-math)
if(NOT QKV_LEVEL STREQUAL generic)
  list(APPEND QKV_MATH_FLAGS -march=${QKV_LEVEL})
endif()
if(QKV_LEVEL MATCHES "^(native|x86-64-v4)$")
  check_cxx_compiler_flag(-mprefer-vector-width=512 QKV_WIDE_VECTORS)
  if(QKV_WIDE_VECTORS)
    list(APPEND QKV_MATH_FLAGS -mprefer-vector-width=512)
  endif()
endif()
# Tuned for AMD's Zen 1 to 3 (GCC 13: for generic processors, too), GCC leaves some chains of multiply-adds unfused, so that
# rows computed alone would have other bits than rows computed together.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  check_cxx_compiler_flag(--param=avoid-fma-max-bits=0 QKV_FUSED_CHAINS)
endif()
if(QKV_FUSED_CHAINS)
  list(APPEND QKV_MATH_FLAGS --param=avoid-fma-max-bits=0)
endif()
target_compile_options(qkv_flags INTERFACE ${QKV_MATH_FLAGS} ${QKV_XTENSOR_FLAGS})

# For what runs once: without the inlining of functions that are called once, it compiles in a fifth less time.
set(QKV_LITTLE_OPTIMISATION $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND QKV_LITTLE_OPTIMISATION $<$<CONFIG:Release>:-fno-inline-functions-called-once>)
endif()

# Headers that most sources include, parsed once: half a second less for each source. JSON in it would cost
# more than it saves. Not with ccache, which does not store what is compiled so. Sources share them where their options are
# equal, so once for each of three levels of optimisation: for each step, for what runs once, and for tests.
if(NOT CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
  file(CONFIGURE OUTPUT headers.cpp CONTENT "")
  foreach(headers qkv_headers qkv_headers_optimised_little qkv_headers_of_tests)
    add_library(${headers} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
    target_precompile_headers(${headers} PRIVATE
      <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
      <string_view> <vector> <fmt/ranges.h>)
    target_compile_features(${headers} PRIVATE cxx_std_20)
    target_link_libraries(${headers} PRIVATE qkv_flags ${qkv_fmt})
  endforeach()
  target_compile_options(qkv_headers_optimised_little PRIVATE ${QKV_LITTLE_OPTIMISATION})
  target_compile_options(qkv_headers_of_tests PRIVATE $<$<CONFIG:Release>:-Og>)
endif()
function(qkv_use_precompiled_headers target)
  if(TARGET qkv_headers)
    target_precompile_headers(${target} REUSE_FROM qkv_headers)
  endif()
endfunction()

# A library of the project in its own folder: qkv_library(core SOURCES ... PUBLIC ... PRIVATE ...)
function(qkv_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  add_library(qkv_${name} ${arg_SOURCES})
  set_target_properties(qkv_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(qkv_${name} PUBLIC cxx_std_20)
  target_include_directories(qkv_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
  add_dependencies(qkv_${name} qkv_public_headers)
  target_link_libraries(qkv_${name} PUBLIC $<BUILD_INTERFACE:qkv_flags> ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  qkv_use_precompiled_headers(qkv_${name})
endfunction()

# Eight sources a compilation, which then parses their headers once. `-DCMAKE_UNITY_BUILD=OFF` compiles each source alone,
# as clang-tidy needs it.
function(qkv_compile_in_batches target)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

function(qkv_optimise target headers)
  target_compile_options(${target} PRIVATE ${ARGN})
  if(TARGET ${headers})
    set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM ${headers})
  endif()
endfunction()

# For what runs once rather than at each step.
function(qkv_optimise_little target)
  qkv_optimise(${target} qkv_headers_optimised_little ${QKV_LITTLE_OPTIMISATION})
endfunction()

# For tests.
function(qkv_optimise_least target)
  qkv_optimise(${target} qkv_headers_of_tests $<$<CONFIG:Release>:-Og>)
endfunction()

function(qkv_compile_quickly target)
  qkv_optimise_little(${target})
  qkv_compile_in_batches(${target})
endfunction()
