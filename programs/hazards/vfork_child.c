/* Hazard: vfork.
 * The child runs in the parent's memory and on its thread's state, under another pid: its calls are the parent's
 * calls. Who asks for the pid or the thread id at each event makes a phantom process of it, and who resets state "in
 * the child" resets the parent's.
 *
 * First child:  in_vfork makes 3 blocks of 70 bytes and frees the third (temporary), then _exit(3).
 * Parent:       frees the second block (made in the child), then after_vfork 1 block of 25 bytes, kept.
 * Second child: in_vfork once more 3 blocks of 70 bytes, frees the third (temporary), then execs this program as
 *               "image".
 *   parent: allocations 3+1+3 = 7, bytes 210+25+210 = 445, frees 1+1+1 = 3, temporary 2
 *           peak: at the end 70 (of 3, two freed) + 25 + 210 = 305 in 5 blocks; leaked 305 - 70 = 235 in 4
 *   image:  in_image 1 block of 12 bytes, kept; status 8: allocations 1, bytes 12, frees 0, peak 12 in 1, leaked 12
 *           in 1 */
#define _DEFAULT_SOURCE
#include "hazard.h"
#include <sys/wait.h>

static void *blocks[3];

static FRAME void in_vfork(void) {
    for (int i = 0; i < 3; i++) blocks[i] = malloc(70);
    free(blocks[2]);
    STAY();
}
static FRAME void after_vfork(void) { void *p = malloc(25); KEEP(p); STAY(); }
static FRAME void in_image(void) { void *p = malloc(12); KEEP(p); STAY(); }

static FRAME void wait_for(pid_t pid, int wanted) {
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == wanted, 20);
}

int main(int count, char **arguments) {
    if (count == 2) {
        in_image();
        return 8;
    }
    char *image[] = {arguments[0], "image", NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        in_vfork();
        _exit(3);
    }
    wait_for(pid, 3);
    free(blocks[1]);
    after_vfork();
    pid = vfork();
    if (pid == 0) {
        in_vfork();
        execv(arguments[0], image);
        _exit(21);
    }
    wait_for(pid, 8);
    return 0;
}
