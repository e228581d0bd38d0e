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

static const char * const entry_names[] = {
	"build", "enqueue", "enqueued", "dequeue", "flush", "statistics", "dump", "change", "delete", "tree", "",
};
static int panic_in __read_mostly = NOWHERE;
DEFINE_STATIC_KEY_FALSE(fairgate_panics_on_request);
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

bool fairgate_is_to_panic(enum entry entry)
{
	return READ_ONCE(panic_in) == entry && cmpxchg(&panic_in, entry, NOWHERE) == entry;
}

long fairgate_call_sleeping(struct guarded *call, enum entry entry, void *f, long a, long b, long c, long d,
			    long e)
{
	long result = (long)&call->saved;

	if (fairgate_is_to_panic(entry))
		f = fgk_provoke;
	mutex_lock(&sleeping_lock);
	sleeping_call = call;
	{
		/* No function is called between these and their use. */
		register long fourth asm("rcx") = d;
		register long fifth asm("r8") = e;
		register void *target asm("r9") = f;

		asm volatile("mov %%rsp, (%%rax)\n\t"
			     CALL_NOSPEC
			     : "+a" (result), "+D" (a), "+S" (b), "+d" (c), "+r" (fourth), "+r" (fifth),
			       [thunk_target] "+r" (target), ASM_CALL_CONSTRAINT
			     :: "rbx", "rbp", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	}
	sleeping_call = NULL;
	mutex_unlock(&sleeping_lock);
	return result;
}

/* ---- Parameters of the module ---- */

static int set_panic_in(const char *value, const struct kernel_param *param)
{
	int entry = sysfs_match_string(entry_names, value);

	if (entry < 0)
		return entry;
	if (entry != NOWHERE)
		static_branch_enable(&fairgate_panics_on_request);
	WRITE_ONCE(panic_in, entry);
	return 0;
}

static int get_panic_in(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", entry_names[READ_ONCE(panic_in)]);
}

static int get_panics(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&panics));
}

static const struct kernel_param_ops panic_in_ops = { .set = set_panic_in, .get = get_panic_in };
static const struct kernel_param_ops panics_ops = { .get = get_panics };

module_param_cb(panic_in, &panic_in_ops, NULL, 0600);
MODULE_PARM_DESC(panic_in, "a test: the next call of this entry panics");
module_param_cb(panics, &panics_ops, NULL, 0444);
MODULE_PARM_DESC(panics, "panics that were caught");
