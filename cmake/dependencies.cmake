# All packages come from the system; script/bootstrap installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
set(qkv_fmt fmt::fmt)
if(QKV_STATIC)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -static")
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(BLA_STATIC ON)
  set(HDF5_USE_STATIC_LIBRARIES ON)
  set(qkv_fmt fmt::fmt-header-only)  # Debian has no archive of it
endif()
find_package(nlohmann_json REQUIRED)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)  # has no CMake package
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

# Of the library, only the engine of OpenBLAS needs it; users of core/xtensor.h find xtensor themselves.
if(QKV_PROGRAM OR QKV_GEMM STREQUAL blas)
  set(BLA_VENDOR OpenBLAS)
  find_package(BLAS REQUIRED)
  find_package(xtensor REQUIRED)
  find_package(xtensor-blas REQUIRED)
  # System headers are spared our warnings. Without xsimd, whose intrinsics g++ 12 warns of where they are inlined.
  add_library(qkv_xtensor INTERFACE)
  target_include_directories(qkv_xtensor SYSTEM INTERFACE ${xtensor_INCLUDE_DIRS} ${xtensor_blas_INCLUDE_DIRS})
  target_link_libraries(qkv_xtensor INTERFACE ${BLAS_LIBRARIES})
endif()

# Checkpoints need these two, so the program does; the library goes without where they are not installed.
set(QKV_STORAGE ON)
if(QKV_PROGRAM)
  set(needed REQUIRED)
endif()
find_package(HDF5 ${needed} COMPONENTS C)
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
  find_package(tomlplusplus REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(ZLIB REQUIRED)
  # D3 for report pages (Debian's node-d3).
  find_file(QKV_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 REQUIRED NO_DEFAULT_PATH)
  # `qkv export --onnx` says what to install where it is missing (Debian's libonnx-dev and libprotobuf-dev).
  find_package(Protobuf QUIET)
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
