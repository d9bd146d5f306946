/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h - the text of --version.
 */
#ifndef APP_VERSION_H
#define APP_VERSION_H

#include <stddef.h>

/* version_format - program, libraries, kernel, one a line. Returns the length written, NUL not counted. */
size_t version_format(char *dst, size_t size);

#endif
