/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_reply.c - the reply reader with random segmentation: see differ.h.
 */
#include "differ.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < DIFFER_HEADER) {
        return 0;
    }
    struct parse_setup setup = differ_setup(data);
    setup.replies = true;
    struct slice text = {.at = (const char *)data + DIFFER_HEADER, .length = size - DIFFER_HEADER};
    differ_run(&setup, text, (uint64_t)data[2] << 8 | data[3]);
    return 0;
}
