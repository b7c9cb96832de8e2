/* A C extension that runs a thread for each request, on a stack that it takes from malloc and never gives back. What Ruby did until
 * 2.4.2 when it recycled the stacks of threads (Bug #13772). */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ruby.h>

#define STACK_BYTES (256 * 1024)

static void *work(void *argument)
{
    return argument;
}

static VALUE handle(VALUE self)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *stack = aligned_alloc(4096, STACK_BYTES);
    if (stack == NULL)
        rb_raise(rb_eNoMemError, "no stack");
    memset(stack, 1, STACK_BYTES);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    if (pthread_create(&thread, &attributes, work, NULL) == 0)
        pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    /* Here free(stack) is missing. */
    return self;
}

static VALUE allocator(VALUE self, VALUE path)
{
    FILE *file = fopen(StringValueCStr(path), "w");
    if (file != NULL) {
        malloc_info(0, file);
        fclose(file);
    }
    return self;
}

void Init_stack_leak(void)
{
    VALUE module = rb_define_module("StackLeak");
    rb_define_singleton_method(module, "handle", handle, 0);
    rb_define_singleton_method(module, "allocator", allocator, 1);
}
