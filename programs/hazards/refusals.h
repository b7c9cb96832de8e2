// A filter of system calls that lets through what it does not refuse, and the command that runs behind it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL_BITS 0xffffffffu
#define NUMBER offsetof(struct seccomp_data, nr)
#define STEPS_MAX 512

static struct sock_filter steps[STEPS_MAX];
static unsigned short step_count;

static void step(int code, unsigned value, int then, int otherwise) {
    if (step_count == STEPS_MAX) abort();
    steps[step_count++] = (struct sock_filter)BPF_JUMP(code, value, then, otherwise);
}

static void word(unsigned offset) { step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
static void test(int how, unsigned value, int then, int otherwise) { step(BPF_JMP | how | BPF_K, value, then, otherwise); }
static void answer(int error) { step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0); }

// Refuses a call whose argument has these bits of a mask in its lower word.
static inline void refuse(unsigned number, int argument, unsigned mask, unsigned bits, int error) {
    word(NUMBER);
    test(BPF_JEQ, number, 0, 4);
    word(offsetof(struct seccomp_data, args) + argument * sizeof(unsigned long long));
    step(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    test(BPF_JEQ, bits, 0, 1);
    answer(error);
}

// Returns only when that is not possible. Many a call is refused from here on: the command is started by its path.
static int run(char **words) {
    step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog filter = {step_count, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)) {
        perror("seccomp");
        return 125;
    }
    execv(words[0], words);
    return 126;
}
