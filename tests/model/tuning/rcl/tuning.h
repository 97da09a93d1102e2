/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For rcl-walk, in place of rcl/tuning.h: a number of looks must not tell states apart. */
#ifndef RCL_TUNING_H
#define RCL_TUNING_H

#define RCL_CLIENT_SPINS 1

#endif
