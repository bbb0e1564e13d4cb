#ifndef FERRY_CCURL_SHIM_H
#define FERRY_CCURL_SHIM_H

/* Makes the compiler check pointer types of the handles. */
#define CURL_STRICTER
#include <curl/curl.h>

#endif
