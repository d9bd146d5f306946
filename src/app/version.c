/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - what this binary is made of. Called by main.
 */
#include "app/version.h"

#include <stdio.h>

#include "app/json.h"
#include "base/must.h"
#include "fiber/switch.h"
#include "http/parser.h"
#include "ring/ring.h"
#include "ring/sys.h"

size_t version_format(char *dst, size_t size)
{
    char kernel[128];
    sys_kernel_release(kernel, sizeof(kernel));
    int length = snprintf(
        dst, size, "ringspun %s\nliburing %s\nllhttp %s\ncJSON %s\nkernel %s\nswitch %s\n",
        RINGSPUN_VERSION, ring_version(), parser_version(), json_version(), kernel, switch_name());
    must(length > 0 && (size_t)length < size);
    return (size_t)length;
}
