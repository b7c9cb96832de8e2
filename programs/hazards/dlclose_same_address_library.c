/* One library of the pair that dlclose_same_address opens. FUNCTION (lib_a_alloc or lib_b_alloc) and SIZE come from
 * the compiler's command line; everything else is the same, so that the two have the same layout. */
#include "hazard.h"

FRAME void *FUNCTION(void) {
    void *p = malloc(SIZE);
    KEEP(p);
    return p;
}
