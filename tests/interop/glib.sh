#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# GLib locks, recursively too, in constructors that run before the library's own, and starts a worker thread for its
# main context: gdbus against a private message bus, gio on files.
. "$(dirname "$0")/lib.sh"
need gdbus gio dbus-daemon

bus() {
    local address=unix:path=$scratch/$variant.bus
    serve dbus-daemon --session --nofork --nopidfile --nosyslog --address="$address"
    check_start "dbus-daemon listens" 20 test -S "$scratch/$variant.bus" || return
    check_run "gdbus asks the bus for its names" 30 gdbus call --address "$address" \
        --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus --method org.freedesktop.DBus.GetId
    check "and gets an answer" grep -qE "^\('[0-9a-f]{32}',\)" "$variant.out"
    check_run "gdbus introspects" 30 gdbus introspect --address "$address" --xml \
        --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus
    keep xml
    same "the same interface" xml
    check_run "gdbus reports an error" 30 sh -c "! gdbus call --address $address --dest org.freedesktop.DBus \
        --object-path /org/freedesktop/DBus --method org.freedesktop.DBus.GetNameOwner no.such.name"
    keep error
    check_stop "dbus-daemon ends on SIGTERM" 20
    seq 5000 >file
    check_run "gio copies a file" 30 gio copy file "$variant.copy"
    same "the file" copy
    check_run "gio looks at it" 30 gio info -a standard::size,standard::content-type file
    keep info
    same "the same attributes" info
}

each_variant bus
finish
