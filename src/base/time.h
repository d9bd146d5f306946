/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.h - units of time and how instants are written. Pure: reads no clock.
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL */
#define TIME_HTTP_SIZE 30
/* "2026-11-30T15:58:44.030Z" and its NUL */
#define TIME_LOG_SIZE 25
/* "2026-11-30T15:58:44.030+00:00" and its NUL */
#define TIME_JSON_SIZE 30
/* "30/Nov/2026:15:58:44 +0000" and its NUL */
#define TIME_ACCESS_SIZE 27

/*
 * time_format_* - write the instant wall_ns (nanoseconds since 1970, UTC) with
 * its NUL into dst, which has the size named above. No libc call: usable in a
 * signal handler.
 *
 * Source  RFC 9110 section 5.6.7 (IMF-fixdate); RFC 3339
 */
void time_format_http(char dst[TIME_HTTP_SIZE], uint64_t wall_ns);
void time_format_log(char dst[TIME_LOG_SIZE], uint64_t wall_ns);
void time_format_json(char dst[TIME_JSON_SIZE], uint64_t wall_ns);
void time_format_access(char dst[TIME_ACCESS_SIZE], uint64_t wall_ns);

#endif
