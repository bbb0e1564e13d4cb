#define _GNU_SOURCE
#include "ferry_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int ferry_network_watch(void) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    address.nl_groups =
        RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int ferry_network_watch_read(int fd) {
    _Alignas(struct nlmsghdr) char buffer[16384];
    int added = 0;
    for (;;) {
        ssize_t length = recv(fd, buffer, sizeof buffer, 0);
        if (length < 0) {
            if (errno == EINTR) continue;
            if (errno != ENOBUFS) return added;
            added = 1; /* more was said than the socket holds: anything may have come */
            continue;
        }
        if (length == 0) return added;
        int left = (int)length;
        for (struct nlmsghdr *m = (struct nlmsghdr *)buffer; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
            if (m->nlmsg_type == RTM_NEWLINK || m->nlmsg_type == RTM_NEWADDR || m->nlmsg_type == RTM_NEWROUTE)
                added = 1;
        }
    }
}

int ferry_socket_queue(int fd) {
    int count = 0;
    return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : -1;
}

/* Reads a numeric address; the length of the structure, 0 for anything else. */
static socklen_t parse(const char *text, uint16_t port, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof *v4;
    }
    char copy[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];
    if (strlen(text) >= sizeof copy) return 0;
    strcpy(copy, text);
    char *zone = strchr(copy, '%');
    if (zone != NULL) *zone++ = '\0';
    if (inet_pton(AF_INET6, copy, &v6->sin6_addr) != 1) return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    if (zone != NULL) {
        v6->sin6_scope_id = if_nametoindex(zone);
        if (v6->sin6_scope_id == 0) v6->sin6_scope_id = (uint32_t)strtoul(zone, NULL, 10);
    }
    return sizeof *v6;
}

static int is_same_address(const struct sockaddr *left, const struct sockaddr_storage *right) {
    if (left == NULL || left->sa_family != right->ss_family) return 0;
    if (left->sa_family == AF_INET)
        return ((const struct sockaddr_in *)left)->sin_addr.s_addr
            == ((const struct sockaddr_in *)right)->sin_addr.s_addr;
    return left->sa_family == AF_INET6
        && memcmp(
               &((const struct sockaddr_in6 *)left)->sin6_addr,
               &((const struct sockaddr_in6 *)right)->sin6_addr,
               sizeof(struct in6_addr)) == 0;
}

/* Whether the interface that has an address of ours can carry packets; 1 if none is known to have it. */
static int has_carrier(const struct sockaddr_storage *own) {
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) return 1;
    int found = 0, running = 0;
    for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        if (!is_same_address(i->ifa_addr, own)) continue;
        found = 1;
        if ((i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING)) running = 1;
    }
    freeifaddrs(list);
    return !found || running;
}

int ferry_has_route(const char *text) {
    struct sockaddr_storage address, own;
    socklen_t length = parse(text, 9, &address), own_length = sizeof own;
    if (length == 0) return -1;
    int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno == EAFNOSUPPORT ? 0 : -1;
    /* connect(2) of a datagram socket looks the route up and sends nothing (udp(7)). */
    int result;
    if (connect(fd, (struct sockaddr *)&address, length) == 0) {
        result = getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 ? has_carrier(&own) : 1;
    } else {
        switch (errno) {
        case ENETUNREACH:
        case EHOSTUNREACH:
        case ENETDOWN:
        case EADDRNOTAVAIL:
        case ENODEV: result = 0; break;
        default: result = -1;
        }
    }
    close(fd);
    return result;
}

int ferry_has_network(void) {
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) return 1;
    int found = 0;
    for (struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
        if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK)) continue;
        if (!(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING)) continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            uint32_t host = ntohl(((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr);
            found = (host >> 16) != 0xa9fe; /* 169.254.0.0/16 is what one gives oneself (RFC 3927) */
        } else if (i->ifa_addr->sa_family == AF_INET6) {
            found = !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr);
        }
    }
    freeifaddrs(list);
    return found;
}

/* The address of a name server; resolv.h keeps IPv6 ones apart. */
static socklen_t name_server(struct __res_state *state, int i, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    if (state->nsaddr_list[i].sin_family == AF_INET) {
        memcpy(address, &state->nsaddr_list[i], sizeof state->nsaddr_list[i]);
        return sizeof state->nsaddr_list[i];
    }
    struct sockaddr_in6 *v6 = state->_u._ext.nsaddrs[i];
    if (v6 == NULL || v6->sin6_family != AF_INET6) return 0;
    memcpy(address, v6, sizeof *v6);
    return sizeof *v6;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int ferry_name_service_answers(int timeout_ms) {
    struct __res_state state;
    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0) return -1;
    struct pollfd fds[MAXNS];
    nfds_t count = 0;
    uint16_t id = 0;
    (void)!getrandom(&id, sizeof id, GRND_NONBLOCK);
    /* Header: id, recursion desired, one question; the root's name, type NS, class IN. */
    uint8_t query[17] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1};
    memcpy(query, &id, sizeof id);
    for (int i = 0; i < state.nscount && i < MAXNS; i++) {
        struct sockaddr_storage server;
        socklen_t length = name_server(&state, i, &server);
        if (length == 0) continue;
        int fd = socket(server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) continue;
        if (connect(fd, (struct sockaddr *)&server, length) != 0 || send(fd, query, sizeof query, 0) < 0) {
            close(fd);
            continue;
        }
        fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    res_nclose(&state);
    int answers = 0;
    nfds_t waiting = count;
    int64_t end = now_ms() + timeout_ms, left;
    while (!answers && waiting > 0 && (left = end - now_ms()) > 0) {
        if (poll(fds, count, (int)left) < 0 && errno != EINTR) break;
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            uint8_t reply[512];
            ssize_t length = recv(fds[i].fd, reply, sizeof reply, 0);
            /* Ours, a response, and not SERVFAIL. */
            if (length >= 12 && memcmp(reply, &id, sizeof id) == 0 && (reply[2] & 0x80)) {
                if ((reply[3] & 0x0f) != 2) answers = 1;
            } else if (length >= 0 || errno == EAGAIN || errno == EINTR) {
                continue;
            }
            close(fds[i].fd);
            fds[i].fd = -1;
            waiting--;
        }
    }
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].fd >= 0) close(fds[i].fd);
    return answers;
}
