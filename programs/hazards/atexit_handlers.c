/* Hazard: malloc and free while the process is ending.
 * A recorder that stops in its own atexit handler or destructor misses what the program's handlers still do, and
 * reports the blocks that they free as leaked.
 *
 *   before_exit      malloc(1000), freed by the last handler: must not be a leak
 *   in_atexit        malloc(10) in each of three atexit handlers; each frees the block that the handler before it
 *                    made: 30 bytes; the third handler's block is freed by the destructor
 *   in_on_exit       malloc(60) in an on_exit handler, freed there: temporary
 *   in_destructor    malloc(500) in an ELF destructor, left behind
 * Handlers run last registered first: on_exit (60, freed), atexit three times (10; 10, free; 10, free and free 1000),
 * destructor (500, then free of the third 10: 500 came after it, so it is not temporary).
 * allocations 1+3+1+1 = 6; bytes 1000+30+60+500 = 1590; frees 1+2+1+1 = 5; temporary 1.
 * peak: 1000 + 60 = 1,060 in 2 blocks; then 1000+10+10 = 1,020 is less. leaked 500 in 1 block. */
#define _DEFAULT_SOURCE
#include "hazard.h"

static void *early, *handed_on;
static int handlers_run;

static FRAME void *before_exit(void) { void *p = malloc(1000); KEEP(p); return p; }
static FRAME void *in_atexit(void) { void *p = malloc(10); KEEP(p); return p; }
static FRAME void in_on_exit(void) {
    void *p = malloc(60);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void in_destructor(void) { void *p = malloc(500); KEEP(p); STAY(); }

static void at_exit(void) {
    void *mine = in_atexit();
    free(handed_on);
    handed_on = mine;
    if (++handlers_run == 3) free(early);
}
static void on_leaving(int status, void *unused) {
    (void)status, (void)unused;
    in_on_exit();
}
__attribute__((destructor)) static void destroy(void) {
    in_destructor();
    free(handed_on);
}

int main(void) {
    early = before_exit();
    for (int i = 0; i < 3; i++) EXPECT(atexit(at_exit) == 0, 10);
    EXPECT(on_exit(on_leaving, NULL) == 0, 11);
    return 0;
}
