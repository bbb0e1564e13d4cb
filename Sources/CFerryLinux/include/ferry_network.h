#ifndef FERRY_NETWORK_H
#define FERRY_NETWORK_H

/*
 * What the machine's network looks like from here, and who tells when it changes. Nothing of it sends a packet,
 * but for ferry_name_service_answers.
 */

#include <stdint.h>

#pragma clang assume_nonnull begin

/*
 * A socket that becomes readable when interfaces, addresses or routes change (rtnetlink(7)): non-blocking and
 * close-on-exec, -1 with errno where there is none.
 */
int ferry_network_watch(void);

/* Reads what waits in that socket: whether anything was added or came up, 1 or 0. */
int ferry_network_watch_read(int fd);

/*
 * Whether packets to a numeric IPv4 or IPv6 address have a way out of the machine: 1 or 0, -1 where it cannot be
 * told. A route over an interface without a carrier is none.
 */
int ferry_has_route(const char *address);

/* Whether any interface but loopback is up, has a carrier, and has an address that others can answer to: 1 or 0. */
int ferry_has_network(void);

/*
 * Whether any of the configured name servers answers within a time: 1 or 0, -1 where there is no socket.
 *
 * Asks each for the name servers of the root (RFC 1035 §4.1). A server that cannot reach others says SERVFAIL,
 * which counts as no answer; any other answer counts, a refusal too.
 */
int ferry_name_service_answers(int timeout_ms);

/* SIOCOUTQ of a TCP socket: the bytes that the peer has not confirmed, -1 on an error. */
int ferry_socket_queue(int fd);

#pragma clang assume_nonnull end

#endif
