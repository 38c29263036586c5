/* SPDX-License-Identifier: BSD-3-Clause */
/* Lots that are drawn from a seed. */
#include <criterion/criterion.h>

#include "common/base/fault.h"

Test(fault, one_seed_gives_one_sequence)
{
    enum { RATE = 300 };
    struct chempi_dice a;
    struct chempi_dice b;
    struct chempi_dice c;
    unsigned struck = 0;
    unsigned differs = 0;

    chempi_dice_start(&a, 5, 1);
    chempi_dice_start(&b, 5, 1);
    chempi_dice_start(&c, 5, 2);
    for (int i = 0; i < 10000; i++) {
        bool is_a = chempi_dice_strikes(&a, RATE);

        cr_assert_eq(is_a, chempi_dice_strikes(&b, RATE));
        struck += is_a;
        differs += is_a != chempi_dice_strikes(&c, RATE);
        cr_assert(!chempi_dice_strikes(&a, 0));
    }
    cr_expect(struck > 2700 && struck < 3300);
    cr_expect_gt(differs, 1000);
}
