/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - requests that differ: "{random:1000}" in a path or a body is a number
 * from 000 to 999, drawn anew for each request. All have the same width, so that the
 * rest of the request stays where it is.
 */
#ifndef BENCH_TEMPLATE_H
#define BENCH_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

#define TEMPLATE_PLACES_MAX 8
#define TEMPLATE_BOUND_MAX 1000000000u

struct template
{
    struct {
        size_t offset;
        unsigned width; /* digits */
        uint64_t bound; /* the number is below it */
    } places[TEMPLATE_PLACES_MAX];
    size_t count;
};

/*
 * template_expand - write text with zeros in the place of each "{random:N}".
 *
 * @offset  of dst in the request, for the places
 * @dst     room for as many bytes as text has
 *
 * Returns  bytes written; -EINVAL N is not 1 to TEMPLATE_BOUND_MAX, or there are too many
 */
ptrdiff_t template_expand(struct template *template, struct slice text, char *dst,
                          size_t offset) WARN_UNUSED;

/* template_fill - new numbers; state is a random generator's, not 0. */
void template_fill(const struct template *template, char *request, uint64_t *state);

#endif
