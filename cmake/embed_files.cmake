# Writes a C++ source with the names and contents of files, as an array NAME of pairs that HEADER declares in NAMESPACE:
# cmake -DOUTPUT=x.cpp -DHEADER=x.h -DNAMESPACE=qkv -DNAME=files "-DFILES=name=path;..." -P embed_files.cmake
set(rows "")
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([a-z0-9._]+)=(.*)$" _ "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND rows "    {\"${name}\", R\"qkv(${content})qkv\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"

namespace ${NAMESPACE} {

static const std::pair<std::string_view, std::string_view> files[] = {
${rows}};
const std::span<const std::pair<std::string_view, std::string_view>> ${NAME} = files;

}  // namespace ${NAMESPACE}
")
