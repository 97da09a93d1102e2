# For fork_in_switch.sh: once threads yield for a while, the signal comes where a carrier is about to queue one again.
set pagination off
set confirm off
set breakpoint pending on
set debuginfod enabled off
set detach-on-fork on
set follow-fork-mode parent
handle SIGUSR1 nostop noprint pass
break main
run
break *finish_otherwise if $edx == 2 && $rcx != 0
ignore 2 10
continue
delete
signal SIGUSR1
