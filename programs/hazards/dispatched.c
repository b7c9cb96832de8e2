/* Hazard: a thread whose system calls become signals (PR_SET_SYSCALL_USER_DISPATCH), but for those of libc, as programs do that run another system's code.
 * Nobody handles the signal: it ends the process at the first call that the recorder makes there. The kernel gives it to the thread alone: not to the threads
 * that it starts, its forked children, or the program that takes its place.
 *
 * before, 3 blocks of 30 bytes; behind it 4 of 40, which are not recorded: that is said.
 *   before  3 allocations, 90 bytes, leaked 3 blocks
 * other_thread, started behind it: 5 blocks of 50 bytes, each freed.
 *   other_thread  5 allocations, 250 bytes, temporary 5
 * forked, in a child: 6 blocks of 60 bytes.
 *   forked  6 allocations, 360 bytes, leaked 6 blocks
 * image, in the program that takes the place of the process: 2 blocks of 20 bytes.
 *   image  2 allocations, 40 bytes, leaked 2 blocks */
#define _GNU_SOURCE
#include "hazard.h"
#include <link.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void make(int count, size_t bytes) {
    for (volatile int i = 0; i < count; i = i + 1) { void *p = malloc(bytes); KEEP(p); }
}

static FRAME void before(void) { make(3, 30); STAY(); }
static FRAME void forked(void) { make(6, 60); STAY(); }
static FRAME void image(void) { make(2, 20); STAY(); }
static FRAME void other_thread(void) {
    for (volatile int i = 0; i < 5; i = i + 1) { void *p = malloc(50); KEEP(p); free(p); }
    STAY();
}

static void *run(void *unused) {
    other_thread();
    return unused;
}

static unsigned long libc_start, libc_bytes;

static int find_libc(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size, (void)data;
    if (!strstr(object->dlpi_name, "/libc.so")) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
            libc_start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            libc_bytes = object->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

int main(int count, char **words) {
    if (count > 1) {
        image();
        say("dispatched\n");
        return 0;
    }
    static char blocks = 1;
    const int set = 59, outside_of = 1;
    EXPECT(dl_iterate_phdr(find_libc, NULL) == 1 && libc_bytes != 0, 3);
    before();
    EXPECT(prctl(set, outside_of, libc_start, libc_bytes, &blocks) == 0, 4);
    make(4, 40);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0, 5);
    pid_t child = fork();
    if (child == 0) {
        forked();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, 6);
    char *again[] = {words[0], "image", NULL};
    execv(words[0], again);
    return 7;
}
