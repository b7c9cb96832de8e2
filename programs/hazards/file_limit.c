/* Hazard: a limit on the length of files, as judges, build farms and cron set it.
 * A recorder that makes a long file for its shared memory is killed by SIGXFSZ, and the program with it.
 *
 * The limit is set before the fork, so the child begins under it.
 *   child   malloc(48), freed:  1 allocation, 48 bytes
 *   parent  malloc(16), kept:   1 allocation, 16 bytes */
#include "hazard.h"
#include <sys/resource.h>
#include <sys/wait.h>

static FRAME void in_child(void) { void *p = malloc(48); KEEP(p); free(p); }
static FRAME void in_parent(void) { void *p = malloc(16); KEEP(p); }

int main(void) {
    struct rlimit limit = {200 << 20, 200 << 20};
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0, 10);
    pid_t child = fork();
    EXPECT(child >= 0, 11);
    if (child == 0) {
        in_child();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, 12);
    in_parent();
    return 0;
}
