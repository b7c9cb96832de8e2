/* Looks like a JVM of the version RELEASE, whose tables have nothing but that version, and calls malloc ten times from code that it makes. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *release = RELEASE;

struct field {
    const char *class, *name;
    uint64_t is_static, offset;
    const void *address;
};

struct type {
    const char *name;
    uint64_t bytes;
};

static struct field fields[] = {
    {"Abstract_VM_Version", "_s_vm_release", 1, 0, &release},
    {0},
};
static struct type types[] = {
    {"HeapBlock", 16},
    {0},
};

struct field *gHotSpotVMStructs = fields;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct field);
uint64_t gHotSpotVMStructEntryTypeNameOffset = 0;
uint64_t gHotSpotVMStructEntryFieldNameOffset = 8;
uint64_t gHotSpotVMStructEntryIsStaticOffset = 16;
uint64_t gHotSpotVMStructEntryOffsetOffset = 24;
uint64_t gHotSpotVMStructEntryAddressOffset = 32;
struct type *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = 0;
uint64_t gHotSpotVMTypeEntrySizeOffset = 8;

int main(void) {
    /* push rbp; mov rbp, rsp; call rsi; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(made, code, sizeof code);
    free(malloc(1)); /* from here the program is known */
    for (int i = 0; i < 10; i++) {
        void *(*run)(size_t, void *(*)(size_t)) = (void *(*)(size_t, void *(*)(size_t)))made;
        free(run(1000, malloc));
    }
    return 0;
}
