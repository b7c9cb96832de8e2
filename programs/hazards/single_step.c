/* Hazard: a signal handler that allocates at every single instruction of whatever stands in front of the allocator.
 * A program sets the trap flag and steps through one call; the handler counts the instructions that lie in the preloaded
 * library, and at one of them, another one in each round, it allocates, reallocates and frees. Rounds go on until a call has no
 * instruction left at which it did not. A record that is half written, a state that is half changed, a table entry that is
 * half there: each of them is met once.
 *
 * The handler strikes only inside the preloaded library, never inside the allocator, so nothing here is undefined. With an allocator
 * linked in, it strikes at its displaced first instructions too, before the allocator has done anything.
 *
 *   single_step OPERATION STACK [STRIDE [HEAD TAIL WORDS]]
 *     OPERATION  malloc: a block of 100 bytes from one stack
 *                fresh:  the same from a stack that is new in each round
 *                free:   of a block of 100 bytes
 *                realloc: of a block of 100 bytes to 200
 *                thread: the first call of a new thread
 *                fork:   the first call of a forked child; each child ends with status 0
 *                jump:   the same, but the strike is a signal whose handler leaves by siglongjmp; behind it the child starts a
 *                        thread, which allocates 16 bytes
 *                full:   three blocks of 100 bytes into a ring that is full: mallow, our parent, is stopped, and goes on
 *                        20 ms later; the words behind STRIDE say where a ring's head and tail lie
 *                mark:   a region's begin and end with a block of 100 bytes in it, within a region around all rounds
 *     STRIDE     strike at every instruction (1), or at every so many; `STRIDE+FIRST` leaves out the first ones
 *     STACK      normal, static (an alternate stack in static memory), frame (one that is a local array of main)
 *
 * Printed: `rounds N`, and for `stepped` (the operation's own function) and `struck` (the handler's) what they did.
 * Each strike is one allocation of 32 bytes, one reallocation to 64, one free: 2 allocations, 96 bytes, 2 frees. */
#define _GNU_SOURCE
#include "hazard.h"
#include "mallow.h"
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>

#define ALT_BYTES (64 * 1024)

static unsigned long library_start, library_end, patches_start, patches_end;
static volatile unsigned long in_library, target;
static volatile int struck_now;
static unsigned long rounds, struck_count, stride = 1;

static FRAME void *stepped_malloc(void) { void *p = malloc(100); KEEP(p); return p; }
static FRAME void *stepped_realloc(void *p) { p = realloc(p, 200); KEEP(p); return p; }
static FRAME void stepped_free(void *p) { free(p); STAY(); }
static FRAME void *deep_left(unsigned long bits, int levels);
static FRAME void *deep_right(unsigned long bits, int levels);
static FRAME void *deep(unsigned long bits, int levels) {
    void *p;
    if (levels == 0) p = stepped_malloc();
    else if (bits & 1) p = deep_right(bits >> 1, levels - 1);
    else p = deep_left(bits >> 1, levels - 1);
    STAY();
    return p;
}
static FRAME void *deep_left(unsigned long bits, int levels) { void *p = deep(bits, levels); STAY(); return p; }
static FRAME void *deep_right(unsigned long bits, int levels) { void *p = deep(bits, levels); STAY(); return p; }

static FRAME void struck(void) {
    char *p = malloc(32);
    KEEP(p);
    p = realloc(p, 64);
    KEEP(p);
    free(p);
    struck_count++;
}

static int jumps;
static sigjmp_buf landing;
static void on_jump(int number) { (void)number; siglongjmp(landing, 1); }

/* `rep stosb` of the C library traps after each of its bytes: they are written at once, and the instruction has none left. */
static void whole_string(greg_t *registers, const unsigned char *code) {
    if (code[0] != 0xf3 || code[1] != 0xaa) return;
    memset((void *)registers[REG_RDI], (int)registers[REG_RAX], (size_t)registers[REG_RCX]);
    registers[REG_RDI] += registers[REG_RCX];
    registers[REG_RCX] = 0;
}

static void on_step(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    unsigned long at = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    int in_patches = at >= patches_start && at < patches_end;
    if ((at < library_start || at >= library_end) && !in_patches) {
        whole_string(((ucontext_t *)context)->uc_mcontext.gregs, (const unsigned char *)at);
        return;
    }
    if (in_library++ != target) return;
    struck_now = 1;
    /* Nothing else happens in this round: the rest of the call need not be stepped through. */
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
    if (jumps) kill(getpid(), SIGUSR1);
    else struck();
    STAY();
}

static inline void step(int on) {
    if (on) __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static int find(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "mallow")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
        library_start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        library_end = library_start + info->dlpi_phdr[i].p_memsz;
    }
    return 1;
}

/* The line of a mapping, without allocating; null when there is none. */
static char *mapped_as(const char *wanted) {
    static char maps[1 << 20];
    size_t used = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY);
    while ((got = read(fd, maps + used, sizeof maps - 1 - used)) > 0) used += (size_t)got;
    close(fd);
    maps[used] = 0;
    char *line = strstr(maps, wanted);
    while (line > maps && line[-1] != '\n') line--;
    return line;
}

/* Where the displaced instructions are; nowhere without an allocator linked in. */
static void find_patches(void) {
    char *line = mapped_as("memfd:allocator-patches");
    if (line == NULL) return;
    patches_start = strtoul(line, &line, 16);
    patches_end = strtoul(line + 1, NULL, 16);
}

static unsigned long filled_count;
static FRAME void filler(void) { void *p = malloc(8); KEEP(p); free(p); filled_count++; }

/* The first lane's head and tail, in the shared memory that the recorder mapped. `stat` has no ring. */
static volatile uint64_t *head, *tail;
static unsigned long ring_words;

