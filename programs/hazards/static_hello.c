/* Hazard: a static binary.
 * There is no dynamic linker, so nothing can be preloaded: the program would run unobserved and the report would be
 * empty. It must be refused before it starts, with a sentence that names the reason and the alternative. Run bare it
 * prints one line and ends with status 0. */
#include "hazard.h"

int main(void) {
    void *p = malloc(10);
    KEEP(p);
    free(p);
    say("static\n");
    return 0;
}
