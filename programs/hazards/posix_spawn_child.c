/* Hazard: posix_spawn.
 * glibc makes the child with CLONE_VM | CLONE_VFORK: until its exec it runs in the parent's memory, on another stack,
 * and the hooks that watch fork and vfork never see it.
 *
 *   parent: before_spawn 3 blocks of 30 bytes, two children one after the other, then frees the 3 in order: only the
 *           last is temporary. allocations 3, bytes 90, frees 3, temporary 1, peak 90 in 3, leaked 0
 *   child ("child"): in_spawned 2 blocks of 45 bytes, frees the first; allocations 2, bytes 90, frees 1, peak 90 in 2,
 *           leaked 45 in 1; status 9 */
#include "hazard.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static FRAME void *before_spawn(void) { void *p = malloc(30); KEEP(p); return p; }
static FRAME void *in_spawned(void) { void *p = malloc(45); KEEP(p); return p; }

static FRAME void spawn_and_wait(char *program) {
    char *arguments[] = {program, "child", NULL};
    pid_t pid;
    int status;
    EXPECT(posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0, 20);
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9, 21);
}

int main(int count, char **arguments) {
    if (count == 2) {
        void *first = in_spawned(), *second = in_spawned();
        KEEP(second);
        free(first);
        return 9;
    }
    void *blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = before_spawn();
    spawn_and_wait(arguments[0]);
    spawn_and_wait(arguments[0]);
    for (int i = 0; i < 3; i++) free(blocks[i]);
    return 0;
}
