/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_value.c - see config_value.h. Pure but for the strings it allocates.
 */
#include "app/config_value.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/time.h"
#include "http/url.h"

#define CONFIG_STACK_ROUND 4096

struct config_unit {
    const char *name;
    uint64_t factor;
};

/* From small to large. */
static const struct config_unit config_durations[] = {
    {"ns", 1},
    {"us", NS_PER_US},
    {"ms", NS_PER_MS},
    {"s", NS_PER_S},
    {"m", 60 * NS_PER_S},
    {"h", 3600 * NS_PER_S},
    {"d", 86400 * NS_PER_S},
};
static const struct config_unit config_sizes[] = {
    {"B", 1},
    {"KB", UINT64_C(1) << 10},
    {"MB", UINT64_C(1) << 20},
    {"GB", UINT64_C(1) << 30},
    {"TB", UINT64_C(1) << 40},
};

/* A key's units, and the factor of a number without one. */
struct config_scale {
    const struct config_unit *units;
    size_t unit_count;
    uint64_t plain_factor;
};

static const struct config_scale config_duration_scale = {
    config_durations, sizeof(config_durations) / sizeof(config_durations[0]), NS_PER_MS};
static const struct config_scale config_size_scale = {
    config_sizes, sizeof(config_sizes) / sizeof(config_sizes[0]), 1};

static const struct config_scale *config_scale_of(enum config__type type)
{
    return type == CONFIG__SIZE ? &config_size_scale : &config_duration_scale;
}

static int config_parse_boolean(struct slice value, bool *out)
{
    static const char *const names[2][4] = {{"false", "off", "no", "0"},
                                            {"true", "on", "yes", "1"}};
    for (size_t i = 0; i < 8; i++) {
        if (slice_equal_nocase(value, slice_of(names[i / 4][i % 4]))) {
            *out = i >= 4;
            return 0;
        }
    }
    return -EINVAL;
}

static int config_parse_integer(struct slice value, int64_t *out)
{
    bool negative = slice_starts_with(value, SLICE("-"));
    uint64_t size;
    struct slice digits = {.at = value.at + negative, .length = value.length - negative};
    if (slice_to_u64(digits, &size) != 0 || size > INT64_MAX) {
        return -EINVAL;
    }
    *out = negative ? -(int64_t)size : (int64_t)size;
    return 0;
}

/* Digits and a unit in any case, as a number of the smallest unit. */
static int config_parse_quantity(struct slice value, const struct config_scale *scale, int64_t *out)
{
    size_t digit_count = 0;
    while (digit_count < value.length && value.at[digit_count] >= '0' &&
           value.at[digit_count] <= '9') {
        digit_count++;
    }
    uint64_t number;
    if (slice_to_u64((struct slice){.at = value.at, .length = digit_count}, &number) != 0) {
        return -EINVAL;
    }
    struct slice suffix = {.at = value.at + digit_count, .length = value.length - digit_count};
    uint64_t factor = suffix.length == 0 ? scale->plain_factor : 0;
    for (size_t i = 0; i < scale->unit_count; i++) {
        if (slice_equal_nocase(suffix, slice_of(scale->units[i].name))) {
            factor = scale->units[i].factor;
        }
    }
    if (factor == 0 || __builtin_mul_overflow(number, factor, &number) || number > INT64_MAX) {
        return -EINVAL;
    }
    *out = (int64_t)number;
    return 0;
}

static int config_parse_choice(struct slice value, const char *choices, unsigned *out)
{
    unsigned index = 0;
    while (true) {
        size_t length = strcspn(choices, "|");
        if (slice_equal_nocase(value, (struct slice){.at = choices, .length = length})) {
            *out = index;
            return 0;
        }
        if (choices[length] == '\0') {
            return -EINVAL;
        }
        choices += length + 1;
        index++;
    }
}

/* config_profile_of - the bits that a name stands for, 0 when there is no such profile. */
static uint32_t config_profile_of(struct slice name)
{
    static const struct {
        struct slice name;
        uint32_t profiles;
    } known[] = {
        {SLICE("spring"), CONFIG_SPRING},
        {SLICE("loomylin"), CONFIG_LOOMYLIN},
        {SLICE("echo"), CONFIG_ECHO},
        {SLICE("all"), CONFIG_ALL},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_equal(name, known[i].name)) {
            return known[i].profiles;
        }
    }
    return 0;
}

/* A list of names with commas between them, none of them empty. */
static int config_parse_profiles(struct slice value, uint32_t *out)
{
    uint32_t profiles = 0;
    while (true) {
        const char *comma = value.length > 0 ? memchr(value.at, ',', value.length) : NULL;
        size_t length = comma != NULL ? (size_t)(comma - value.at) : value.length;
        struct slice name = slice_trim((struct slice){.at = value.at, .length = length});
        uint32_t profile = config_profile_of(name);
        if (profile == 0) {
            return -EINVAL;
        }
        profiles |= profile;
        if (comma == NULL) {
            *out = profiles;
            return 0;
        }
        value.at += length + 1;
        value.length -= length + 1;
    }
}

static int config_copy(struct slice value, char **out)
{
    char *copy = malloc(value.length + 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, value.at, value.length);
    copy[value.length] = '\0';
    free(*out);
    *out = copy;
    return 0;
}

