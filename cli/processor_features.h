#pragma once

// X(NAME, MACRO): what compilers use of x86-64 processors without being asked to in the code, by
// the name that __builtin_cpu_supports takes and the macro that is 1 where the compiler may use it.
#define QKV_COMMON_PROCESSOR_FEATURES(X)    \
  X("sse3", __SSE3__)                       \
  X("ssse3", __SSSE3__)                     \
  X("sse4.1", __SSE4_1__)                   \
  X("sse4.2", __SSE4_2__)                   \
  X("popcnt", __POPCNT__)                   \
  X("avx", __AVX__)                         \
  X("fma", __FMA__)                         \
  X("bmi", __BMI__)                         \
  X("bmi2", __BMI2__)                       \
  X("avx2", __AVX2__)                       \
  X("avx512f", __AVX512F__)                 \
  X("avx512cd", __AVX512CD__)               \
  X("avx512bw", __AVX512BW__)               \
  X("avx512dq", __AVX512DQ__)               \
  X("avx512vl", __AVX512VL__)               \
  X("avx512ifma", __AVX512IFMA__)           \
  X("avx512vbmi", __AVX512VBMI__)           \
  X("avx512vbmi2", __AVX512VBMI2__)         \
  X("avx512vpopcntdq", __AVX512VPOPCNTDQ__) \
  X("avx512bitalg", __AVX512BITALG__)       \
  X("avx512vnni", __AVX512VNNI__)           \
  X("gfni", __GFNI__)                       \
  X("sse4a", __SSE4A__)                     \
  X("fma4", __FMA4__)                       \
  X("xop", __XOP__)

// Names that clang knows from 18 on.
#if defined(__clang__) && __clang_major__ < 18
#define QKV_PROCESSOR_FEATURES QKV_COMMON_PROCESSOR_FEATURES
#else
#define QKV_PROCESSOR_FEATURES(X)  \
  QKV_COMMON_PROCESSOR_FEATURES(X) \
  X("f16c", __F16C__)              \
  X("lzcnt", __LZCNT__)            \
  X("movbe", __MOVBE__)            \
  X("avxvnni", __AVXVNNI__)        \
  X("avx512fp16", __AVX512FP16__)
#endif

namespace qkv {

/// For each of QKV_PROCESSOR_FEATURES, whether this build may use it.
extern const bool used_features[];

}  // namespace qkv
