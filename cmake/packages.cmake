# `cpack` in a build folder makes the Debian packages qkv (component program) and libqkv-dev (component library).
# script/package builds them for any x86-64-v2 machine, with equal bytes each time.
set(share ${CMAKE_INSTALL_DATADIR}/qkv)
install(DIRECTORY configs DESTINATION ${share} COMPONENT program)
install(DIRECTORY datasets DESTINATION ${share} COMPONENT program
  FILES_MATCHING PATTERN *.tsv PATTERN *.conll PATTERN README.md)
install(FILES python/qkv.py DESTINATION ${share}/python COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING PATTERN *.md)

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

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "qkv developers <qkv@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each component has its own
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME qkv)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "trains small attention models and shows what they learned
qkv trains small transformer, recurrent and convolutional models from a TOML
config, resumes and compares runs, and shows what was learned: embeddings,
attention weights, gradients, probes, ablations and activation patching, in
the terminal or as one HTML page. Example configs with their data are in
/usr/share/qkv.")

# The library is static: programs need what its headers and archives refer to, fmt in the version that it was built with.
math(EXPR fmt_next "${fmt_VERSION_MAJOR} + 1")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libqkv-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libfmt-dev (>= ${fmt_VERSION_MAJOR}), libfmt-dev (<< ${fmt_next}), libutf8proc-dev")
if(QKV_GEMM STREQUAL blas)
  string(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ", libopenblas-dev")
endif()
if(QKV_STORAGE)
  string(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ", libhdf5-dev, libxxhash-dev")
endif()
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libxtensor-dev")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "tensors, autograd, transformer layers and optimizers (C++20)
The library that the program qkv is made of: tensors with reverse-mode
automatic differentiation, layers, optimizers, data sets and checkpoints, as
static libraries with CMake and pkg-config files.")

# What Debian's policy asks of a package: rights, and a changelog in its own format, of SOURCE_DATE_EPOCH.
string(TIMESTAMP QKV_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component program library)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  configure_file(cmake/debian/changelog.in debian/${package}/changelog @ONLY)
  execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/debian/${package}/changelog COMMAND_ERROR_IS_FATAL ANY)
  install(FILES cmake/debian/copyright ${PROJECT_BINARY_DIR}/debian/${package}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endforeach()

include(CPack)
