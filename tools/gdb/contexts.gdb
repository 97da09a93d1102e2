# SPDX-License-Identifier: LGPL-2.1-or-later
# Stacks of the threads that wait by switching: gdb -x tools/gdb/contexts.gdb -p PID -ex contexts
#
# "thread apply all bt" shows what kernel threads run; a context that waits, or is ready, is on none. For each that waits
# its saved registers are put in place of the current thread's, which is stopped, and put back. Needs the library's
# debugging information (it has some unless it was stripped) and a live process, x86-64.
define contexts
  set pagination off
  set $old_sp = $rsp
  set $old_pc = $rip
  set $old_bp = $rbp
  set $old_bx = $rbx
  set $i = 0
  while $i < sbt_switch_memory.s.pool_used
    set $c = &pool[$i]
    if $c->token == 2
      printf "--- context %d waits, TLS at %p\n", $i, $c->regs.tls
      set $f = (unsigned long *) $c->regs.sp
      set $rbx = $f[5]
      set $rbp = $f[6]
      set $rip = $f[7]
      set $rsp = (unsigned long) ($f + 8)
      backtrace
      set $rsp = $old_sp
      set $rip = $old_pc
      set $rbp = $old_bp
      set $rbx = $old_bx
    end
    set $i = $i + 1
  end
end
document contexts
Print the stacks of the threads that wait by switching.
end
