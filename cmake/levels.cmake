# The program for newer processors, each built on its own; the portable one starts the best that runs (cli/processor.h).
include(ExternalProject)
# They are installed as they are built, and so without the paths of this machine's libraries, which lintian refuses.
foreach(level x86-64-v3 x86-64-v4)
  ExternalProject_Add(qkv_${level}
    SOURCE_DIR ${PROJECT_SOURCE_DIR}
    BINARY_DIR ${PROJECT_BINARY_DIR}/${level}
    CMAKE_ARGS -DQKV_LEVEL=${level} -DQKV_TESTS=OFF -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DQKV_GEMM=${QKV_GEMM} -DQKV_STATIC=${QKV_STATIC}
               -DQKV_HDF5_ARCHIVE=${QKV_HDF5_ARCHIVE} -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON
               "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}" "-DCMAKE_EXE_LINKER_FLAGS=${CMAKE_EXE_LINKER_FLAGS} -s"
    BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target qkv
    INSTALL_COMMAND ""
    BUILD_ALWAYS ON
    USES_TERMINAL_BUILD ON)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/${level}/qkv DESTINATION libexec/qkv/${level} COMPONENT program)
endforeach()
