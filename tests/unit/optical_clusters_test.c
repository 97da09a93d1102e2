/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The optical network in clusters: times computed by hand. */
#include "optical_bench.h"

/*
 * 64 cores, 16 clusters of 2 mm: 32 mm of waveguide, 320 ps, one cycle. Sent at 0: at the hub at 1, out of it at 2,
 * modulated at 3, at the detectors at 4, electrical at 5, through the hub at 6, star and link until 8. 160 + 32 bits
 * are three flits, so the last one is there at 10; the controller moves it until 20. The own cluster has it three
 * cycles earlier.
 */
TEST(clusters__one_message) {
    struct bench b;
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    open_net(&b, &config, true);
    ck_assert_uint_eq(b.net.clusters.waveguide_cycles, 1);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    for (uint32_t core = 1; core < 64; core++)
        ck_at(&b, core, core < 4 ? 17 : 20, 0);
    close_net(&b);
}

/* An H-tree for four cores has two levels, a link each: as long as star and link. For 16 cores it has four. */
TEST(clusters__h_tree) {
    struct bench b;
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    config.clusters.receive = HW_RECEIVE_HTREE;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 63, 20, 0);
    close_net(&b);
    config.clusters.n_cores = 16;
    open_net(&b, &config, true);
    ck_assert_uint_eq(b.net.clusters.waveguide_cycles, 1); /* 4 x 4 mm: 160 ps */
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 63, 22, 0);
    close_net(&b);
}

/*
 * Cores 0 and 1 share a hub: it sends the second message's three flits behind the first one's, so that one arrives at
 * 13, and is in the buffer at 30, after the first. Core 4 of another cluster uses the other star: it arrives at 10 too,
 * and is moved behind core 0's, which is first in the loop.
 */
TEST(clusters__a_hub_is_shared) {
    struct bench b;
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 1, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 63, 20, 0);
    ck_at(&b, 63, 30, 1);
    ck_assert_int_eq(send(&b, 4, 1, 100), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 100), HW_OPTICAL_OK);
    ck_at(&b, 63, 120, 4); /* the loop is behind 1 */
    ck_at(&b, 63, 130, 0);
    close_net(&b);
}

/* Clusters 0 and 2 share a star: the second message's flits wait for the first one's. At 10 and 13. */
TEST(clusters__a_star_is_shared) {
    struct bench b;
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    config.controller_cycles = 0;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 8, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 63, 10, 0);
    ck_at(&b, 63, 13, 8);
    close_net(&b);
}

/* 1024 cores, 256 clusters: 512 mm, 5120 ps, six cycles. */
TEST(clusters__1024_cores) {
    struct bench b;
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    config.n_cores = 1024;
    open_net(&b, &config, true);
    ck_assert_uint_eq(b.net.clusters.waveguide_cycles, 6);
    ck_assert_int_eq(send(&b, 1023, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 0, 25, 1023);
    ck_at(&b, 1022, 17, 1023);
    close_net(&b);
    config.clock_mhz = 2000; /* 5120 ps at 2 GHz */
    open_net(&b, &config, true);
    ck_assert_uint_eq(b.net.clusters.waveguide_cycles, 11);
    close_net(&b);
}

/*
 * Nine cores in clusters of two: five clusters, each 2 mm wide, the last one of a single core. 1500 ps, two cycles, so
 * the first message arrives at 11. Clusters 4 and 0 share a star.
 */
TEST(clusters__that_are_not_full) {
    struct bench b;
    struct hw_optical_config config = small(9);
    config.shape = HW_OPTICAL_CLUSTERS;
    config.clusters.n_cores = 2;
    config.clusters.waveguide_ps_per_mm = 150;
    config.controller_cycles = 0;
    open_net(&b, &config, true);
    ck_assert_uint_eq(b.net.clusters.n, 5);
    ck_assert_uint_eq(b.net.clusters.waveguide_cycles, 2);
    ck_assert_int_eq(send(&b, 8, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 2, 11, 8);
    ck_at(&b, 2, 14, 0);
    close_net(&b);
}
