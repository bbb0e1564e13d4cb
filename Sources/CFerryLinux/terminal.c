/*
 * A terminal that is given back on every way out. What has to happen in a signal handler uses only what
 * signal-safety(7) allows: write, tcsetattr, sigaction, raise, and the eventfd's write.
 */
#define _GNU_SOURCE
#include "CFerryLinux.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

/* Signals that end the process by default; SIGPIPE is ignored by every command, SIGKILL cannot be caught. */
static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT,   SIGBUS,
                             SIGFPE,  SIGSEGV, SIGTERM, SIGALRM, SIGUSR2,   SIGSYS,    SIGXCPU,
                             SIGXFSZ, SIGIO,   SIGPROF, SIGVTALRM, SIGSTKFLT, SIGPWR};
/* Those that it lives on with; SIGUSR1 asks for the state, which stands on the screen. */
static const int watched[] = {SIGTSTP, SIGCONT, SIGWINCH, SIGUSR1};

static struct {
    int input, output, wake;
    char enter[256], leave[256];
    size_t enter_length, leave_length;
    struct termios before, during;
} terminal;

/* 1 while the terminal is ours. */
static atomic_int is_entered;
/* 1 between ferry_terminal_enter and ferry_terminal_leave. */
static atomic_int is_wanted;
static atomic_int events;
static char alternate_stack[64 * 1024];

static void write_all(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = write(terminal.output, bytes, length);
        if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (n < 0 && errno != EINTR) {
            return; /* gone, or stopped by its reader: nothing can be given back */
        }
    }
}

static void take(void) {
    if (!atomic_load(&is_wanted) || atomic_exchange(&is_entered, 1)) return;
    /* In the background this stops the process until it is in the foreground again (SIGTTOU). */
    while (tcsetattr(terminal.input, TCSANOW, &terminal.during) != 0 && errno == EINTR) {}
    write_all(terminal.enter, terminal.enter_length);
}

static void give_back(void) {
    if (!atomic_exchange(&is_entered, 0)) return;
    write_all(terminal.leave, terminal.leave_length);
    while (tcsetattr(terminal.input, TCSANOW, &terminal.before) != 0 && errno == EINTR) {}
}

static void report(int event) {
    atomic_fetch_or(&events, event);
    (void)eventfd_write(terminal.wake, 1);
}

static void on_signal(int signal);

static void install(int signal) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(signal, &action, NULL);
}

/* Lets a signal do what it does by default, now. */
static void act_by_default(int signal) {
    struct sigaction action;
    sigset_t set;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, signal);
    raise(signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void on_signal(int signal) {
    int saved = errno;
    switch (signal) {
    case SIGUSR1:
    case SIGWINCH: report(FERRY_TERMINAL_RESIZED); break;
    case SIGCONT:
        take();
        report(FERRY_TERMINAL_RESIZED | FERRY_TERMINAL_LOST);
        break;
    case SIGTSTP:
        give_back();
        act_by_default(SIGTSTP);
        /* Here the process goes on; in an orphaned group it never stopped. */
        install(SIGTSTP);
        take();
        report(FERRY_TERMINAL_RESIZED | FERRY_TERMINAL_LOST);
        break;
    default:
        give_back();
        act_by_default(signal);
    }
    errno = saved;
}

int ferry_terminal_enter(int input, int output, int wake, const char *enter, const char *leave) {
    static int is_registered;
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    terminal.input = input;
    terminal.output = output;
    terminal.wake = wake;
    terminal.enter_length = strlen(enter);
    terminal.leave_length = strlen(leave);
    if (terminal.enter_length > sizeof terminal.enter || terminal.leave_length > sizeof terminal.leave) {
        errno = EINVAL;
        return -1;
    }
    memcpy(terminal.enter, enter, terminal.enter_length);
    memcpy(terminal.leave, leave, terminal.leave_length);
    if (tcgetattr(input, &terminal.before) != 0) return -1;
    terminal.during = terminal.before;
    /* Keys one by one and unseen; the terminal goes on making signals of Ctrl-C, Ctrl-Z and Ctrl-\. */
    terminal.during.c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN);
    terminal.during.c_iflag &= (tcflag_t) ~(IXON | ICRNL | INLCR);
    terminal.during.c_cc[VMIN] = 1;
    terminal.during.c_cc[VTIME] = 0;
    (void)sigaltstack(&stack, NULL); /* without one, only a stack that overflows leaves the terminal as it is */
    if (!is_registered) is_registered = atexit(ferry_terminal_leave) == 0;
    atomic_store(&is_wanted, 1);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN) continue;
        install(ending[i]);
    }
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        struct sigaction action;
        /* A shell without job control has its children ignore SIGTSTP. */
        if (sigaction(watched[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN) continue;
        install(watched[i]);
    }
    take();
    return 0;
}

int ferry_terminal_events(void) { return atomic_exchange(&events, 0); }

void ferry_terminal_leave(void) {
    atomic_store(&is_wanted, 0);
    give_back();
}
