/* Hazard: a filter of system calls that kills who waits for another thread, and more records than a ring has room for.
 * The filter lists what glibc's allocator and an end need, and not futex.
 *
 * fill, twice: 50,000 blocks of 24 bytes, held, and freed again. A ring has room for 32,768 allocations.
 *   fill  100,000 allocations, 2,400,000 bytes, temporary 2, the last block of each time; the peak is 50,000 blocks */
#define _GNU_SOURCE
#include "hazard.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCKS = 50000 };
static void *held[BLOCKS];

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mprotect), ALLOW(SYS_getrandom), ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, 3);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, 4);
}

static FRAME void fill(void) {
    for (volatile int i = 0; i < BLOCKS; i = i + 1) held[i] = malloc(24);
    STAY();
}

int main(void) {
    usleep(20000); /* mallow sleeps when it begins */
    filter();
    for (volatile int round = 0; round < 2; round = round + 1) {
        fill();
        for (volatile int i = 0; i < BLOCKS; i = i + 1) free(held[i]);
    }
    _exit(0);
}
