#ifndef FERRY_CCRYPTO_SHIM_H
#define FERRY_CCRYPTO_SHIM_H

#include <openssl/err.h>
#include <openssl/evp.h>

#endif
