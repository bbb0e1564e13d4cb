#define _GNU_SOURCE
#include "CFerryLinux.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

int ferry_edit_watch(void) { return inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }

int ferry_edit_watch_add(int watch, int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return inotify_add_watch(watch, path, IN_CLOSE_WRITE);
}

void ferry_edit_watch_remove(int watch, int mark) { inotify_rm_watch(watch, mark); }

int ferry_edit_watch_next(int watch, int *marks, int count) {
    /* Events of files that are watched themselves have no name, so all are of the same size (inotify(7)). */
    struct inotify_event events[64];
    ssize_t size = 0;
    if (count > 64) count = 64;
    do size = read(watch, events, (size_t)count * sizeof *events);
    while (size < 0 && errno == EINTR);
    int found = 0;
    for (int i = 0; i < size / (ssize_t)sizeof *events; i++) {
        if (events[i].mask & IN_Q_OVERFLOW) marks[found++] = -1;
        else if (events[i].mask & IN_CLOSE_WRITE) marks[found++] = events[i].wd;
        else marks[found++] = 0; /* the end of a mark; none has this number */
    }
    return found;
}
