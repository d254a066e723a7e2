# Writes a C++ source with the names and contents of files: cmake -DOUTPUT=x.cpp "-DFILES=name=path;..." -P embed_files.cmake
set(rows "")
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([a-z0-9.]+)=(.*)$" _ "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND rows "    {\"${name}\", R\"qkv(${content})qkv\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"inspect/report/page.h\"

namespace qkv::report {

static const PageFile files[] = {
${rows}};
const std::span<const PageFile> page_files = files;

}  // namespace qkv::report
")
