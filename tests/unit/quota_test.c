/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Quotas of CPU time, in trees of files that look like /proc and the control groups of real machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/suite.h"
#include "os/quota.h"

static char root[64];

static void in_new_root(void) {
    strcpy(root, "/tmp/quota-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void remove_root(void) {
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK_INT(system(command), 0);
}

/* A file with its directories. */
static void put(const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *f = fopen(full, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_INT(fclose(f), 0);
}

static int files;

static long quota(void) {
    struct sbt_quota q;
    sbt_quota_find(&q, root);
    return sbt_quota_cpus(&q, root, &files);
}

#define MOUNTS_V2                                                                                                      \
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"                                                          \
    "31 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void v2(const char *group) {
    char line[512];
    in_new_root();
    put("/proc/self/mountinfo", MOUNTS_V2);
    snprintf(line, sizeof line, "0::%s\n", group);
    put("/proc/self/cgroup", line);
}

TEST(v2__no_quota_anywhere, "groups with \"max\", and the root group without a file") {
    v2("/user.slice/a.scope");
    put("/sys/fs/cgroup/user.slice/a.scope/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    CHECK_INT(quota(), SBT_QUOTA_NONE);
    CHECK_INT(files, 2);
    remove_root();
}

TEST(v2__own_quota_is_rounded_up) {
    static const struct {
        const char *text;
        uint32_t cpus;
    } cases[] = {{"100000 100000\n", 1},        {"150000 100000\n", 2}, {"200000 100000\n", 2},
                 {"200001 100000\n", 3},        {"1000 100000\n", 1},   {"0 100000\n", 1},
                 {"50000 10000\n", 5},          {"800000 100000\n", 8}, {"18446744073709551615 1\n", SBT_QUOTA_NONE},
                 {"max\n", SBT_QUOTA_NONE},     {"", SBT_QUOTA_NONE},   {"100000\n", SBT_QUOTA_NONE},
                 {"100000 0\n", SBT_QUOTA_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        v2("/a");
        put("/sys/fs/cgroup/a/cpu.max", cases[i].text);
        if (quota() != (long)cases[i].cpus)
            FAIL("%s: %ld, not %u", cases[i].text, quota(), cases[i].cpus);
        remove_root();
    }
}

TEST(v2__smallest_of_all_groups_above, "the limit of the middle one counts; what lies beside does not") {
    v2("/a/b/c");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "700000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/a/cpu.max", "500000 100000\n");
    put("/sys/fs/cgroup/a/d/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    CHECK_INT(quota(), 3);
    CHECK_INT(files, 4);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_INT(quota(), 2);
    remove_root();
}

TEST(v2__namespace_mounts_the_group_itself,
     "a container: the mount's top is the group, and /proc names it by its path") {
    in_new_root();
    put("/proc/self/mountinfo", "31 22 0:26 /docker/4711 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/proc/self/cgroup", "0::/docker/4711/inner\n");
    put("/sys/fs/cgroup/inner/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/docker/4711/cpu.max", "100000 100000\n");
    CHECK_INT(quota(), 2);
    put("/proc/self/cgroup", "0::/docker/4711\n");
    CHECK_INT(quota(), 2);
    /* a group with a name that only begins like it, and one outside of the namespace: what is mounted counts */
    put("/proc/self/cgroup", "0::/docker/47110\n");
    CHECK_INT(quota(), 2);
    put("/proc/self/cgroup", "0::/../other\n");
    CHECK_INT(quota(), 2);
    CHECK_INT(files, 1);
    remove_root();
}

TEST(v1__quota_and_period, "the hierarchy of the controller cpu, mounted beside others") {
    in_new_root();
    put("/proc/self/mountinfo", "30 22 0:20 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                "31 22 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    put("/proc/self/cgroup", "5:cpuset:/s\n4:cpu,cpuacct:/a/b\n1:name=systemd:/t\n0::/u\n");
    put("/sys/fs/cgroup/cpuset/s/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpuset/s/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota(), SBT_QUOTA_NONE);
    CHECK_INT(files, 1);
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "120000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");
    CHECK_INT(quota(), 3);
    remove_root();
}

TEST(both_versions__smaller_counts) {
    in_new_root();
    put("/proc/self/mountinfo",
        "31 22 0:21 / /c/cpu rw - cgroup cgroup rw,cpu\n32 22 0:22 / /c/unified rw - cgroup2 x rw\n");
    put("/proc/self/cgroup", "4:cpu:/a\n0::/b\n");
    put("/c/cpu/a/cpu.cfs_quota_us", "400000\n");
    put("/c/cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK_INT(quota(), 4);
    put("/c/unified/b/cpu.max", "300000 100000\n");
    CHECK_INT(quota(), 3);
    put("/c/cpu/a/cpu.cfs_quota_us", "200000\n");
    CHECK_INT(quota(), 2);
    remove_root();
}

TEST(names__escaped_long_and_cut,
     "a mount point with a space; lines and groups that are longer than there is room for") {
    char lines[4096] = "22 1 0:9 / /over rw - overlay overlay rw,lowerdir=";
    in_new_root();
    memset(lines + strlen(lines), 'l', 2000);
    strcat(lines, "\n31 22 0:21 / /c\\040g rw - cgroup2 x rw\n");
    put("/proc/self/mountinfo", lines);
    put("/proc/self/cgroup", "0::/a");
    put("/c g/a/cpu.max", "200000 100000\n");
    put("/c g/cpu.max", "900000 100000\n");
    CHECK_INT(quota(), 2);
    memset(lines, 'x', sizeof lines);
    memcpy(lines, "0::/", 4);
    lines[1000] = '\0';
    put("/proc/self/cgroup", lines);
    CHECK_INT(quota(), 9); /* the group is not found, the mounted one is */
    remove_root();
}

TEST(nothing__is_no_quota, "no /proc; no mounts; a group that cannot be read") {
    in_new_root();
    CHECK_INT(quota(), SBT_QUOTA_NONE);
    CHECK_INT(files, -1);
    put("/proc/self/cgroup", "0::/a\ngarbage\n:\n\n");
    CHECK_INT(quota(), SBT_QUOTA_NONE);
    CHECK_INT(files, 0);
    put("/proc/self/mountinfo", "garbage\n\n1 2 3\n31 22 0:26 / /c rw - cgroup2\n");
    CHECK_INT(quota(), SBT_QUOTA_NONE);
    CHECK_INT(files, 0);
    remove_root();
}

TEST(here__leaves_no_descriptor_open, "this machine's own files; the lowest free descriptor is the same afterwards") {
    struct sbt_quota q;
    const int before = dup(0);
    close(before);
    for (int i = 0; i < 10; i++) {
        sbt_quota_find(&q, "");
        CHECK(sbt_quota_cpus(&q, "", &files) >= 1);
        CHECK(files >= 0);
    }
    const int after = dup(0);
    CHECK_INT(after, before);
    close(after);
}
