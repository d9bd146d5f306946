/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differ.h - the same bytes whole, byte by byte and cut at random must give the same
 * messages; for fuzz_request.c and fuzz_reply.c.
 */
#ifndef TESTS_FUZZ_DIFFER_H
#define TESTS_FUZZ_DIFFER_H

#include "parse_trace.h"

#define DIFFER_HEADER 4 /* bytes of an input before its text: limits, flags, seed */

/* differ_setup - what the first bytes of an input choose. */
struct parse_setup differ_setup(const uint8_t *data);

/* differ_run - abort unless all ways of cutting give one trace. */
void differ_run(const struct parse_setup *setup, struct slice text, uint64_t seed);

#endif
