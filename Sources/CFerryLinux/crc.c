#include "ferry_crc.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7) /* asm/hwcap.h */
#endif
#endif

#define KINDS 3

/* The polynomials, lowest power in the highest of 32 or 64 bits. */
static const uint64_t polynomials[KINDS] = {
    [FERRY_CRC32C] = 0x82F63B78, [FERRY_CRC32] = 0xEDB88320, [FERRY_CRC64NVME] = 0x9A6C9329AC4BC9B5};

/* tables[k][i][b]: what byte b comes to, i bytes before the end of eight. */
static uint64_t tables[KINDS][8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int byte = 0; byte < 256; byte++) {
            uint64_t value = (uint64_t)byte;
            for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? polynomials[kind] : 0);
            tables[kind][0][byte] = value;
        }
        for (int i = 1; i < 8; i++)
            for (int byte = 0; byte < 256; byte++) {
                uint64_t before = tables[kind][i - 1][byte];
                tables[kind][i][byte] = before >> 8 ^ tables[kind][0][before & 255];
            }
    }
}

static uint64_t ones(ferry_crc_kind kind) { return kind == FERRY_CRC64NVME ? ~(uint64_t)0 : 0xFFFFFFFF; }

/* Eight bytes as a number, the first one lowest; Swift on Linux knows no other order. */
static inline uint64_t eight(const unsigned char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

uint64_t ferry_crc_portable(ferry_crc_kind kind, uint64_t value, const void *bytes, size_t count) {
    pthread_once(&once, make_tables);
    uint64_t(*table)[256] = tables[kind];
    const unsigned char *next = bytes;
    value ^= ones(kind);
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word = value ^ eight(next);
        value = table[7][word & 255] ^ table[6][word >> 8 & 255] ^ table[5][word >> 16 & 255] ^
                table[4][word >> 24 & 255] ^ table[3][word >> 32 & 255] ^ table[2][word >> 40 & 255] ^
                table[1][word >> 48 & 255] ^ table[0][word >> 56];
    }
    for (; count > 0; count--, next++) value = value >> 8 ^ table[0][(value ^ *next) & 255];
    return value ^ ones(kind);
}

#if defined(__x86_64__)

static int has_instruction(ferry_crc_kind kind) {
    return kind == FERRY_CRC32C && __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint64_t with_instruction(
    ferry_crc_kind kind, uint64_t value, const unsigned char *next, size_t count) {
    (void)kind;
    value ^= 0xFFFFFFFF;
    for (; count >= 8; count -= 8, next += 8) value = _mm_crc32_u64(value, eight(next));
    for (; count > 0; count--, next++) value = _mm_crc32_u8((uint32_t)value, *next);
    return value ^ 0xFFFFFFFF;
}

#elif defined(__aarch64__)

static int has_instruction(ferry_crc_kind kind) {
    return kind != FERRY_CRC64NVME && (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

__attribute__((target("crc"))) static uint64_t with_instruction(
    ferry_crc_kind kind, uint64_t value, const unsigned char *next, size_t count) {
    uint32_t sum = (uint32_t)value ^ 0xFFFFFFFF;
    if (kind == FERRY_CRC32C) {
        for (; count >= 8; count -= 8, next += 8) sum = __crc32cd(sum, eight(next));
        for (; count > 0; count--, next++) sum = __crc32cb(sum, *next);
    } else {
        for (; count >= 8; count -= 8, next += 8) sum = __crc32d(sum, eight(next));
        for (; count > 0; count--, next++) sum = __crc32b(sum, *next);
    }
    return sum ^ 0xFFFFFFFF;
}

#else

static int has_instruction(ferry_crc_kind kind) {
    (void)kind;
    return 0;
}

static uint64_t with_instruction(
    ferry_crc_kind kind, uint64_t value, const unsigned char *next, size_t count) {
    return ferry_crc_portable(kind, value, next, count);
}

#endif

uint64_t ferry_crc(ferry_crc_kind kind, uint64_t value, const void *bytes, size_t count) {
    if (has_instruction(kind)) return with_instruction(kind, value, bytes, count);
    return ferry_crc_portable(kind, value, bytes, count);
}
