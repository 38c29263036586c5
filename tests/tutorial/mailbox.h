/* SPDX-License-Identifier: BSD-3-Clause */
/* The mailbox device of doc/writing-a-device.md: between processes of one
 * node, a page for each ordered pair. */
#ifndef CHEMPI_TESTS_TUTORIAL_MAILBOX_H
#define CHEMPI_TESTS_TUTORIAL_MAILBOX_H

#include "libchempi/ddi.h"

extern const struct chempi_dev_ops chempi_mailbox_ops;

#endif
