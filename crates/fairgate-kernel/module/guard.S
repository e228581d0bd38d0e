/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * long fgk_guard(f, a, b, c, d, e, saved) calls f(a, b, c, d, e), after it has stored the stack pointer in
 * *saved. fgk_escape(*saved, result) returns `result` from that call, from any depth below it.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

	.text
SYM_FUNC_START(fgk_guard)
	mov 8(%rsp), %rax	/* the seventh argument */
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	push %rax		/* aligns the stack to 16 bytes */
	mov %rsp, (%rax)
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %rcx
	mov %r9, %r8
	CALL_NOSPEC rax
	pop %rcx
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	RET
SYM_FUNC_END(fgk_guard)

/* It leaves the frame that it was called in, which objtool can't follow. */
STACK_FRAME_NON_STANDARD fgk_escape
SYM_FUNC_START(fgk_escape)
	mov %rdi, %rsp
	mov %rsi, %rax
	pop %rcx
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	RET
SYM_FUNC_END(fgk_escape)
