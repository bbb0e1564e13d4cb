#ifndef FERRY_CCURL_SHIM_H
#define FERRY_CCURL_SHIM_H

/* Makes the compiler check pointer types of the handles. */
#define CURL_STRICTER
#include <curl/curl.h>

/*
 * What Swift cannot see of libcurl: variadic functions, one wrapper for each type of argument (the type of
 * each option is in curl_easy_setopt(3)), and the union in CURLMsg. Codes are passed on unchanged.
 */

#pragma clang assume_nonnull begin

typedef size_t (*ferry_curl_data_callback)(
    char *_Nullable bytes, size_t size, size_t count, void *_Nullable context);

typedef int (*ferry_curl_seek_callback)(void *_Nullable context, curl_off_t offset, int origin);

typedef curl_socket_t (*ferry_curl_opensocket_callback)(
    void *_Nullable context, curlsocktype purpose, struct curl_sockaddr *_Nonnull address);
typedef int (*ferry_curl_socket_callback)(void *_Nullable context, curl_socket_t socket, curlsocktype purpose);

typedef int (*ferry_curl_prereq_callback)(
    void *_Nullable context, char *_Nullable peer, char *_Nullable own, int peer_port, int own_port);

static inline CURLcode ferry_curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ferry_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

/* libcurl copies the string. */
static inline CURLcode ferry_curl_set_string(CURL *handle, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

/* The caller keeps what the pointer names for as long as the handle may use it. */
static inline CURLcode ferry_curl_set_pointer(CURL *handle, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

/* The list is not copied: it must live as long as the transfer. */
static inline CURLcode ferry_curl_set_list(
    CURL *handle, CURLoption option, struct curl_slist *_Nullable list) {
    return curl_easy_setopt(handle, option, list);
}

static inline CURLcode ferry_curl_set_data_callback(
    CURL *handle, CURLoption option, ferry_curl_data_callback _Nullable callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ferry_curl_set_seek_callback(
    CURL *handle, CURLoption option, ferry_curl_seek_callback _Nullable callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ferry_curl_set_opensocket_callback(
    CURL *handle, CURLoption option, ferry_curl_opensocket_callback _Nullable callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ferry_curl_set_socket_callback(
    CURL *handle, CURLoption option, ferry_curl_socket_callback _Nullable callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ferry_curl_set_prereq_callback(
    CURL *handle, CURLoption option, ferry_curl_prereq_callback _Nullable callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ferry_curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ferry_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

/* The address as curl_sockaddr has it: its declared member is shorter than what is there. */
static inline const struct sockaddr *ferry_curl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

/* The string belongs to the handle. */
static inline CURLcode ferry_curl_get_string(
    CURL *handle, CURLINFO info, const char *_Nullable *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

/* Takes the next finished transfer from the queue; 0 when there is none. */
static inline int ferry_curl_next_finished(
    CURLM *multi, CURL *_Nullable *_Nonnull handle, CURLcode *result) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) continue;
        *handle = message->easy_handle;
        *result = message->data.result;
        return 1;
    }
    return 0;
}

static inline CURLUcode ferry_curl_url_get(
    CURLU *url, CURLUPart part, char *_Nullable *_Nonnull value, unsigned int flags) {
    return curl_url_get(url, part, value, flags);
}

#pragma clang assume_nonnull end

#endif
