/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.c - see template.h. Called by target.c once and by exchange_http.c for each request.
 */
#include "ringload/template.h"

#include <errno.h>
#include <string.h>

static const struct slice mark = SLICE("{random:");

/* place_add - what stands between the mark and '}'. Returns digits; -EINVAL. */
static int place_add(struct template *template, struct slice number, size_t offset)
{
    uint64_t bound;
    unsigned width = 1;
    if (template->count == TEMPLATE_PLACES_MAX || slice_to_u64(number, &bound) < 0 || bound == 0 ||
        bound > TEMPLATE_BOUND_MAX) {
        return -EINVAL;
    }
    for (uint64_t most = bound - 1; most >= 10; most /= 10) {
        width++;
    }
    template->places[template->count].offset = offset;
    template->places[template->count].width = width;
    template->places[template->count].bound = bound;
    template->count++;
    return (int)width;
}

ptrdiff_t template_expand(struct template *template, struct slice text, char *dst, size_t offset)
{
    size_t length = 0;
    while (text.length > 0) {
        if (!slice_starts_with(text, mark)) {
            dst[length++] = *text.at;
            text.at++;
            text.length--;
            continue;
        }
        struct slice number = {.at = text.at + mark.length};
        const char *end = memchr(number.at, '}', text.length - mark.length);
        if (end == NULL) {
            return -EINVAL;
        }
        number.length = (size_t)(end - number.at);
        int width = place_add(template, number, offset + length);
        if (width < 0) {
            return width;
        }
        memset(dst + length, '0', (size_t)width);
        length += (size_t)width;
        text.length -= (size_t)(end + 1 - text.at);
        text.at = end + 1;
    }
    return (ptrdiff_t)length;
}

/* xorshift64*. Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016 */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

void template_fill(const struct template *template, char *request, uint64_t *state)
{
    for (size_t i = 0; i < template->count; i++) {
        uint64_t number = (next_random(state) >> 32) * template->places[i].bound >> 32;
        char *at = request + template->places[i].offset + template->places[i].width;
        for (unsigned digit = 0; digit < template->places[i].width; digit++) {
            *--at = (char)('0' + number % 10);
            number /= 10;
        }
    }
}
