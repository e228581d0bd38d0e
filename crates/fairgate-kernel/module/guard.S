/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * fgk_escape(saved) returns 0 from the function that was called when the stack pointer was `saved`, from any
 * depth below it: the return address is just below. Registers that functions preserve are lost, as guarded()
 * in qdisc.h tells the compiler.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>

	.text
/* It leaves the frame that it was called in, which objtool can't follow. */
STACK_FRAME_NON_STANDARD fgk_escape
SYM_FUNC_START(fgk_escape)
	lea -8(%rdi), %rsp
	xor %eax, %eax
	RET
SYM_FUNC_END(fgk_escape)
