#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Java: the JVM parks its threads on mutex and condition pairs that it creates with CLOCK_MONOTONIC attributes; its
# compiler, collector and signal dispatcher wait on its own monitors. javac runs under the engine too.
. "$(dirname "$0")/lib.sh"
need javac java

java_program() {
    check_run "javac compiles Monitors.java" 90 javac -d "$variant.classes" "$here/subjects/Monitors.java"
    check_run "Monitors holds its assertions" 90 java -XX:+UseParallelGC -Xmx256m -cp "$variant.classes" Monitors
    keep parallel
    same "Monitors prints the same results" parallel
    check_run "the same with the G1 collector" 90 java -XX:+UseG1GC -XX:ParallelGCThreads=4 -Xmx256m \
        -cp "$variant.classes" Monitors
    keep g1
    same "with the same results" g1
}

each_variant java_program
finish