static void find_ring(char **words) {
    char *line = mapped_as("memfd:mallow");
    EXPECT(line, 22);
    char *shared = (char *)strtoul(line, NULL, 16);
    head = (uint64_t *)(shared + strtoul(words[0], NULL, 10));
    tail = (uint64_t *)(shared + strtoul(words[1], NULL, 10));
    ring_words = strtoul(words[2], NULL, 10);
}

static volatile pid_t stopped;

/* Whoever waits for mallow cannot wake it. */
static void *waker(void *unused) {
    (void)unused;
    for (;;) {
        usleep(20000);
        if (stopped) kill(stopped, SIGCONT);
    }
    return NULL;
}

static char state_of(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    char *behind = strrchr(text, ')');
    return behind ? behind[2] : '?';
}

/* Leaves less room in the ring than two records take. */
static void fill(void) {
    pid_t mallow = getppid();
    stopped = 0;
    kill(mallow, SIGSTOP);
    while (state_of(mallow) != 'T') usleep(100);
    while (ring_words - (*head - *tail) >= 5) filler();
    stopped = mallow;
}

static void *in_thread(void *unused) {
    (void)unused;
    step(1);
    void *p = stepped_malloc();
    step(0);
    free(p);
    return NULL;
}

static FRAME void *after_jump(void *unused) { (void)unused; void *p = malloc(16); KEEP(p); free(p); return NULL; }

/* Whoever waits for a start that was left waits until the alarm. */
static void jump_away(void) {
    pthread_t thread;
    alarm(20);
    if (sigsetjmp(landing, 1) == 0) {
        step(1);
        void *p = stepped_malloc();
        step(0);
        free(p);
    }
    EXPECT(pthread_create(&thread, NULL, after_jump, NULL) == 0, 24);
    EXPECT(pthread_join(thread, NULL) == 0, 25);
}

/* One round. In a forked child everything that is counted is the child's own, so main counts for it. */
static void round_of(const char *operation, unsigned long round) {
    void *p;
    if (!strcmp(operation, "malloc")) {
        step(1);
        p = stepped_malloc();
        step(0);
        free(p);
    } else if (!strcmp(operation, "fresh")) {
        step(1);
        p = deep(round, 12);
        step(0);
        free(p);
    } else if (!strcmp(operation, "free")) {
        p = stepped_malloc();
        step(1);
        stepped_free(p);
        step(0);
    } else if (!strcmp(operation, "realloc")) {
        p = stepped_malloc();
        step(1);
        p = stepped_realloc(p);
        step(0);
        free(p);
    } else if (!strcmp(operation, "full")) {
        void *blocks[3];
        if (head) fill();
        step(1);
        for (int i = 0; i < 3; i++) blocks[i] = stepped_malloc();
        step(0);
        stopped = 0;
        for (int i = 0; i < 3; i++) free(blocks[i]);
    } else if (!strcmp(operation, "mark")) {
        step(1);
        mallow_region_begin("step.round");
        p = stepped_malloc();
        free(p);
        mallow_region_end("step.round");
        step(0);
    } else if (!strcmp(operation, "thread")) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, in_thread, NULL) == 0, 11);
        EXPECT(pthread_join(thread, NULL) == 0, 12);
    } else if (!strcmp(operation, "fork") || !strcmp(operation, "jump")) {
        int pipe_ends[2], status;
        char found = 0;
        EXPECT(pipe(pipe_ends) == 0, 13);
        pid_t child = fork();
        EXPECT(child >= 0, 14);
        if (child == 0) {
            if (jumps) {
                jump_away();
            } else {
                step(1);
                p = stepped_malloc();
                step(0);
                free(p);
            }
            found = (char)struck_now;
            EXPECT(write(pipe_ends[1], &found, 1) == 1, 15);
            _exit(0);
        }
        close(pipe_ends[1]);
        EXPECT(read(pipe_ends[0], &found, 1) == 1, 16);
        close(pipe_ends[0]);
        EXPECT(waitpid(child, &status, 0) == child && status == 0, 17);
        struck_now = found;
        struck_count += (unsigned long)found;
    } else {
        _exit(18);
    }
}

static FRAME void all_rounds(const char *operation) {
    do {
        in_library = 0;
        struck_now = 0;
        round_of(operation, rounds);
        rounds++;
        target += stride;
    } while (struck_now);
}

int main(int count, char **words) {
    EXPECT(count == 3 || count == 4 || count == 7, 19);
    if (count > 3) {
        char *rest;
        stride = strtoul(words[3], &rest, 10);
        target = strtoul(rest, NULL, 10);
    }
    static char static_stack[ALT_BYTES];
    char frame_stack[ALT_BYTES];
    stack_t alternate = {.ss_sp = words[2][0] == 's' ? static_stack : frame_stack, .ss_size = ALT_BYTES};
    int flags = SA_SIGINFO;
    if (words[2][0] != 'n') {
        EXPECT(sigaltstack(&alternate, NULL) == 0, 20);
        flags |= SA_ONSTACK;
    }
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = flags};
    EXPECT(sigaction(SIGTRAP, &action, NULL) == 0, 21);
    jumps = !strcmp(words[1], "jump");
    EXPECT(signal(SIGUSR1, on_jump) != SIG_ERR, 26);
    dl_iterate_phdr(find, NULL);
    find_patches();
    if (count == 7) {
        pthread_t thread;
        find_ring(words + 4);
        EXPECT(pthread_create(&thread, NULL, waker, NULL) == 0, 23);
    }
    mallow_region_begin("step.all");
    all_rounds(words[1]);
    mallow_region_end("step.all");
    say_figure("rounds", rounds);
    say_figure("struck", struck_count);
    say_figure("filled", filled_count);
    return 0;
}
