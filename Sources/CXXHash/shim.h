#ifndef FERRY_CXXHASH_SHIM_H
#define FERRY_CXXHASH_SHIM_H

/* The whole of xxHash in this header: nothing to link, and states can live inside other memory. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#pragma clang assume_nonnull begin

/* The XXH3-64 of some bytes. */
static inline uint64_t ferry_xxh3(const void *bytes, size_t count) { return XXH3_64bits(bytes, count); }

/* The size and alignment of a streaming state. */
static inline size_t ferry_xxh3_state_size(void) { return sizeof(XXH3_state_t); }
static inline size_t ferry_xxh3_state_alignment(void) { return 64; }

/* Begins a new XXH3-64 in memory of that size and alignment. */
static inline void ferry_xxh3_begin(void *state) {
    XXH3_INITSTATE((XXH3_state_t *)state);
    (void)XXH3_64bits_reset((XXH3_state_t *)state); /* fails only for a null state */
}

static inline void ferry_xxh3_update(void *state, const void *_Nullable bytes, size_t count) {
    (void)XXH3_64bits_update((XXH3_state_t *)state, bytes, count); /* fails only for null bytes */
}

/* The hash of what was taken so far; the state may take more. */
static inline uint64_t ferry_xxh3_digest(const void *state) {
    return XXH3_64bits_digest((const XXH3_state_t *)state);
}

#pragma clang assume_nonnull end

#endif
