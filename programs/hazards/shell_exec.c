/* Hazard: a shell script that execs the real program.
 * What was started is `sh`; what matters has the same pid and comes later. What the shell allocates depends on the
 * shell and on the environment, so only the program's own entry has exact figures.
 *
 * shell_exec.sh execs this program with the argument "real":
 *   after_shell  8 blocks of 11 bytes, all kept: allocations 8, bytes 88, frees 0, peak 88 in 8, leaked 88 in 8;
 *                status 5 */
#include "hazard.h"

static FRAME void after_shell(void) { void *p = malloc(11); KEEP(p); STAY(); }

int main(int count, char **arguments) {
    EXPECT(count == 2 && strcmp(arguments[1], "real") == 0, 20);
    for (int i = 0; i < 8; i++) after_shell();
    return 5;
}
