/* signals WHAT: spends 0.3 s on a processor while it does WHAT with signals, threads or system calls, and ends with 7 if everything was as it
   would be alone. The timers of `mallow cpu -e timers` must not be noticed. With INTERPRETER it looks like a CPython that runs nothing, so that events
   send it signals; nor must these. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef INTERPRETER
#define OURS SIGTRAP
extern const unsigned long Py_Version;
const unsigned long Py_Version = 0x030b00f0;
extern void *PyCode_Type[64];
void *PyCode_Type[64];
#define ANSWERS_NOTHING(name) \
    void *name(void);         \
    void *name(void) { return NULL; }
ANSWERS_NOTHING(PyGILState_GetThisThreadState)
ANSWERS_NOTHING(_PyThreadState_UncheckedGet)
ANSWERS_NOTHING(_Py_IsFinalizing)
ANSWERS_NOTHING(PyInterpreterState_Head)
ANSWERS_NOTHING(PyInterpreterState_Main)
ANSWERS_NOTHING(_PyEval_EvalFrameDefault)
#else
#define OURS SIGURG
#endif

static volatile unsigned long sum;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* So long on a processor, whoever else wants it. */
__attribute__((noinline)) void spin_for(double wanted) {
    double end = seconds(CLOCK_THREAD_CPUTIME_ID) + wanted;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 100000; i++)
            sum += (unsigned long)i;
}

static int is(int right, const char *what) {
    if (!right)
        printf("not as alone: %s\n", what);
    return right;
}

/* Blocks everything, and finds blocked what it blocked. */
static int blocked(void) {
    sigset_t all, before, now;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    spin_for(0.3);
    pthread_sigmask(SIG_SETMASK, &before, &now);
    return is(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGTERM) == 1, "the blocked signals");
}

/* As `blocked`, by the system call itself. */
__attribute__((noinline)) static int unseen(void) {
    unsigned long all = ~0ul, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    spin_for(0.3);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
    return 1;
}

static int pipes[2];
static volatile int taken, of_kill;
static void take(int signal, siginfo_t *info, void *context) {
    taken += signal == OURS && context != NULL;
    of_kill += info->si_code == SI_TKILL && info->si_pid == getpid();
}
static void take_simply(int signal) { taken += signal == OURS; }
static sigjmp_buf out;
static void jump(int signal) { siglongjmp(out, signal); }

/* Handles the timers' signal itself. */
static int handled(void) {
    struct sigaction action = {.sa_sigaction = take, .sa_flags = SA_SIGINFO}, found;
    sigemptyset(&action.sa_mask);
    sigaction(OURS, &action, NULL);
    sigaction(OURS, NULL, &found);
    int right = is(found.sa_sigaction == take && found.sa_flags & SA_SIGINFO, "the handler");
    for (int i = 0; i < 100; i++) {
        raise(OURS);
        spin_for(0.002);
    }
    right &= is(taken == 100 && of_kill == 100, "the signals that were sent");
    right &= is((void *)signal(OURS, take_simply) == (void *)take, "the handler before");
    raise(OURS);
    right &= is(taken == 101, "a handler with one argument");
    struct sigaction once = {.sa_handler = take_simply, .sa_flags = (int)SA_RESETHAND};
    sigaction(OURS, &once, NULL);
    raise(OURS);
    if (OURS != SIGTRAP)
        raise(OURS);
    right &= is(taken == 102, "a handler for once");
    signal(OURS, jump);
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(out, 1) == 0) {
            raise(OURS);
            right &= is(0, "a jump out of a handler");
        }
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    right &= is(sigismember(&mask, OURS) == 0 && sigismember(&mask, SIGUSR1) == 0, "the signals after jumps");
    sigset_t urgent;
    sigemptyset(&urgent);
    sigaddset(&urgent, OURS);
    sigprocmask(SIG_BLOCK, &urgent, NULL);
    signal(OURS, take_simply);
    raise(OURS);
    right &= is(taken == 102, "a signal that is blocked");
    sigprocmask(SIG_UNBLOCK, &urgent, NULL);
    right &= is(taken == 103, "a signal that was blocked");
    spin_for(0.1);
    return right;
}

