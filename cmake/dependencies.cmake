# All packages come from the system; script/bootstrap installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
set(qkv_fmt fmt::fmt)
# Debian's libraries of C++ are built with libstdc++; with libc++, fmt is compiled from its headers, and ONNX left out.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <version>\n#ifndef _LIBCPP_VERSION\n#error\n#endif\nint main() {}" QKV_LIBCPP)
if(QKV_LIBCPP AND NOT APPLE)
  set(qkv_fmt fmt::fmt-header-only)
endif()
if(QKV_STATIC)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -static")
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(BLA_STATIC ON)
  set(HDF5_USE_STATIC_LIBRARIES ON)
  set(qkv_fmt fmt::fmt-header-only)  # Debian has no archive of it
endif()
find_package(nlohmann_json REQUIRED)
if(QKV_PROGRAM)
  find_package(ZLIB REQUIRED)
endif()
find_path(FAST_FLOAT_INCLUDE_DIR fast_float/fast_float.h REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

# Of the library, only the engine of OpenBLAS needs it; users of core/xtensor.h find xtensor themselves.
if(QKV_PROGRAM OR QKV_GEMM STREQUAL blas)
  set(BLA_VENDOR OpenBLAS)
  find_package(BLAS REQUIRED)
  if(QKV_STATIC)
    list(APPEND BLAS_LIBRARIES gfortran quadmath)  # for the LAPACK in OpenBLAS
    # libgfortran calls these without asking for them, so that they would be missing, and it crash as the program ends.
    foreach(call cond_broadcast cond_destroy cond_init cond_wait getspecific key_create key_delete mutex_destroy mutex_init
                 mutex_lock mutex_trylock mutex_unlock setspecific)
      string(APPEND CMAKE_EXE_LINKER_FLAGS " -Wl,-u,pthread_${call}")
    endforeach()
  endif()
  find_package(xtensor REQUIRED)
  find_path(xtensor_blas_INCLUDE_DIRS xtensor-blas/xlinalg.hpp REQUIRED)  # its CMake package demands another LAPACK
  # System headers are spared our warnings, but for what g++ warns of where it inlines them: hence without xsimd (g++ 12) and
  # sizes of copies (g++ 14).
  add_library(qkv_xtensor INTERFACE)
  target_include_directories(qkv_xtensor SYSTEM INTERFACE ${xtensor_INCLUDE_DIRS} ${xtensor_blas_INCLUDE_DIRS})
  target_link_libraries(qkv_xtensor INTERFACE ${BLAS_LIBRARIES})
  target_compile_options(qkv_xtensor INTERFACE "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19 AND xtensor_VERSION VERSION_LESS 0.26)
    # xtensor's rebind_container is ambiguous under the rule of C++17 for template template arguments. All sources have the
    # option, as they share precompiled headers.
    set(QKV_XTENSOR_FLAGS -fno-relaxed-template-template-args -Wno-deprecated-no-relaxed-template-template-args)
  endif()
endif()

# Checkpoints need these two, so the program does; the library goes without where they are not installed.
set(QKV_STORAGE ON)
if(QKV_PROGRAM)
  set(needed REQUIRED)
endif()
find_package(HDF5 ${needed} COMPONENTS C)
if(QKV_STATIC AND HDF5_FOUND)
  target_link_libraries(HDF5::HDF5 INTERFACE aec)  # for the szip in HDF5
elseif(HDF5_FOUND)
  # The archive where it links without curl (Debian 12): the shared library loads curl, TLS and Kerberos at each start.
  string(REPLACE libhdf5.so libhdf5.a hdf5_archive "${HDF5_C_LIBRARIES}")
  list(FILTER hdf5_archive EXCLUDE REGEX "curl|crypto")
  set(CMAKE_REQUIRED_INCLUDES ${HDF5_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${hdf5_archive})
  check_cxx_source_compiles("#include <hdf5.h>\nint main() { return H5open(); }" QKV_HDF5_ARCHIVE)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(QKV_HDF5_ARCHIVE)
    set_property(TARGET HDF5::HDF5 PROPERTY INTERFACE_LINK_LIBRARIES ${hdf5_archive})
  endif()
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h ${needed})
find_library(XXHASH_LIBRARY xxhash ${needed})
if(HDF5_FOUND AND XXHASH_INCLUDE_DIR AND XXHASH_LIBRARY)
  add_library(qkv_xxhash INTERFACE)
  target_include_directories(qkv_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
  target_link_libraries(qkv_xxhash INTERFACE ${XXHASH_LIBRARY})
else()
  set(QKV_STORAGE OFF)
endif()

# What only the program needs.
if(QKV_PROGRAM)
  find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # its headers alone: Debian has no archive of it, nor one for libc++
  find_package(CLI11 REQUIRED)
  # D3 for report pages (Debian's node-d3, npm's d3), which say at their beginning which version they are.
  find_file(QKV_D3 d3.min.js NO_DEFAULT_PATH PATHS ${CMAKE_PREFIX_PATH} ${CMAKE_SYSTEM_PREFIX_PATH}
            PATH_SUFFIXES share/nodejs/d3/dist share/javascript/d3 lib/node_modules/d3/dist)
  if(QKV_D3)
    file(READ ${QKV_D3} d3_head LIMIT 100)
    string(REGEX MATCH "d3js.org v?([0-9]+)" d3_head "${d3_head}")
    set(d3_version ${CMAKE_MATCH_1})
  endif()
  if(NOT d3_version MATCHES "^[567]$")
    message(FATAL_ERROR "Report pages need the file d3.min.js of D3 5, 6 or 7, found: ${QKV_D3} ${d3_version}\n"
                        "Install node-d3 (Debian) or `npm install d3`, and pass -DQKV_D3=node_modules/d3/dist/d3.min.js")
  endif()
  # `qkv export --onnx` says what to install where it is missing (Debian's libonnx-dev and libprotobuf-dev, without an archive).
  if(NOT QKV_STATIC AND (NOT QKV_LIBCPP OR APPLE))
    find_package(Protobuf QUIET)
  endif()
  if(Protobuf_FOUND)
    find_package(ONNX CONFIG QUIET)
  endif()
endif()
if(QKV_MPI)
  find_package(MPI COMPONENTS C)
  if(NOT MPI_C_FOUND)
    message(FATAL_ERROR "QKV_MPI needs an MPI library; on Debian: apt-get install libopenmpi-dev openmpi-bin")
  endif()
endif()
