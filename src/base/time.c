/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c - see time.h. Days are turned into a date by arithmetic on the
 * 400-year cycle of the Gregorian calendar, so no time zone data, no lock and no
 * allocation is involved.
 */
#include "base/time.h"

#include <string.h>

struct civil {
    unsigned year, month, day; /* month and day from 1 */
    unsigned hour, minute, second, millisecond;
    unsigned weekday; /* 0 is Sunday */
};

static const char time_weekdays[] = "SunMonTueWedThuFriSat";
static const char time_months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

/*
 * The year begins in March here, so that the leap day is its last day. An era is
 * 400 years, 146 097 days; 719 468 days lie between 0000-03-01 and 1970-01-01.
 * Source: H. Hinnant, chrono-compatible low-level date algorithms, civil_from_days
 */
static struct civil time_civil(uint64_t wall_ns)
{
    uint64_t second_total = wall_ns / NS_PER_S;
    unsigned second_of_day = (unsigned)(second_total % 86400);
    unsigned day_total = (unsigned)(second_total / 86400);

    unsigned day_shifted = day_total + 719468;
    unsigned era = day_shifted / 146097;
    unsigned day_of_era = day_shifted % 146097;
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned month_from_march = (5 * day_of_year + 2) / 153;
    unsigned month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
    return (struct civil){
        .year = era * 400 + year_of_era + (month <= 2 ? 1 : 0),
        .month = month,
        .day = day_of_year - (153 * month_from_march + 2) / 5 + 1,
        .hour = second_of_day / 3600,
        .minute = second_of_day / 60 % 60,
        .second = second_of_day % 60,
        .millisecond = (unsigned)(wall_ns / NS_PER_MS % 1000),
        .weekday = (day_total + 4) % 7, /* 1970-01-01 was a Thursday */
    };
}

static char *time_put_2(char *dst, unsigned value)
{
    dst[0] = (char)('0' + value / 10 % 10);
    dst[1] = (char)('0' + value % 10);
    return dst + 2;
}

static char *time_put_4(char *dst, unsigned value)
{
    return time_put_2(time_put_2(dst, value / 100), value % 100);
}

static char *time_put_text(char *dst, const char *text, size_t length)
{
    memcpy(dst, text, length);
    return dst + length;
}

/* "15:58:44" */
static char *time_put_clock(char *dst, const struct civil *at)
{
    dst = time_put_2(dst, at->hour);
    *dst++ = ':';
    dst = time_put_2(dst, at->minute);
    *dst++ = ':';
    return time_put_2(dst, at->second);
}

/* "2026-11-30T15:58:44.030" */
static char *time_put_iso(char *dst, const struct civil *at)
{
    dst = time_put_4(dst, at->year);
    *dst++ = '-';
    dst = time_put_2(dst, at->month);
    *dst++ = '-';
    dst = time_put_2(dst, at->day);
    *dst++ = 'T';
    dst = time_put_clock(dst, at);
    *dst++ = '.';
    *dst++ = (char)('0' + at->millisecond / 100);
    return time_put_2(dst, at->millisecond % 100);
}

void time_format_http(char dst[TIME_HTTP_SIZE], uint64_t wall_ns)
{
    struct civil at = time_civil(wall_ns);
    char *next = time_put_text(dst, time_weekdays + 3 * at.weekday, 3);
    next = time_put_text(next, ", ", 2);
    next = time_put_2(next, at.day);
    *next++ = ' ';
    next = time_put_text(next, time_months + 3 * (at.month - 1), 3);
    *next++ = ' ';
    next = time_put_4(next, at.year);
    *next++ = ' ';
    next = time_put_clock(next, &at);
    time_put_text(next, " GMT", sizeof(" GMT"));
}

void time_format_log(char dst[TIME_LOG_SIZE], uint64_t wall_ns)
{
    struct civil at = time_civil(wall_ns);
    time_put_text(time_put_iso(dst, &at), "Z", sizeof("Z"));
}

void time_format_json(char dst[TIME_JSON_SIZE], uint64_t wall_ns)
{
    struct civil at = time_civil(wall_ns);
    time_put_text(time_put_iso(dst, &at), "+00:00", sizeof("+00:00"));
}

void time_format_access(char dst[TIME_ACCESS_SIZE], uint64_t wall_ns)
{
    struct civil at = time_civil(wall_ns);
    char *next = time_put_2(dst, at.day);
    *next++ = '/';
    next = time_put_text(next, time_months + 3 * (at.month - 1), 3);
    *next++ = '/';
    next = time_put_4(next, at.year);
    *next++ = ':';
    next = time_put_clock(next, &at);
    time_put_text(next, " +0000", sizeof(" +0000"));
}
