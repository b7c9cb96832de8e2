/* Hazard: a setuid binary.
 * The dynamic linker ignores preloads that a user sets for a program with more rights than the user. It would run
 * unobserved; it must be refused before it starts. The harness makes the setuid copy (mode 4755, owned by another user
 * than the one who runs it). Run bare it prints one line and ends with status 0. */
#include "hazard.h"

int main(void) {
    void *p = malloc(10);
    KEEP(p);
    free(p);
    say("setuid\n");
    return 0;
}
