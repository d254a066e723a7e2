# `cmake --install build/release --prefix DIR`: the program, and the library for find_package(qkv) and pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(folders core layers optim datasets)
list(TRANSFORM folders PREPEND qkv_ OUTPUT_VARIABLE libraries)
install(TARGETS ${libraries} qkv_all EXPORT qkv ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/qkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
install(EXPORT qkv NAMESPACE qkv:: FILE qkvTargets.cmake DESTINATION ${package} COMPONENT library)
if(QKV_STORAGE)
  install(TARGETS qkv_storage EXPORT qkv_storage ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(EXPORT qkv_storage NAMESPACE qkv:: FILE qkvStorage.cmake DESTINATION ${package} COMPONENT library)
endif()
# What reads and uses a trained model is part of the program, too.
if(QKV_PROGRAM)
  install(TARGETS qkv_train EXPORT qkv_inference ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  install(EXPORT qkv_inference NAMESPACE qkv:: FILE qkvInference.cmake DESTINATION ${package} COMPONENT library)
endif()
configure_file(cmake/qkvConfig.cmake.in qkvConfig.cmake @ONLY)
write_basic_package_version_file(qkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/qkvConfig.cmake ${PROJECT_BINARY_DIR}/qkvConfigVersion.cmake DESTINATION ${package} COMPONENT library)
file(RELATIVE_PATH qkv_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(QKV_GEMM STREQUAL blas)
  set(QKV_BLAS_FLAG -lopenblas)
endif()
set(qkv_pkgconfig qkv)
if(QKV_STORAGE)
  list(APPEND qkv_pkgconfig qkv-storage)
endif()
if(QKV_PROGRAM)
  list(APPEND qkv_pkgconfig qkv-inference)
endif()
foreach(name IN LISTS qkv_pkgconfig)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()

if(NOT QKV_PROGRAM)
  return()
endif()
install(TARGETS qkv RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
set(share ${CMAKE_INSTALL_DATADIR}/qkv)
install(DIRECTORY configs DESTINATION ${share} COMPONENT program)
install(DIRECTORY datasets DESTINATION ${share} COMPONENT program
  FILES_MATCHING PATTERN *.tsv PATTERN *.conll PATTERN README.md)
install(FILES python/qkv.py DESTINATION ${share}/python COMPONENT program)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program
  FILES_MATCHING PATTERN *.md PATTERN *.svg)

# Man pages and completions are written from the program's --help.
find_program(PYTHON3 python3 HINTS /usr/bin)
if(PYTHON3 AND NOT QKV_SANITIZE)
  add_custom_command(
    OUTPUT manual/written
    COMMAND ${CMAKE_COMMAND} -E rm -rf manual
    COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/cli/manual.py $<TARGET_FILE:qkv> manual/share ${CMAKE_INSTALL_FULL_DATADIR}/qkv
    COMMAND ${CMAKE_COMMAND} -E touch manual/written
    DEPENDS qkv cli/manual.py)
  add_custom_target(qkv_manual ALL DEPENDS manual/written)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/share/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT program)
endif()
