/* Hazard: processes and threads that lock themselves in.
 * A seccomp filter kills who makes a call that it does not list, and strict mode allows four calls and forbids the time stamp
 * instruction: what a profiler does at a child's first allocation kills the child.
 *
 * filtered, in a forked child, under a filter of its own that lists what glibc's allocator and an end need: 10 times 100 bytes
 * made and freed, its first allocations.
 *   filtered  10 allocations, 1,000 bytes, temporary 10
 * strict, in another child: 5 blocks of 50 bytes before it goes into strict mode, and 7 of 70 behind it, which are not
 * recorded: that is said.
 *   strict  5 allocations, 250 bytes, temporary 0, leaked 5 blocks
 * no_stamps, in a third child: the same with PR_SET_TSC: 3 blocks of 30 bytes before it, 4 of 40 behind it.
 *   no_stamps  3 allocations, 90 bytes, leaked 3 blocks
 * behind, forked by the filtered child, makes 2 blocks that are not recorded: that is said as well.
 * The parent asks what the kernel knows of filters, as libseccomp does, which closes nothing: 6 blocks of 10 bytes behind it.
 *   asking  6 allocations, 60 bytes, leaked 6 blocks */
#include "hazard.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect),
        ALLOW(SYS_futex), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_exit), ALLOW(SYS_exit_group),
        ALLOW(SYS_clone), ALLOW(SYS_wait4), ALLOW(SYS_set_robust_list), ALLOW(SYS_getrandom),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, 3);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, 4);
}

static FRAME void filtered(void) {
    for (volatile int i = 0; i < 10; i = i + 1) { void *p = malloc(100); KEEP(p); free(p); }
    STAY();
}

static FRAME void make(int count, size_t bytes) {
    for (volatile int i = 0; i < count; i = i + 1) { void *p = malloc(bytes); KEEP(p); }
    STAY();
}

static FRAME void asking(void) {
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1, 8);
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1, 9);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1, 10);
    make(6, 10);
    STAY();
}
static FRAME void behind(void) { make(2, 20); STAY(); }
static FRAME void strict(void) { make(5, 50); STAY(); }
static FRAME void no_stamps(void) { make(3, 30); STAY(); }

static void wait_for(pid_t child, int status) {
    int found;
    EXPECT(waitpid(child, &found, 0) == child && found == status, 5);
}

int main(void) {
    asking();
    if (vfork() == 0) { filter(); _exit(0); } /* has our memory, and locks in itself alone */
    EXPECT(wait(NULL) > 0, 11);
    pid_t child = fork();
    if (child == 0) {
        filter();
        filtered();
        pid_t second = fork();
        if (second == 0) { behind(); _exit(0); }
        wait_for(second, 0);
        _exit(0);
    }
    wait_for(child, 0);
    child = fork();
    if (child == 0) {
        strict();
        EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, 6);
        make(7, 70);
        syscall(SYS_exit, 0);
    }
    wait_for(child, 0);
    child = fork();
    if (child == 0) {
        no_stamps();
        EXPECT(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0, 7);
        make(4, 40);
        _exit(0);
    }
    wait_for(child, 0);
    say("all doors closed\n");
    return 0;
}