static void *send_later(void *thread) {
    spin_for(0.05);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

/* Waits for any signal, and gets the one that was sent. */
static int waits(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_t self = pthread_self(), other;
    int right = 1;
    for (int i = 0; i < 6; i++) {
        pthread_create(&other, NULL, send_later, &self);
        int got = 0;
        siginfo_t info;
        struct timespec minute = {60, 0};
        if (i % 3 == 0)
            sigwait(&all, &got);
        else
            got = i % 3 == 1 ? sigwaitinfo(&all, &info) : sigtimedwait(&all, &info, &minute);
        right &= is(got == SIGUSR1, "the signal that was waited for");
        pthread_join(other, NULL);
    }
    return right;
}

static void *feed(void *unused) {
    for (int i = 0; i < 200; i++) {
        spin_for(0.001);
        if (write(pipes[1], "x", 1) != 1)
            return (void *)1;
    }
    close(pipes[1]);
    return unused;
}

/* Reads, with work between: a read is never interrupted. */
static int interrupted(void) {
    pthread_t other;
    char byte;
    ssize_t got;
    int reads = 0, right = is(pipe(pipes) == 0, "a pipe");
    pthread_create(&other, NULL, feed, NULL);
    while ((got = read(pipes[0], &byte, 1)) > 0) {
        spin_for(0.0005);
        reads++;
    }
    right &= is(got == 0 && reads == 200, "a read that goes on");
    void *failed;
    pthread_join(other, &failed);
    return right & is(failed == NULL, "a write that goes on");
}

static void *brief(void *unused) {
    spin_for(0.0005);
    if (unused != NULL)
        pthread_exit(unused);
    return NULL;
}

/* Threads that end in both ways; their timers are given back. */
static int threads(void) {
    int right = 1;
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        void *got, *wanted = i % 2 ? pipes : NULL;
        right &= is(pthread_create(&thread, NULL, brief, wanted) == 0, "a thread");
        pthread_join(thread, &got);
        right &= got == wanted;
    }
    FILE *timers = fopen("/proc/self/timers", "r");
    char line[256];
    int count = 0;
    while (timers != NULL && fgets(line, sizeof line, timers) != NULL)
        count += strncmp(line, "ID:", 3) == 0;
    return right & is(count < 200, "the timers that are left");
}

static ucontext_t main_context, other_context;
static void on_small_stack(void) {
    spin_for(0.3);
}

/* On a stack of its own that ends at memory that is not mapped, on both sides. */
static int elsewhere(void) {
    const size_t size = 32 << 10;
    char *room = mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room + 4096, size, PROT_READ | PROT_WRITE);
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = room + 4096;
    other_context.uc_stack.ss_size = size;
    other_context.uc_link = &main_context;
    makecontext(&other_context, on_small_stack, 0);
    return is(swapcontext(&main_context, &other_context) == 0, "a stack of its own");
}

/* A filter that kills for every call but those of its own work. */
static int filtered(void) {
    spin_for(0.2);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (!is(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "a filter"))
        return 0;
    for (unsigned long i = 0; i < 400000000; i++)
        sum += i;
    _exit(7);
}

/* Forks while it works, in the ways that there are. */
/* What a daemon does before it changes its user. */
static int keeps_rights(void) {
    int right = is(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, "the rights");
    spin_for(0.3);
    return right;
}

static int forks(void) {
    int right = 1, status = 0;
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) {
            spin_for(0.05);
            _exit(i);
        }
        right &= is(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i, "a child");
        right &= is(system("exit 3") >> 8 == 3, "a shell");
    }
    spin_for(0.1);
    return right;
}

/* Our signal does what it does to a program that does not handle it. */
static int trapped(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        spin_for(0.1);
        raise(OURS);
        _exit(5);
    }
    spin_for(0.2);
    waitpid(child, &status, 0);
    int is_ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP;
    int goes_on = WIFEXITED(status) && WEXITSTATUS(status) == 5;
    return is(OURS == SIGTRAP ? is_ended : goes_on, "a signal without a handler");
}

/* Executes a program while signals that nobody told of are blocked, and lets them through there. */
static char **all_words;
static int executes(void) {
    unsigned long all = ~0ul;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8);
    spin_for(0.2);
    execl("/proc/self/exe", all_words[0], "executed", (char *)NULL);
    return is(0, "a program");
}
/* Executes itself again and again, and before each time a program that is not there. */
static int chain(void) {
    int left = atoi(all_words[2]);
    char next[16];
    spin_for(0.003);
    if (left == 0)
        return 1;
    snprintf(next, sizeof next, "%d", left - 1);
    char *words[] = {all_words[0], "chain", next, NULL};
    int right = is(execv("/no/such/program", words) == -1 && errno == ENOENT, "a program that is not there");
    if (right)
        execv("/proc/self/exe", words);
    return 0;
}
static int executed(void) {
    unsigned long none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
    spin_for(0.2);
    return 1;
}

int main(int count, char **words) {
    all_words = words;
    const struct {
        const char *name;
        int (*run)(void);
    } all[] = {
        {"blocked", blocked}, {"unseen", unseen}, {"handled", handled}, {"waits", waits}, {"interrupted", interrupted},
        {"threads", threads}, {"elsewhere", elsewhere}, {"filtered", filtered}, {"forks", forks}, {"rights", keeps_rights},
        {"trapped", trapped}, {"executes", executes}, {"executed", executed}, {"chain", chain},
    };
    for (size_t i = 0; count > 1 && i < sizeof all / sizeof *all; i++)
        if (strcmp(words[1], all[i].name) == 0)
            return all[i].run() ? 7 : 1;
    return 2;
}
