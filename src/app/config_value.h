/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_value.h - the text of a value becomes a typed field, for app/config* only.
 */
#ifndef APP_CONFIG_VALUE_H
#define APP_CONFIG_VALUE_H

#include <stddef.h>

#include "app/config.h"
#include "app/config_keys.h"
#include "base/attr.h"
#include "base/slice.h"

/* What a value should have been fits into this many bytes. */
#define CONFIG__EXPECTED_MAX 128

/*
 * config__value_set - check a value and store it in the key's field.
 *
 * @value  spaces and tabs at its ends do not count
 *
 * Returns  0; -EINVAL no value of that key; -ENOMEM
 * Source   Spring Boot 3: ApplicationConversionService (true, on, yes, 1; a
 *          duration without unit is in milliseconds), DataSize
 */
int config__value_set(struct config *out, const struct config__key *key,
                      struct slice value) WARN_UNUSED;

/* config__value_expected - what that key takes: "a whole number from 0 to 65535". */
void config__value_expected(const struct config__key *key, char dst[CONFIG__EXPECTED_MAX]);

#endif
