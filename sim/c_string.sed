# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the text of the reference machine's costs a string in C.
s/\\/&&/g
s/"/\\&/g
s/.*/"&\\n"/
1i #include "host_costs.h"
1i const char sim_host_costs_reference_text[] =
$a ;
