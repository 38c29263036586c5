/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof of a shared secret: who gets through, and who does not. */
#define _GNU_SOURCE /* mkdtemp */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/auth/auth.h"

static const uint8_t key_a[CHEMPI_AUTH_KEY_BYTES] = {1, 2, 3};
static const uint8_t key_b[CHEMPI_AUTH_KEY_BYTES] = {1, 2, 4};

struct message {
    uint8_t data[CHEMPI_AUTH_MSG_MAX];
    size_t len;
};

static int step(struct chempi_auth *a, const struct message *in,
                struct message *out, struct chempi_err *err)
{
    return chempi_auth_step(a, in ? in->data : NULL, in ? in->len : 0,
                            out->data, &out->len, err);
}

static void begin(struct chempi_auth *a, enum chempi_auth_role role,
                  const uint8_t *key, const char *context)
{
    cr_assert_eq(chempi_auth_init(a, role, key, context, strlen(context)), 0);
}

Test(auth, same_secret_gets_through_both_ways)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish, none;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(chempi_auth_need(&client), 0);
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    cr_assert_eq(hello.len, chempi_auth_need(&server));
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    cr_assert_eq(reply.len, chempi_auth_need(&client));
    cr_assert_eq(step(&client, &reply, &finish, NULL), 1);
    cr_assert_eq(finish.len, chempi_auth_need(&server));
    cr_assert_eq(step(&server, &finish, &none, NULL), 1);
    cr_assert_eq(none.len, 0);
}

Test(auth, client_refuses_a_server_without_the_secret)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish;
    struct chempi_err err;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_b, "job");
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    cr_assert_eq(step(&client, &reply, &finish, &err), -EACCES);
    cr_assert_eq(finish.len, 0, "a proof went to a server that gave none");
    cr_assert(strstr(err.text, "another secret"));
    cr_assert_eq(chempi_auth_need(&client), 0);
}

Test(auth, server_refuses_a_client_without_the_secret)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish, none;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    memset(&finish, 7, sizeof(finish));
    finish.len = chempi_auth_need(&server);
    cr_assert_eq(step(&server, &finish, &none, NULL), -EACCES);
}

Test(auth, a_proof_for_one_purpose_is_none_for_another)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job 1");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job 2");
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    cr_assert_eq(step(&client, &reply, &finish, NULL), -EACCES);
}

Test(auth, the_servers_own_proof_sent_back_is_refused)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish, none;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    finish.len = CHEMPI_AUTH_PROOF_BYTES;
    memcpy(finish.data, reply.data + CHEMPI_AUTH_NONCE_BYTES, finish.len);
    cr_assert_eq(step(&server, &finish, &none, NULL), -EACCES);
}

Test(auth, a_finish_cannot_be_used_twice)
{
    struct chempi_auth client, server;
    struct message hello, reply, finish, none;

    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    (void)step(&client, NULL, &hello, NULL);
    (void)step(&server, &hello, &reply, NULL);
    (void)step(&client, &reply, &finish, NULL);
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(step(&server, &hello, &reply, NULL), 0);
    cr_assert_eq(step(&server, &finish, &none, NULL), -EACCES);
}

Test(auth, another_protocol_is_refused_by_its_first_bytes)
{
    struct chempi_auth server;
    struct message hello, reply;

    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    hello.len = chempi_auth_need(&server);
    memset(hello.data, 'x', hello.len);
    memcpy(hello.data, "GET / HTTP/1.1\r\n", 16);
    cr_assert_eq(step(&server, &hello, &reply, NULL), -EPROTO);
    cr_assert_eq(reply.len, 0);
}

Test(auth, a_wrong_length_and_a_spent_exchange_are_refused)
{
    struct chempi_auth client, server;
    struct message hello = {.len = 3}, reply;

    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(step(&server, &hello, &reply, NULL), -EPROTO);
    cr_assert_eq(step(&server, &hello, &reply, NULL), -EPROTO);
    begin(&client, CHEMPI_AUTH_CLIENT, key_a, "job");
    begin(&server, CHEMPI_AUTH_SERVER, key_a, "job");
    cr_assert_eq(step(&client, NULL, &hello, NULL), 0);
    hello.len--; /* the right bytes, as far as they go */
    cr_assert_eq(step(&server, &hello, &reply, NULL), -EPROTO);
    cr_assert_eq(reply.len, 0);
}

Test(auth, a_context_over_the_limit_is_refused)
{
    static char context[CHEMPI_AUTH_CONTEXT_MAX + 1];
    struct chempi_auth a;

    cr_assert_eq(chempi_auth_init(&a, CHEMPI_AUTH_CLIENT, key_a, context,
                                  sizeof(context)),
                 -EINVAL);
}

/* ---- key files ----------------------------------------------------------- */

static char dir[] = "/tmp/chempi-auth-XXXXXX";
static char path[64];

static void make_dir(void)
{
    cr_assert(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/key", dir);
}

static void remove_dir(void)
{
    (void)unlink(path);
    (void)rmdir(dir);
}

static void write_key(const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    cr_assert(f);
    cr_assert(fputs(text, f) >= 0);
    cr_assert_eq(fclose(f), 0);
    cr_assert_eq(chmod(path, mode), 0);
}

#define DIGITS                                                                 \
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F"

TestSuite(key_file, .init = make_dir, .fini = remove_dir);

Test(key_file, sixty_four_digits_are_a_key)
{
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];

    write_key(DIGITS "\n", 0600);
    cr_assert_eq(chempi_auth_load_keys(path, key, 1, NULL), 1);
    for (unsigned i = 0; i < sizeof(key); i++)
        cr_assert_eq(key[i], i);
}

Test(key_file, a_key_that_others_can_read_is_refused_with_a_remedy)
{
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];
    struct chempi_err err;

    write_key(DIGITS "\n", 0644);
    cr_assert_eq(chempi_auth_load_keys(path, key, 1, &err), -EPERM);
    cr_assert(strstr(err.text, "chmod 600"));
}

Test(key_file, anything_else_is_refused)
{
    static const char *const bad[] = {"", "00", DIGITS "00", "xyz" DIGITS,
                                      DIGITS "\nrest\n"};
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_key(bad[i], 0600);
        cr_assert_eq(chempi_auth_load_keys(path, key, 1, NULL), -EINVAL, "%s",
                     bad[i]);
    }
    cr_assert_eq(chempi_auth_load_keys(dir, key, 1, NULL), -EINVAL);
    cr_assert_eq(chempi_auth_load_keys("/nonexistent/key", key, 1, NULL),
                 -ENOENT);
}

Test(key_file, two_keys_may_be_good_at_a_time)
{
    uint8_t keys[2 * CHEMPI_AUTH_KEY_BYTES];

    write_key(DIGITS "\n" DIGITS "\n", 0600);
    cr_assert_eq(chempi_auth_load_keys(path, keys, 2, NULL), 2);
    cr_assert_eq(keys[CHEMPI_AUTH_KEY_BYTES + 1], 1);
    cr_assert_eq(chempi_auth_load_keys(path, keys, 1, NULL), -EINVAL);
}

Test(key_file, a_key_of_another_user_is_refused)
{
    uint8_t key[CHEMPI_AUTH_KEY_BYTES];
    struct chempi_err err;

    if (geteuid() != 0)
        cr_skip_test("only root can give files away");
    write_key(DIGITS, 0600);
    cr_assert_eq(chown(path, 65534, 65534), 0);
    cr_assert_eq(chempi_auth_load_keys(path, key, 1, &err), -EPERM);
    cr_assert(strstr(err.text, "belongs to user 65534"));
}
