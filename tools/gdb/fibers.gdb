# SPDX-License-Identifier: LGPL-2.1-or-later
# Stacks of the threads that wait by switching: gdb -x tools/gdb/fibers.gdb -p PID -ex fibers
#
# "thread apply all bt" shows what kernel threads run. A fiber that waits, or is ready, is on none of them. For each fiber
# that waits (its token is 2, PARKED) its saved registers take the place of the current thread's, which is stopped. After
# the backtrace the thread's own are put back. This needs the library's debugging information (it has some unless it was
# stripped) and a live process on x86-64.
define fibers
  set pagination off
  set $old_sp = $rsp
  set $old_pc = $rip
  set $old_bp = $rbp
  set $old_bx = $rbx
  set $i = 0
  while $i < sbt_switch_memory.s.pool_used
    set $fiber = &sbt_pool[$i]
    if $fiber->token == 2
      printf "--- fiber %d waits, TLS at %p\n", $i, $fiber->regs.tls
      set $frame = (unsigned long *) $fiber->regs.sp
      set $rbx = $frame[5]
      set $rbp = $frame[6]
      set $rip = $frame[7]
      set $rsp = (unsigned long) ($frame + 8)
      backtrace
      set $rsp = $old_sp
      set $rip = $old_pc
      set $rbp = $old_bp
      set $rbx = $old_bx
    end
    set $i = $i + 1
  end
end
document fibers
Print the stacks of the threads that wait by switching.
end
