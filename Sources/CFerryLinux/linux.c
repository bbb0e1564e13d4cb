#define _GNU_SOURCE
#include "CFerryLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

extern char **environ;

int ferry_rename_noreplace(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
}

int ferry_fallocate_keep_size(int fd, int64_t offset, int64_t length) {
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length);
}

int ferry_start_writeout(int fd, int64_t offset, int64_t length) {
    return sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE);
}

int64_t ferry_first_hole(int fd) { return lseek(fd, 0, SEEK_HOLE); }

ssize_t ferry_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t length) {
    off64_t source = from_offset, target = to_offset;
    return copy_file_range(from, &source, to, &target, length, 0);
}

ssize_t ferry_pread_cached(int fd, void *buffer, size_t length, int64_t offset) {
    struct iovec piece = {.iov_base = buffer, .iov_len = length};
    return preadv2(fd, &piece, 1, offset, RWF_NOWAIT);
}

int ferry_openat(int dir, const char *path, int flags, mode_t mode) { return openat(dir, path, flags, mode); }

int ferry_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return -1;
    *pid = credentials.pid;
    *uid = credentials.uid;
    *gid = credentials.gid;
    return 0;
}

int ferry_peer_groups(int fd, gid_t *groups, int count) {
    socklen_t size = (socklen_t)(count * (int)sizeof(gid_t));
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0 && errno != ERANGE) return -1;
    return (int)(size / sizeof(gid_t));
}

int ferry_signalfd(const int *signals, int count) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int ferry_signalfd_read(int fd) {
    struct signalfd_siginfo info;
    ssize_t n = read(fd, &info, sizeof info);
    return n == sizeof info ? (int)info.ssi_signo : 0;
}

void ferry_die_by_signal(int signal) {
    sigset_t set;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), signal);
}

int ferry_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void ferry_eventfd_signal(int fd) {
    /* It can only fail when the counter is at its maximum, and then it is readable already. */
    (void)eventfd_write(fd, 1);
}

void ferry_eventfd_clear(int fd) {
    eventfd_t value;
    (void)eventfd_read(fd, &value); /* EAGAIN: it was zero */
}

void ferry_store_release(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

int ferry_terminal_columns(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int ferry_terminal_rows(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

int64_t ferry_filesystem_type(int fd) {
    struct statfs info;
    return fstatfs(fd, &info) == 0 ? (int64_t)info.f_type : -1;
}

int ferry_spawn_service(const char *path, char *const *argv, int status_fd, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    int error;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    /* The status pipe must not be one of the descriptors that are replaced first. */
    int status = fcntl(status_fd, F_DUPFD_CLOEXEC, 10);
    if (status < 0) return errno;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, status, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    sigemptyset(&none);
    sigfillset(&defaults);
    sigdelset(&defaults, SIGKILL);
    sigdelset(&defaults, SIGSTOP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn(pid, path, &actions, &attributes, argv, environ);
    close(status);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A file in memory that holds `input`, to be read from its beginning; -1 with errno. */
static int memory_file(const void *input, size_t length) {
    int fd = memfd_create("ferry-input", MFD_CLOEXEC);
    const char *bytes = input;
    while (fd >= 0 && length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int error = errno;
            close(fd);
            errno = error;
            return -1;
        }
        bytes += n;
        length -= (size_t)n;
    }
    if (fd >= 0) lseek(fd, 0, SEEK_SET);
    return fd;
}

int ferry_spawn_program(
    const char *path, char *const *argv, char *const *envp, const void *input, size_t length, int output, int errors,
    pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    int error = 0;
    int in = memory_file(input, length);
    /* None of them may be one of the descriptors that are replaced first. */
    int source = in < 0 ? -1 : fcntl(in, F_DUPFD_CLOEXEC, 10);
    int out = fcntl(output, F_DUPFD_CLOEXEC, 10);
    int err = fcntl(errors, F_DUPFD_CLOEXEC, 10);
    if (source < 0 || out < 0 || err < 0) error = errno;
    if (error == 0) {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        posix_spawn_file_actions_adddup2(&actions, source, 0);
        posix_spawn_file_actions_adddup2(&actions, out, 1);
        posix_spawn_file_actions_adddup2(&actions, err, 2);
        posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        posix_spawn_file_actions_addchdir_np(&actions, "/");
        sigemptyset(&none);
        sigfillset(&defaults);
        sigdelset(&defaults, SIGKILL);
        sigdelset(&defaults, SIGSTOP);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        error = posix_spawn(pid, path, &actions, &attributes, argv, envp);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (in >= 0) close(in);
    if (source >= 0) close(source);
    if (out >= 0) close(out);
    if (err >= 0) close(err);
    return error;
}

/* After fork(2) in a program with threads only what is async-signal-safe may be called (POSIX): system calls. */
static _Noreturn void guard_group(int fd) {
    pid_t group = 0, word;
    dup2(fd, 0);
    /* No lock, socket or pipe of the service may live on in here; before Linux 5.9 each is closed by itself. */
    if (syscall(SYS_close_range, 1U, ~0U, 0U) != 0)
        for (int other = 1; other < 65536; other++) close(other);
    prctl(PR_SET_NAME, (unsigned long)"ferry-guard", 0, 0, 0);
    setsid(); /* what a terminal sends to the service is not for this one */
    for (;;) {
        ssize_t n = read(0, &word, sizeof word);
        if (n == sizeof word) {
            group = word;
        } else if (n >= 0 || errno != EINTR) {
            break;
        }
    }
    if (group > 1) kill(-group, SIGKILL);
    _exit(0);
}

pid_t ferry_guard(int *fd) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    /* Until it has no signal handlers of the service any more it must not run one. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) guard_group(ends[0]);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
    } else {
        *fd = ends[1];
    }
    errno = error;
    return pid;
}

int ferry_pidfd(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

void ferry_name_thread(const char *name) { prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0); }

/* The loader hands argv to constructors; it is the memory that the process list shows. */
static char *first_argument;
static size_t arguments_length;

__attribute__((constructor)) static void remember_arguments(int argc, char **argv) {
    if (argc < 1 || argv == NULL || argv[0] == NULL) return;
    first_argument = argv[0];
    char *end = argv[argc - 1] + strlen(argv[argc - 1]);
    arguments_length = (size_t)(end - argv[0]);
}

void ferry_hide_arguments(void) {
    if (first_argument == NULL) return;
    size_t keep = strlen(first_argument);
    if (arguments_length > keep) memset(first_argument + keep, 0, arguments_length - keep);
}

int ferry_is_open_elsewhere(int fd) {
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return errno == EAGAIN ? 1 : -1;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return 0;
}

static int watch_clock(int fd) {
    struct itimerspec never;
    memset(&never, 0, sizeof never);
    never.it_value.tv_sec = (time_t)1 << 40;
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

int ferry_clock_watch(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && watch_clock(fd) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void ferry_clock_rewatch(int fd) {
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof count); /* ECANCELED: the clock was set */
    (void)n;
    watch_clock(fd);
}

void ferry_trim_heap(void) {
    malloc_trim(0);
}
