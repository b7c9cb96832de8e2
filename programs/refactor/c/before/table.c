// A table of rows, before its code was tidied up. See ../../README.md.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    char *name;
    long value;
};

struct table {
    struct row **rows;
    size_t count;
};

static struct row *load_row(int number) {
    struct row *row = malloc(sizeof *row);
    row->name = malloc(24);
    snprintf(row->name, 24, "row %d", number);
    row->value = number;
    return row;
}

__attribute__((noinline)) static struct table *load_table(int count) {
    struct table *table = malloc(sizeof *table);
    table->rows = calloc((size_t)count, sizeof *table->rows);
    table->count = (size_t)count;
    for (int number = 0; number < count; number++)
        table->rows[number] = load_row(number);
    return table;
}

static long sum(const struct table *table) {
    long *values = malloc(table->count * sizeof *values);
    long sum = 0;
    for (size_t i = 0; i < table->count; i++)
        values[i] = table->rows[i]->value;
    for (size_t i = 0; i < table->count; i++)
        sum += values[i];
    free(values);
    return sum;
}

static void print(const struct table *table) {
    for (size_t i = 0; i < table->count; i += 10) {
        char *line = malloc(128);
        int length = snprintf(line, 128, "%s %ld", table->rows[i]->name, table->rows[i]->value);
        if (length < 0 || strlen(line) != (size_t)length)
            abort();
        free(line);
    }
}

int main(void) {
    struct table *table = load_table(100);
    print(table);
    return sum(table) == 4950 ? 0 : 1;
}
