#ifndef FERRY_LINUX_H
#define FERRY_LINUX_H

/*
 * Linux calls that Swift's Glibc module does not show: variadic ones, ones behind _GNU_SOURCE, and macros
 * with arguments. Each function does what the manual page of the call that it names says, and sets errno.
 */

#include <stdint.h>
#include <sys/types.h>

#include "ferry_crc.h"
#include "ferry_network.h"

#pragma clang assume_nonnull begin

/* renameat2(2) with RENAME_NOREPLACE: fails with EEXIST where the target exists. */
int ferry_rename_noreplace(int from_dir, const char *from, int to_dir, const char *to);

/* fallocate(2) with FALLOC_FL_KEEP_SIZE: reserves blocks and leaves the file's size alone. */
int ferry_fallocate_keep_size(int fd, int64_t offset, int64_t length);

/* sync_file_range(2) with SYNC_FILE_RANGE_WRITE: starts write-out; promises nothing. */
int ferry_start_writeout(int fd, int64_t offset, int64_t length);

/* lseek(2) with SEEK_HOLE from the beginning: the first byte that was never written, or the file's end. */
int64_t ferry_first_hole(int fd);

/* copy_file_range(2) at offsets that stay as they are. */
ssize_t ferry_copy_file_range(int from, int64_t from_offset, int to, int64_t to_offset, size_t length);

/* preadv2(2) of one buffer with RWF_NOWAIT: what is in memory, else -1 with EAGAIN, or EOPNOTSUPP where none tells. */
ssize_t ferry_pread_cached(int fd, void *buffer, size_t length, int64_t offset);

/* openat(2) with a mode. */
int ferry_openat(int dir, const char *path, int flags, mode_t mode);

/* SO_PEERCRED of a Unix socket. */
int ferry_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid);

/*
 * SO_PEERGROUPS of a Unix socket: the supplementary groups of the peer. Returns how many there are, of which
 * `count` at most are stored, or -1.
 */
int ferry_peer_groups(int fd, gid_t *groups, int count);

/* signalfd(2) for the signals given, which are blocked in the calling thread first. */
int ferry_signalfd(const int *signals, int count);

/* The number of the next signal waiting in a signalfd, 0 where none is. */
int ferry_signalfd_read(int fd);

/* Restores the default action of a signal, unblocks it, and sends it to this process. */
void ferry_die_by_signal(int signal);

/* eventfd(2), non-blocking and close-on-exec. */
int ferry_eventfd(void);

/* Adds one to an eventfd, so that it becomes readable; from any thread. */
void ferry_eventfd_signal(int fd);

/* Sets an eventfd back to zero. */
void ferry_eventfd_clear(int fd);

/* malloc_trim(3) with nothing to keep at the top of the heap. */
void ferry_trim_heap(void);

/* Stores a word so that no earlier store can be seen after it. */
void ferry_store_release(uint64_t *word, uint64_t value);

/* The width in columns of the terminal, 0 where fd is none. */
int ferry_terminal_columns(int fd);

/* The rows of the terminal, 0 where fd is none. */
int ferry_terminal_rows(int fd);

/* What ferry_terminal_events tells. */
enum { FERRY_TERMINAL_RESIZED = 1, FERRY_TERMINAL_LOST = 2 };

/*
 * Takes over a terminal: keys come one by one and unseen, and `enter` is written. The terminal is as before, and
 * `leave` written, whenever the process leaves it: by ferry_terminal_leave, by exit(3), by a signal that ends it,
 * a crash included, and while SIGTSTP stops it. Signals and resizes make the eventfd `wake` readable. For one
 * terminal of a process. Returns 0, or -1 with errno.
 */
int ferry_terminal_enter(int input, int output, int wake, const char *enter, const char *leave);

/* What happened since the last call: the size may differ, or what was drawn is lost. */
int ferry_terminal_events(void);

/* Gives the terminal back; may be repeated. */
void ferry_terminal_leave(void);

/* The type number of the file system of fd (f_type of statfs(2)), -1 on an error. */
int64_t ferry_filesystem_type(int fd);

/*
 * Whether anybody else has the file of fd open: 1 or 0, -1 where the file system cannot tell.
 *
 * Asks for a write lease and gives it back, which is granted only while no other descriptor of the file is open
 * (fcntl(2), F_SETLEASE).
 */
int ferry_is_open_elsewhere(int fd);

/*
 * inotify(7) for descriptors that were open for writing and are closed. A file is added by a descriptor of it, needs
 * /proc, and has one mark however often it is added. ferry_edit_watch_next never waits; it tells how many events it
 * has stored: a mark, -1 if some were lost, 0 for what is of no interest.
 */
int ferry_edit_watch(void);
int ferry_edit_watch_add(int watch, int fd);
void ferry_edit_watch_remove(int watch, int mark);
int ferry_edit_watch_next(int watch, int *marks, int count);

/*
 * Starts a program in a session of its own: descriptors 0 to 2 are /dev/null, status_fd becomes descriptor 3,
 * all above is closed, the signal mask is empty, the working directory is "/". Returns 0 or an errno value.
 */
int ferry_spawn_service(const char *path, char *_Nullable const *_Nonnull argv, int status_fd, pid_t *pid);

/*
 * Starts a program in a session, and so a process group, of its own: descriptor 0 reads `input`, 1 and 2 are
 * `output` and `errors`, all above is closed, the signal mask is empty, every signal has its default action, and
 * the working directory is "/". Returns 0 or an errno value.
 */
int ferry_spawn_program(
    const char *path, char *_Nullable const *_Nonnull argv, char *_Nullable const *_Nonnull envp, const void *input,
    size_t length, int output, int errors, pid_t *pid);

/*
 * Starts a process that outlives this one for a moment: when this one has ended, however it did, it kills the process
 * group whose number was last written into `fd`, a pid_t; 0 is none. It ends when `fd` is closed, and has to be waited
 * for. Returns its number, or -1 with errno.
 */
pid_t ferry_guard(int *fd);

/* pidfd_open(2): a descriptor that is readable once the process has ended; -1 where the kernel has none. */
int ferry_pidfd(pid_t pid);

/* prctl(PR_SET_NAME) for the calling thread, and nothing else. */
void ferry_name_thread(const char *name);

/* Overwrites the arguments of this process in the process list with the program's name. */
void ferry_hide_arguments(void);

/*
 * A descriptor that becomes readable when the wall clock is set (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET); -1
 * with errno. ferry_clock_rewatch makes it ready for the next time.
 */
int ferry_clock_watch(void);
void ferry_clock_rewatch(int fd);

#pragma clang assume_nonnull end

#endif
