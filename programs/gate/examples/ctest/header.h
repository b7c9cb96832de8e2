/* What the project is about: headers. */
#ifndef HEADER_H
#define HEADER_H

/* A copy of a header's name in small letters, to be freed by the caller; null when there is no memory. */
char *header_canonical(const char *name);

#endif
