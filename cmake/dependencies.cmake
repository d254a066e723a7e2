# All packages come from the system; script/bootstrap installs them.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)  # has no CMake package

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

# What only the program needs.
if(QKV_PROGRAM)
  find_package(HDF5 REQUIRED COMPONENTS C)
  find_package(tomlplusplus REQUIRED)
  find_package(CLI11 REQUIRED)
  # D3 for report pages (Debian's node-d3).
  find_file(QKV_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 REQUIRED NO_DEFAULT_PATH)
  find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
  find_library(XXHASH_LIBRARY xxhash REQUIRED)

  add_library(qkv_hdf5 INTERFACE)
  target_include_directories(qkv_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
  target_compile_definitions(qkv_hdf5 INTERFACE ${HDF5_C_DEFINITIONS})
  target_link_libraries(qkv_hdf5 INTERFACE ${HDF5_C_LIBRARIES})

  add_library(qkv_xxhash INTERFACE)
  target_include_directories(qkv_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
  target_link_libraries(qkv_xxhash INTERFACE ${XXHASH_LIBRARY})
endif()
