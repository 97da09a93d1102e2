# For fork_in_switch.sh: once threads yield for a while, the signal comes where a carrier is in a section of its run queue.
set pagination off
set confirm off
set breakpoint pending on
set debuginfod enabled off
handle SIGUSR1 nostop noprint pass
break main
run
break sbt_own_lock_enter_shared if sbt_self.fiber != 0
ignore 2 10
continue
delete
signal SIGUSR1
