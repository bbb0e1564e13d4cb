#ifndef FERRY_CRC_H
#define FERRY_CRC_H

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

/* Cyclic redundancy checks, all of them reflected, beginning with ones and complemented at the end. */
typedef enum {
    FERRY_CRC32C,   /* the polynomial of Castagnoli: RFC 3720 §12.1 */
    FERRY_CRC32,    /* that of Ethernet and zlib: RFC 1952 §8 */
    FERRY_CRC64NVME /* that of the NVM Express NVM Command Set Specification */
} ferry_crc_kind;

/* The check value of more bytes; `value` is that of the bytes before, 0 for none. From any thread. */
uint64_t ferry_crc(ferry_crc_kind kind, uint64_t value, const void *bytes, size_t count);

/* The same without the processor's own instructions. */
uint64_t ferry_crc_portable(ferry_crc_kind kind, uint64_t value, const void *bytes, size_t count);

#pragma clang assume_nonnull end

#endif
