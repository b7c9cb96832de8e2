/* confined refused COMMAND…: runs a command for which the kernel refuses perf_event_open, as containers' filters do.
   confined unread COMMAND…: runs one for which it refuses process_vm_readv.
   confined plain COMMAND…: runs it without any privilege, even where root starts it. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 3)
        return 125;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int is_unread = strcmp(words[1], "unread") == 0;
    if (is_unread || strcmp(words[1], "refused") == 0) {
        int call = is_unread ? SYS_process_vm_readv : SYS_perf_event_open;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
            return 125;
    } else {
        /* What may be dropped is dropped; who is not root has nothing to drop. */
        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
            prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    }
    execvp(words[2], words + 2);
    perror(words[2]);
    return 127;
}
