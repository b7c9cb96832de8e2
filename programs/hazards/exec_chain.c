/* Hazard: A execs B execs C.
 * One pid, three images. Each image is a process entry of its own; blocks live at the exec are leaked by the image that
 * made them, and nothing that it still had in its buffers may be lost.
 *
 *   first image (no argument):  in_first 10 blocks of 100 bytes, frees 4 in order: the tenth is not among them
 *                               allocations 10, bytes 1,000, frees 4, peak 1,000 in 10, leaked 600 in 6
 *   second image ("second"):    in_second 3 blocks of 20 bytes, frees the last: temporary
 *                               allocations 3, bytes 60, frees 1, temporary 1, peak 60 in 3, leaked 40 in 2
 *   third image ("third"):      in_third 1 block of 5 bytes, freed: temporary; ends with status 6
 *                               allocations 1, bytes 5, frees 1, temporary 1, peak 5 in 1, leaked 0 */
#include "hazard.h"

static FRAME void *in_first(void) { void *p = malloc(100); KEEP(p); return p; }
static FRAME void *in_second(void) { void *p = malloc(20); KEEP(p); return p; }
static FRAME void *in_third(void) { void *p = malloc(5); KEEP(p); return p; }

static FRAME void become(char *program, char *role) {
    char *arguments[] = {program, role, NULL};
    execv(program, arguments);
    _exit(20);
}

int main(int count, char **arguments) {
    void *blocks[10];
    if (count == 1) {
        for (int i = 0; i < 10; i++) blocks[i] = in_first();
        for (int i = 0; i < 4; i++) free(blocks[i]);
        become(arguments[0], "second");
    }
    if (strcmp(arguments[1], "second") == 0) {
        for (int i = 0; i < 3; i++) blocks[i] = in_second();
        free(blocks[2]);
        become(arguments[0], "third");
    }
    free(in_third());
    return 6;
}
