# For notified.sh: how many that have been told something are woken, and in how many of these calls a signal handler of the
# program's could have come in between.
set pagination off
set confirm off
set breakpoint pending on
set debuginfod enabled off
set $woken = 0
set $open = 0
break sbt_waiter_wake
commands
silent
set $woken = $woken + (word != 0)
if word != 0 && sbt_self.handlers_held == 0
set $open = $open + 1
bt 4
end
continue
end
run
printf "woken %d, open %d\n", $woken, $open
