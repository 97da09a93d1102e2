/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The library's own judgement of a libgomp (os/site_find.h), made on its file: loaded as data, not to be run. */
#include "sites.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/site_find.h"

enum { SEGMENTS_MAX = 64 };
#define BYTES_MAX ((size_t)256 << 20)

static bool read_all(int fd, void *to, size_t n, uint64_t offset) {
    return pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

/* The memory that the segments take, from address 0; 0: they are not as they should be. */
static size_t image_bytes(const ElfW(Phdr) * p, size_t n) {
    size_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i].p_type != PT_LOAD)
            continue;
        if (p[i].p_vaddr > BYTES_MAX || p[i].p_memsz > BYTES_MAX || p[i].p_filesz > p[i].p_memsz)
            return 0;
        if (p[i].p_vaddr + p[i].p_memsz > end)
            end = p[i].p_vaddr + p[i].p_memsz;
    }
    return end;
}

static bool judge(int fd, ElfW(Phdr) * p, size_t n, char *image) {
    for (size_t i = 0; i < n; i++)
        if (p[i].p_type == PT_LOAD && !read_all(fd, image + p[i].p_vaddr, p[i].p_filesz, p[i].p_offset))
            return false;
    const struct dl_phdr_info info = {.dlpi_addr = (ElfW(Addr))image, .dlpi_phdr = p, .dlpi_phnum = (ElfW(Half))n};
    struct sbt_sites sites;
    return sbt_sites_find(&sites, &info) == NULL;
}

static bool judge_file(int fd) {
    ElfW(Ehdr) header;
    ElfW(Phdr) p[SEGMENTS_MAX];
    if (!read_all(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof *p || header.e_phnum > SEGMENTS_MAX ||
        !read_all(fd, p, header.e_phnum * sizeof *p, header.e_phoff))
        return false;
    const size_t bytes = image_bytes(p, header.e_phnum);
    if (bytes == 0)
        return false;
    char *image = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (image == MAP_FAILED)
        return false;
    bool can = judge(fd, p, header.e_phnum, image);
    munmap(image, bytes);
    return can;
}

bool sites_can_be_served(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool can = judge_file(fd);
    close(fd);
    return can;
}
