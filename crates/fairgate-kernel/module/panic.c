// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Guarded calls of Rust: a panic there ends the call, and not the kernel. Nothing is unwound.
 */
#include <linux/module.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sysfs.h>
#include <asm/nospec-branch.h>
#include "qdisc.h"

static atomic_t panics = ATOMIC_INIT(0);
/*
 * The call that runs. On the packet path bottom halves are disabled, so a CPU has one. Calls that may sleep
 * are made under a mutex. A call of the first kind may interrupt one of the second kind.
 */
DEFINE_PER_CPU(struct guarded *, fairgate_atomic_call);
static DEFINE_MUTEX(sleeping_lock);
static struct guarded *sleeping_call;

struct guarded *fairgate_running_call(void)
{
	return is_atomic_call() ? this_cpu_read(fairgate_atomic_call) : sleeping_call;
}

void __noreturn fgk_panic(const char *text, size_t length)
{
	struct guarded *call = fairgate_running_call();

	if (!call) {
		pr_emerg("panic outside of a guard: %.*s\n", (int)length, text);
		BUG();
	}
	call->panicked = true;
	if (!call->no_memory) {
		scnprintf(call->why, sizeof(call->why), "%.*s", (int)length, text);
		atomic_inc(&panics);
		pr_err("fairgate: a panic was caught: %s\n", call->why);
	}
	fgk_escape(call->saved);
}

noinline long fairgate_call_any(struct guarded *call, void *f, long a, long b, long c, long d, long e)
{
	long result = (long)&call->saved;
	/* No function is called between these and their use. */
	register long fourth asm("rcx") = d;
	register long fifth asm("r8") = e;
	register void *target asm("r9") = f;

	asm volatile(KEEP_FRAME
		     "mov %%rsp, (%%rax)\n\t"
		     CALL_NOSPEC
		     TAKE_FRAME
		     : "+a" (result), "+D" (a), "+S" (b), "+d" (c), "+r" (fourth), "+r" (fifth),
		       [thunk_target] "+r" (target), ASM_CALL_CONSTRAINT
		     :: LOST_FRAME "rbx", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	return result;
}

long fairgate_call_sleeping(struct guarded *call, enum entry entry, void *f, long a, long b, long c, long d,
			    long e)
{
	long result;

	mutex_lock(&sleeping_lock);
	sleeping_call = call;
	if (static_branch_unlikely(&fairgate_is_tested))
		result = fairgate_call_tested(call, entry, f, a, b, c, d, e);
	else
		result = fairgate_call_any(call, f, a, b, c, d, e);
	sleeping_call = NULL;
	mutex_unlock(&sleeping_lock);
	return result;
}

static int get_panics(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&panics));
}

static const struct kernel_param_ops panics_ops = { .get = get_panics };

module_param_cb(panics, &panics_ops, NULL, 0444);
MODULE_PARM_DESC(panics, "panics that were caught");