/* A numeric address, in brackets or not; localhost, since everyone writes it, is 127.0.0.1. */
static int config_parse_address(struct slice value, char **out)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    if (slice_equal_nocase(value, SLICE("localhost"))) {
        value = SLICE("127.0.0.1");
    }
    if (value.length > 2 && value.at[0] == '[' && value.at[value.length - 1] == ']') {
        value = (struct slice){.at = value.at + 1, .length = value.length - 2};
    }
    if (value.length >= sizeof(text) || memchr(value.at, '\0', value.length) != NULL) {
        return -EINVAL;
    }
    memcpy(text, value.at, value.length);
    text[value.length] = '\0';
    if (inet_pton(AF_INET, text, address) != 1 && inet_pton(AF_INET6, text, address) != 1) {
        return -EINVAL;
    }
    return config_copy(value, out);
}

/* INTEGER, DURATION and SIZE: parse, check the range, store in the field's type. */
static int config_set_number(struct config *out, const struct config__key *key, struct slice value)
{
    int64_t number;
    int result = key->type == CONFIG__INTEGER
                     ? config_parse_integer(value, &number)
                     : config_parse_quantity(value, config_scale_of(key->type), &number);
    if (result != 0) {
        return result;
    }
    if (number < key->min || number > key->max) {
        return -EINVAL;
    }
    char *field = (char *)out + key->offset;
    if (key->type == CONFIG__INTEGER) {
        *(int *)(void *)field = (int)number;
        return 0;
    }
    if (key->offset == offsetof(struct config, stack_bytes)) {
        number = (number + CONFIG_STACK_ROUND - 1) / CONFIG_STACK_ROUND * CONFIG_STACK_ROUND;
    }
    *(uint64_t *)(void *)field = (uint64_t)number;
    return 0;
}

static_assert(sizeof(enum log_level) == sizeof(unsigned) &&
                  sizeof(enum config_shutdown) == sizeof(unsigned) &&
                  sizeof(enum config_format) == sizeof(unsigned) &&
                  sizeof(enum config_threads) == sizeof(unsigned),
              "a CHOICE is copied into its enum");

int config__value_set(struct config *out, const struct config__key *key, struct slice value)
{
    value = slice_trim(value);
    if (value.length == 0 && key->empty_is_default) {
        return 0;
    }
    void *field = (char *)out + key->offset;
    struct url url;
    unsigned choice;
    int result = -EINVAL;
    switch (key->type) {
    case CONFIG__BOOLEAN:
        return config_parse_boolean(value, field);
    case CONFIG__INTEGER:
    case CONFIG__DURATION:
    case CONFIG__SIZE:
        return config_set_number(out, key, value);
    case CONFIG__CHOICE:
        result = config_parse_choice(value, key->choices, &choice);
        if (result == 0) {
            memcpy(field, &choice, sizeof(choice));
        }
        return result;
    case CONFIG__PROFILES:
        return config_parse_profiles(value, field);
    case CONFIG__ADDRESS:
        return config_parse_address(value, field);
    case CONFIG__URL:
        result = url_parse(value, &url);
        return result == 0 ? config_copy(value, field) : result;
    case CONFIG__SOURCE:
        return 0;
    }
    must(false); /* every type has its case */
    return result;
}

/* A bound as people write it: in the largest unit that leaves no fraction. */
static void config_format_bound(char dst[32], const struct config_scale *scale, int64_t bound)
{
    const struct config_unit *unit = &scale->units[0];
    for (size_t i = 0; i < scale->unit_count; i++) {
        if (bound > 0 && (uint64_t)bound % scale->units[i].factor == 0) {
            unit = &scale->units[i];
        }
    }
    snprintf(dst, 32, "%lld%s", (long long)((uint64_t)bound / unit->factor),
             bound > 0 ? unit->name : "");
}

void config__value_expected(const struct config__key *key, char dst[CONFIG__EXPECTED_MAX])
{
    char low[32], high[32];
    switch (key->type) {
    case CONFIG__BOOLEAN:
        snprintf(dst, CONFIG__EXPECTED_MAX, "true or false");
        return;
    case CONFIG__INTEGER:
        snprintf(dst, CONFIG__EXPECTED_MAX, "a whole number from %lld to %lld", (long long)key->min,
                 (long long)key->max);
        return;
    case CONFIG__DURATION:
    case CONFIG__SIZE:
        config_format_bound(low, config_scale_of(key->type), key->min);
        config_format_bound(high, config_scale_of(key->type), key->max);
        snprintf(dst, CONFIG__EXPECTED_MAX, "a %s such as %s, from %s to %s",
                 key->type == CONFIG__SIZE ? "size" : "duration",
                 key->type == CONFIG__SIZE ? "8KB or 1MB" : "250ms, 10s or 2m", low, high);
        return;
    case CONFIG__CHOICE:
        snprintf(dst, CONFIG__EXPECTED_MAX, "one of %s", key->choices);
        return;
    case CONFIG__PROFILES:
        snprintf(dst, CONFIG__EXPECTED_MAX, "a list of spring, loomylin and echo, or all");
        return;
    case CONFIG__ADDRESS:
        snprintf(dst, CONFIG__EXPECTED_MAX, "a numeric IPv4 or IPv6 address");
        return;
    case CONFIG__URL:
        snprintf(dst, CONFIG__EXPECTED_MAX, "http://host[:port][/path]");
        return;
    case CONFIG__SOURCE:
        snprintf(dst, CONFIG__EXPECTED_MAX, "text");
        return;
    }
    must(false); /* every type has its case */
}
