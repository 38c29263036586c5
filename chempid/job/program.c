/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program's file says of itself; see program.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "chempid/job/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/compiler.h"
#include "common/base/sys.h"

#define HEADERS_MAX 256u       /* program headers that are looked at */
#define DYNAMIC_MAX (1u << 16) /* entries of the dynamic section, too */

#if UINTPTR_MAX > UINT32_MAX
#define OWN_CLASS ELFCLASS64
typedef Elf64_Ehdr elf_head;
typedef Elf64_Phdr elf_part;
typedef Elf64_Dyn elf_dyn;
#else
#define OWN_CLASS ELFCLASS32
typedef Elf32_Ehdr elf_head;
typedef Elf32_Phdr elf_part;
typedef Elf32_Dyn elf_dyn;
#endif

/* A file, read only; it may change under us, so that strings are copied with
 * their bounds. */
struct image {
    const unsigned char *data;
    size_t len;
};

static bool is_executable(const char *file)
{
    struct stat st;

    return stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
           access(file, X_OK) == 0;
}

static bool join(char *file, size_t size, const char *dir, size_t dir_len,
                 const char *name)
{
    const int n = snprintf(file, size, "%.*s%s%s", (int)dir_len, dir,
                           dir_len && dir[dir_len - 1] != '/' ? "/" : "", name);

    return n > 0 && (size_t)n < size;
}

bool chempi_program_find(const char *name, const char *dir, const char *path,
                         char *file, size_t size)
{
    if (strchr(name, '/')) {
        const bool is_absolute = name[0] == '/' || !dir;

        return join(file, size, is_absolute ? "" : dir,
                    is_absolute ? 0 : strlen(dir), name) &&
               is_executable(file);
    }
    for (const char *at = path; at && *at;) {
        const size_t len = strcspn(at, ":");

        if (join(file, size, at, len, name) && is_executable(file))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static bool open_image(const char *file, struct image *image)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    void *data = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        data = chempi_sys->mmap(NULL, (size_t)st.st_size, PROT_READ,
                                MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        (void)close(fd); /* read only */
    if (data == MAP_FAILED)
        return false;
    image->data = data;
    image->len = (size_t)st.st_size;
    return true;
}

static void close_image(const struct image *image)
{
    (void)chempi_sys->munmap((void *)(uintptr_t)image->data, image->len);
}

/* Copy so many bytes at an offset. */
static bool get(const struct image *image, uint64_t at, void *out, size_t len)
{
    if (at > image->len || len > image->len - at)
        return false;
    memcpy(out, image->data + at, len);
    return true;
}

/* A string at an offset, cut at the room for it. */
static bool get_string(const struct image *image, uint64_t at, char *out,
                       size_t size)
{
    size_t n = 0;

    if (at >= image->len)
        return false;
    while (n + 1 < size && n < image->len - at && image->data[at + n]) {
        out[n] = (char)image->data[at + n];
        n++;
    }
    out[n] = '\0';
    return n > 0;
}

/* ---- ELF ----------------------------------------------------------------- */

static bool get_head(const struct image *image, elf_head *head)
{
    return get(image, 0, head, sizeof(*head)) &&
           memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == OWN_CLASS &&
           head->e_phentsize == sizeof(elf_part);
}

static bool get_part(const struct image *image, const elf_head *head,
                     uint32_t index, elf_part *part)
{
    return index < head->e_phnum && index < HEADERS_MAX &&
           get(image, head->e_phoff + (uint64_t)index * sizeof(*part), part,
               sizeof(*part));
}

static bool find_part(const struct image *image, const elf_head *head,
                      uint32_t type, elf_part *part)
{
    for (uint32_t i = 0; get_part(image, head, i, part); i++)
        if (part->p_type == type)
            return true;
    return false;
}

/* Where an address of the running program lies in the file. */
static bool to_offset(const struct image *image, const elf_head *head,
                      uint64_t address, uint64_t *offset)
{
    elf_part part;

    for (uint32_t i = 0; get_part(image, head, i, &part); i++)
        if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
            address - part.p_vaddr < part.p_filesz) {
            *offset = address - part.p_vaddr + part.p_offset;
            return true;
        }
    return false;
}

/* The names that another MPI's library has, and ours has not: libmpi.so of
 * any number but what the standard gives, MPICH's, Intel's. */
static bool is_other_mpi(const char *library)
{
    static const char *const names[] = {"libmpi.so.", "libmpich.so.",
                                        "libmpi_mt.so", "libmpi_cray.so"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if (strncmp(library, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool get_entry(const struct image *image, const elf_part *dynamic,
                      uint32_t index, elf_dyn *entry)
{
    return index < DYNAMIC_MAX &&
           (uint64_t)index * sizeof(*entry) < dynamic->p_filesz &&
           get(image, dynamic->p_offset + (uint64_t)index * sizeof(*entry),
               entry, sizeof(*entry)) &&
           entry->d_tag != DT_NULL;
}

static bool find_other(const struct image *image, char *library, size_t size)
{
    elf_head head;
    elf_part dynamic;
    elf_dyn entry;
    uint64_t strings = 0;
    bool has_strings = false;

    if (!get_head(image, &head) ||
        !find_part(image, &head, PT_DYNAMIC, &dynamic))
        return false;
    for (uint32_t i = 0; get_entry(image, &dynamic, i, &entry); i++)
        if (entry.d_tag == DT_STRTAB)
            has_strings = to_offset(image, &head, entry.d_un.d_ptr, &strings);
    for (uint32_t i = 0; has_strings && get_entry(image, &dynamic, i, &entry);
         i++)
        if (entry.d_tag == DT_NEEDED &&
            get_string(image, strings + entry.d_un.d_val, library, size) &&
            is_other_mpi(library))
            return true;
    return false;
}

bool chempi_program_other_mpi(const char *file, char *library, size_t size)
{
    struct image image;
    bool is_other;

    if (!open_image(file, &image))
        return false;
    is_other = find_other(&image, library, size);
    close_image(&image);
    return is_other;
}

/* ---- interpreters -------------------------------------------------------- */

static bool get_script(const struct image *image, char *name, size_t size)
{
    size_t start = 2;
    size_t n = 0;

    if (image->len < 3 || memcmp(image->data, "#!", 2) != 0)
        return false;
    while (start < image->len &&
           (image->data[start] == ' ' || image->data[start] == '\t'))
        start++;
    while (n + 1 < size && start + n < image->len &&
           !strchr(" \t\n", image->data[start + n])) {
        name[n] = (char)image->data[start + n];
        n++;
    }
    name[n] = '\0';
    return n > 0;
}

bool chempi_program_interpreter(const char *file, char *name, size_t size)
{
    struct image image;
    elf_head head;
    elf_part part;
    bool has;

    if (!open_image(file, &image))
        return false;
    has = get_script(&image, name, size) ||
          (get_head(&image, &head) &&
           find_part(&image, &head, PT_INTERP, &part) &&
           get_string(&image, part.p_offset, name, size));
    close_image(&image);
    return has;
}
