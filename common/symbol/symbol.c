/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of addresses; see symbol.h. Files may be anything: every offset is
 * checked against the file's size. */
#define _GNU_SOURCE /* O_CLOEXEC, fstat */
#include "common/symbol/symbol.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h> /* ElfW */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- text ---- */

/* Characters put into a buffer that is always terminated. */
struct text {
    char *at;
    size_t room;
};

static void put(struct text *t, const char *s)
{
    for (; *s && t->room > 1; s++, t->room--)
        *t->at++ = *s;
    *t->at = '\0';
}

static void put_hex(struct text *t, uint64_t value)
{
    char digits[2 + 16 + 1];
    size_t i = sizeof(digits) - 1;

    digits[i] = '\0';
    do {
        digits[--i] = "0123456789abcdef"[value % 16];
        value /= 16;
    } while (value);
    put(t, "0x");
    put(t, digits + i);
}

const char *chempi_symbol_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- mappings ---- */

/* A line of /proc/self/maps: "from-to modes offset device inode path". */
struct mapping {
    uint64_t from;
    uint64_t to;
    uint64_t offset; /* in the file, bytes */
    const char *path;
};

static uint64_t take_hex(const char **at)
{
    uint64_t value = 0;

    for (; **at; (*at)++) {
        const char c = **at;
        const bool is_digit = c >= '0' && c <= '9';

        if (!is_digit && (c < 'a' || c > 'f'))
            break;
        value = value * 16 + (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    return value;
}

static void skip_word(const char **at)
{
    while (**at && **at != ' ')
        (*at)++;
    while (**at == ' ')
        (*at)++;
}

static struct mapping read_mapping(const char *line)
{
    struct mapping m = {.from = take_hex(&line)};

    line += *line == '-';
    m.to = take_hex(&line);
    skip_word(&line);
    skip_word(&line);
    m.offset = take_hex(&line);
    skip_word(&line);
    skip_word(&line);
    skip_word(&line);
    m.path = line;
    return m;
}

/* Lines of a descriptor; stdio would allocate. */
struct lines {
    int fd;
    size_t at;
    size_t len;
    char buf[1024];
};

/* The next one; what has no room is left out. False at the end. */
static bool next_line(struct lines *l, char *line, size_t room)
{
    size_t n = 0;

    for (;;) {
        if (l->at == l->len) {
            const ssize_t got = read(l->fd, l->buf, sizeof(l->buf));

            if (got <= 0)
                return false;
            l->len = (size_t)got;
            l->at = 0;
        }
        if (l->buf[l->at++] == '\n')
            break;
        if (n + 1 < room)
            line[n++] = l->buf[l->at - 1];
    }
    line[n] = '\0';
    return true;
}

static bool find_mapping(uint64_t address, char *line, size_t room,
                         struct mapping *out)
{
    struct lines l = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    bool is_found = false;

    if (l.fd < 0)
        return false;
    while (!is_found && next_line(&l, line, room)) {
        *out = read_mapping(line);
        is_found = address >= out->from && address < out->to;
    }
    (void)close(l.fd);
    return is_found && out->path[0] == '/';
}

/* ---- files ---- */

struct file {
    const unsigned char *base;
    size_t len;
};

/* `size` bytes at `at`, or NULL. */
static const void *part(const struct file *f, uint64_t at, uint64_t size)
{
    return at <= f->len && size <= f->len - at ? f->base + at : NULL;
}

static bool open_file(const char *path, struct file *f)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *base = MAP_FAILED;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (base == MAP_FAILED)
        return false;
    *f = (struct file){.base = base, .len = (size_t)st.st_size};
    return true;
}

static bool is_elf(const ElfW(Ehdr) * head)
{
    return head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] ==
               (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           head->e_phentsize == sizeof(ElfW(Phdr)) &&
           head->e_shentsize == sizeof(ElfW(Shdr));
}

/* The address of what lies at this place in the file; 0: not loaded. */
static uint64_t address_of(const struct file *f, const ElfW(Ehdr) * head,
                           uint64_t at)
{
    const ElfW(Phdr) *ph =
        part(f, head->e_phoff, (uint64_t)head->e_phnum * sizeof(*ph));

    for (size_t i = 0; ph && i < head->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && at >= ph[i].p_offset &&
            at - ph[i].p_offset < ph[i].p_filesz)
            return at - ph[i].p_offset + ph[i].p_vaddr;
    return 0;
}

static void look_up(const struct file *f, const ElfW(Shdr) * table,
                    const ElfW(Shdr) * strings, struct chempi_symbol *out)
{
    const ElfW(Sym) *sym = part(f, table->sh_offset, table->sh_size);
    const char *names = part(f, strings->sh_offset, strings->sh_size);
    const size_t count = table->sh_size / sizeof(*sym);

    for (size_t i = 0; sym && names && i < count; i++) {
        struct text name = {out->name, sizeof(out->name)};

        if (ELF64_ST_TYPE(sym[i].st_info) != STT_FUNC ||
            out->address < sym[i].st_value ||
            out->address - sym[i].st_value >= sym[i].st_size ||
            sym[i].st_name >= strings->sh_size ||
            !memchr(names + sym[i].st_name, '\0',
                    strings->sh_size - sym[i].st_name))
            continue;
        put(&name, names + sym[i].st_name);
        out->offset = out->address - sym[i].st_value;
        return;
    }
}

/* The full table if there is one, else that of what is shown. */
static void find_name(const struct file *f, const ElfW(Ehdr) * head,
                      struct chempi_symbol *out)
{
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    const ElfW(Shdr) *sh =
        part(f, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sh));

    for (size_t k = 0; k < 2 && sh; k++)
        for (size_t i = 0; i < head->e_shnum && !*out->name; i++)
            if (sh[i].sh_type == kinds[k] && sh[i].sh_link < head->e_shnum)
                look_up(f, &sh[i], &sh[sh[i].sh_link], out);
}

bool chempi_symbol_find(const void *address, struct chempi_symbol *out)
{
    char line[CHEMPI_SYMBOL_PATH + 80];
    struct text path = {out->path, sizeof(out->path)};
    const ElfW(Ehdr) * head;
    struct mapping m;
    struct file f;

    memset(out, 0, sizeof(*out));
    if (!find_mapping((uintptr_t)address, line, sizeof(line), &m))
        return false;
    put(&path, m.path);
    if (!open_file(out->path, &f))
        return true;
    head = part(&f, 0, sizeof(*head));
    if (is_elf(head)) {
        out->address =
            address_of(&f, head, (uintptr_t)address - m.from + m.offset);
        find_name(&f, head, out);
    }
    (void)munmap((void *)(uintptr_t)f.base, f.len);
    return true;
}

char *chempi_symbol_words(const void *address, char *out, size_t len)
{
    struct chempi_symbol symbol;
    struct text t = {out, len};

    if (!chempi_symbol_find(address, &symbol)) {
        put_hex(&t, (uintptr_t)address);
    } else if (*symbol.name) {
        put(&t, symbol.name);
        put(&t, "+");
        put_hex(&t, symbol.offset);
        put(&t, " (");
        put(&t, chempi_symbol_base(symbol.path));
        put(&t, ")");
    } else {
        put(&t, chempi_symbol_base(symbol.path));
        put(&t, "+");
        put_hex(&t, symbol.address);
    }
    return out;
}
