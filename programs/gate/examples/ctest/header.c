#include "header.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *header_canonical(const char *name) {
    char *copy = malloc(strlen(name) + 1), *at = copy;
    if (!copy) return NULL;
    while ((*at++ = (char)tolower((unsigned char)*name++))) {}
    return copy;
}
