// xxHash, compiled once: Debian has its library for this machine's processor alone.
#define XXH_IMPLEMENTATION
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
