/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/engine.h"

const struct sbt_engine *const sbt_engine_table[SBT_N_ENGINES] = {
    [SBT_ENGINE_GLIBC] = &sbt_engine_glibc,
    [SBT_ENGINE_DIRECT] = &sbt_engine_direct,
    [SBT_ENGINE_NI] = &sbt_engine_ni,
    [SBT_ENGINE_DET] = &sbt_engine_det,
};
