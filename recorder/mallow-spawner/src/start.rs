//! Starts a command without copying this process: the child runs in our memory, on a stack of its own, until it has become the command.

use crate::request::Request;
use crate::sys;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicIsize, Ordering};

/// What a process that cannot run a program ends with, as shells have it.
const CANNOT_RUN_STATUS: usize = 127;
/// Bytes of the child's stack: it makes four system calls.
const STACK_BYTES: usize = 16 << 10;

/// The child's stack. There is never more than one child in our memory.
#[repr(align(16))]
struct Stack(#[expect(dead_code, reason = "the child writes into it")] [u8; STACK_BYTES]);
static mut STACK: Stack = Stack([0; STACK_BYTES]);

/// Why the child could not become the command, as the kernel says it; 0 when it could.
static REFUSED: AtomicIsize = AtomicIsize::new(0);

/// What the child needs.
struct Child<'a> {
    request: &'a Request,
    /// The blocked signals, and what is done at SIGCHLD.
    inherited: (u64, sys::ChildSignal),
}

/// The child's id, negative when there can be none, and what the kernel refused, 0 if nothing.
pub(crate) fn start(request: &Request, inherited: (u64, sys::ChildSignal)) -> (isize, isize) {
    REFUSED.store(0, Ordering::Relaxed);
    let child = Child { request, inherited };
    let top = (&raw mut STACK).wrapping_add(1) as *mut u8;
    // SAFETY: the stack is aligned and nobody else's, and `child` outlives the child's time in our memory, as we stand still meanwhile.
    let id = unsafe { clone_onto(top, &raw const child as *const u8) };
    let refused = if id < 0 { id } else { REFUSED.load(Ordering::Relaxed) };
    (id, refused)
}

/// Makes a child that shares our memory and has this one stand still until it runs another program or ends (`CLONE_VM`, `CLONE_VFORK`).
/// It begins in `become_command` on the stack below `top`; we go on with its id.
///
/// # Safety
/// `top` is aligned to 16 bytes with a stack below it that nobody uses; `child` is a [`Child`].
#[unsafe(naked)]
unsafe extern "C" fn clone_onto(top: *mut u8, child: *const u8) -> isize {
    naked_asm!(
        "mov r9, rsi",           // the kernel preserves it on both sides
        "mov rsi, rdi",          // the stack
        "mov rdi, {flags}",
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "mov eax, {clone}",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "xor ebp, ebp",
        "mov rdi, r9",
        "call {become_command}",
        "ud2",
        flags = const CLONE_VM | CLONE_VFORK | SIGCHLD,
        clone = const sys::CLONE,
        become_command = sym become_command,
    )
}

const CLONE_VM: usize = 0x100;
const CLONE_VFORK: usize = 0x4000;
const SIGCHLD: usize = 17;

/// In the child.
unsafe extern "C" fn become_command(child: *const Child<'_>) -> ! {
    // SAFETY: it is that of `start`, which stands still.
    let child = unsafe { &*child };
    sys::end_with_parent();
    sys::set_signals(child.inherited.0);
    sys::set_child_signal(child.inherited.1);
    let Request { path, words, environment } = *child.request;
    // SAFETY: a request's texts end with zero bytes, its lists with null pointers.
    let refused = unsafe { sys::execve(path, words, environment) };
    REFUSED.store(refused, Ordering::Relaxed);
    sys::exit(CANNOT_RUN_STATUS)
}
