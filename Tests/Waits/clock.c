/*
 * Clocks that a lab sets, for a program that it is preloaded into; those of the machine are left alone.
 *
 * FERRY_LAB_CLOCK names a file of two 64-bit numbers: nanoseconds by which the wall clock and the boot clock are ahead
 * of the machine's. The boot clock jumps where a machine has slept, the monotonic one never does (clock_gettime(2)).
 * Beside it is FILE.bell, a FIFO: it stands for the timer that the kernel cancels when the clock was set or the machine
 * woke up (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). Whoever changes the file writes a byte into it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t *ahead; /* of the wall clock, of the boot clock */
static int bell = -1;
static int boot = -1; /* the one timer of the boot clock, Dispatch's, and when it goes off by that clock */
static struct itimerspec alarm_at;

static const volatile int64_t *offsets(void) {
    if (ahead == NULL) {
        static const int64_t none[2];
        const char *path = getenv("FERRY_LAB_CLOCK");
        int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0) close(fd);
        ahead = map == MAP_FAILED ? none : map;
    }
    return ahead;
}

static void add(struct timespec *time, int64_t nanoseconds) {
    int64_t sum = time->tv_sec * SECOND + time->tv_nsec + nanoseconds;
    time->tv_sec = sum / SECOND;
    time->tv_nsec = sum % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) add(time, offsets()[0]);
    if (result == 0 && clock == CLOCK_BOOTTIME) add(time, offsets()[1]);
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}

int timerfd_create(int clock, int flags) {
    char path[4096];
    if (clock == CLOCK_REALTIME && getenv("FERRY_LAB_CLOCK") != NULL) {
        snprintf(path, sizeof path, "%s.bell", getenv("FERRY_LAB_CLOCK"));
        return bell = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    }
    int fd = (int)syscall(SYS_timerfd_create, clock, flags);
    if (clock == CLOCK_BOOTTIME) boot = fd;
    return fd;
}

/* What goes off at a time of the boot clock goes off earlier by what that is ahead; where it sleeps, at once. */
int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old) {
    struct itimerspec shifted = *at;
    if (fd == bell) {
        if (boot >= 0) timerfd_settime(boot, TFD_TIMER_ABSTIME, &alarm_at, NULL);
        return 0;
    }
    if (fd == boot) {
        alarm_at = *at;
        if ((flags & TFD_TIMER_ABSTIME) && (at->it_value.tv_sec | at->it_value.tv_nsec) != 0) {
            add(&shifted.it_value, -offsets()[1]);
            if (shifted.it_value.tv_sec < 0) shifted.it_value = (struct timespec){.tv_nsec = 1};
        }
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, &shifted, old);
}
