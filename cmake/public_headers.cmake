# The library's headers as its users see them: below OUTPUT/qkv, where they include each other as "qkv/core/tensor.h".
# cmake -DSOURCE=. -DOUTPUT=build/include -P public_headers.cmake
file(GLOB_RECURSE stale RELATIVE "${OUTPUT}/qkv" "${OUTPUT}/qkv/*.h")
foreach(pattern core/*.h layers/*.h optim/*.h datasets/*.h train/storage/*.h train/config/trainer_options.h train/inference/trained_model.h
                train/loop/callback.h train/loop/module_training.h train/loop/outcome.h train/metrics/metrics.h train/tasks/evaluation.h
                train/tasks/generate.h train/tasks/network.h train/tasks/prediction.h train/tasks/sampling.h)
  file(GLOB_RECURSE headers RELATIVE "${SOURCE}" "${SOURCE}/${pattern}")
  list(REMOVE_ITEM stale ${headers})
  foreach(header IN LISTS headers)
    file(READ "${SOURCE}/${header}" content)
    string(REGEX REPLACE "#include \"(core|layers|optim|datasets|train)/" "#include \"qkv/\\1/" content "${content}")
    set(old "")
    if(EXISTS "${OUTPUT}/qkv/${header}")
      file(READ "${OUTPUT}/qkv/${header}" old)
    endif()
    if(NOT content STREQUAL old)
      file(WRITE "${OUTPUT}/qkv/${header}" "${content}")
    endif()
  endforeach()
endforeach()
foreach(header IN LISTS stale)
  file(REMOVE "${OUTPUT}/qkv/${header}")
endforeach()
