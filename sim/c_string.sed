# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes C string literals of a text, one a line.
s/\\/&&/g
s/"/\\&/g
s/.*/"&\\n"/
