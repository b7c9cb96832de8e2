//! What the program takes from the kernel itself: `mmap`, `mremap` and `munmap`, recorded where the session wants that.
//!
//! Otherwise each function jumps on to the real one, which is looked up before the program's own code runs: later, a caller may hold
//! locks of its own that the look-up waits for. What libc maps for itself, such as stacks of threads, does not come here.
//!
//! A function that records has a frame: it is innermost on the stack of what was mapped, and its name says that it was. Mappings of files have another
//! name than memory.

use core::arch::{global_asm, naked_asm};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use mallow_recorder::mappings::{Framed, mapping, remapping, unmapping};
use mallow_recorder::real::Real;
use mallow_recorder::{Caller, bootstrap};
use mallow_wire::shared::FEATURE_MAPPINGS;

const MMAP: usize = 0;
const MUNMAP: usize = 1;
const MREMAP: usize = 2;

static REALS: [Real; 3] = [Real::named(c"mmap"), Real::named(c"munmap"), Real::named(c"mremap")];
/// Where calls of each function go; 0 before that is known.
static TARGETS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// Whether they are recorded.
static IS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Finds the real functions, and out whether to record their calls. Before the program's own code runs.
pub(crate) fn install() {
    for (index, target) in TARGETS.iter().enumerate() {
        target.store(find(index), Ordering::Relaxed);
    }
    IS_RECORDED.store(bootstrap::watches(FEATURE_MAPPINGS) == Some(true), Ordering::Release);
}

/// Returns where calls of a function go, for those that come before [`install`].
extern "C" fn find(index: usize) -> usize {
    let known = REALS.get(index).map_or(0, Real::address);
    if known != 0 { known } else { direct as *const () as usize }
}

/// In place of a function that this libc does not have: always fails.
unsafe extern "C" fn direct() -> isize {
    -1
}

/// Calls `$work` from a frame with the six arguments, where that call stands, and the frame.
macro_rules! framed {
    ($work:literal) => {
        concat!(
            "push rbp\n.cfi_def_cfa_offset 16\n.cfi_offset rbp, -16\n",
            "mov rbp, rsp\n.cfi_def_cfa_register rbp\n",
            "sub rsp, 48\nand rsp, -16\n",
            "mov qword ptr [rsp], rdi\nmov qword ptr [rsp + 8], rsi\n",
            "mov qword ptr [rsp + 16], rdx\nmov qword ptr [rsp + 24], rcx\n",
            "mov qword ptr [rsp + 32], r8\nmov qword ptr [rsp + 40], r9\n",
            // Where the call will put its return address.
            "mov rdi, rsp\nlea rsi, [rsp - 8]\nmov rdx, rbp\n",
            "call {",
            $work,
            "}\n",
            "leave\n.cfi_def_cfa rsp, 8\n.cfi_restore rbp\n",
            "ret"
        )
    };
}

/// Exports a function that jumps to its target, the entry `$index` of [`TARGETS`]; while calls are recorded, to the label 3 of `$recorded`. All
/// of up to six arguments.
macro_rules! mapper {
    ($name:ident, $index:ident, [$($recorded:expr),*] $(, $work:ident)?) => {
        #[doc = concat!("`", stringify!($name), "`, passed on or recorded.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "cmp byte ptr [rip + {recorded}], 0",
                "jne 3f",
                "mov rax, qword ptr [rip + {targets} + 8 * {index}]",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2: push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "push r9", ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
                "mov edi, {index}",
                "call {find}",
                "add rsp, 8", ".cfi_adjust_cfa_offset -8",
                "pop r9", ".cfi_adjust_cfa_offset -8",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                "3:",
                $($recorded,)*
                ".cfi_endproc",
                recorded = sym IS_RECORDED, targets = sym TARGETS, find = sym find, index = const $index,
                $(work = sym $work)?
            )
        }
    };
}

// `MAP_ANONYMOUS` is 32. The inner label is for the other name of the same function, whose frame has this one's name too.
mapper!(mmap, MMAP, [".Lrecorded_mmap:", "test cl, 32", "jz mmap_file", framed!("work")], work_mmap);
mapper!(mmap64, MMAP, ["jmp .Lrecorded_mmap"]);
mapper!(munmap, MUNMAP, [framed!("work")], work_munmap);
mapper!(mremap, MREMAP, [framed!("work")], work_mremap);

global_asm!(
    ".pushsection .text.mmap_file, \"ax\", @progbits",
    ".hidden mmap_file",
    ".globl mmap_file",
    ".type mmap_file, @function",
    "mmap_file:",
    ".cfi_startproc",
    framed!("work"),
    ".cfi_endproc",
    ".size mmap_file, . - mmap_file",
    ".popsection",
    work = sym work_mmap
);

/// The frame that a function's work is called from.
///
/// # Safety
/// The two are what the frame passed: where the call of the work stands, and where the frame begins.
unsafe fn framed(sp: usize, bp: usize) -> Framed {
    // SAFETY: by contract the caller's frame pointer and its return address are there.
    let entry = Caller { sp: bp.wrapping_add(8), bp: unsafe { *(bp as *const usize) } };
    Framed { entry, own: Caller { sp, bp } }
}

unsafe extern "C" fn work_mmap(arguments: &[usize; 6], sp: usize, bp: usize) -> usize {
    type Mmap = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> usize;
    let [start, size, protection, flags, fd, offset] = *arguments;
    let real = TARGETS[MMAP].load(Ordering::Relaxed);
    // SAFETY: the real function, which takes its arguments in these registers.
    let call = move || unsafe { transmute::<usize, Mmap>(real)(start, size, protection, flags, fd, offset) };
    // SAFETY: the frame passed its own registers.
    unsafe { mapping(framed(sp, bp), size, protection as i32 == 0, call) }
}

unsafe extern "C" fn work_munmap(arguments: &[usize; 6], sp: usize, bp: usize) -> i32 {
    type Munmap = unsafe extern "C" fn(usize, usize) -> i32;
    let [start, size, ..] = *arguments;
    let real = TARGETS[MUNMAP].load(Ordering::Relaxed);
    // SAFETY: as in `work_mmap`.
    let call = move || unsafe { transmute::<usize, Munmap>(real)(start, size) };
    // SAFETY: as above.
    unsafe { unmapping(framed(sp, bp), start, size, call) }
}

unsafe extern "C" fn work_mremap(arguments: &[usize; 6], sp: usize, bp: usize) -> usize {
    /// `MREMAP_DONTUNMAP`.
    const STAYS: usize = 4;
    type Mremap = unsafe extern "C" fn(usize, usize, usize, usize, usize) -> usize;
    let [start, size_old, size, flags, start_new, _] = *arguments;
    let real = TARGETS[MREMAP].load(Ordering::Relaxed);
    // SAFETY: as in `work_mmap`.
    let call = move || unsafe { transmute::<usize, Mremap>(real)(start, size_old, size, flags, start_new) };
    let stays = size_old == 0 || flags & STAYS != 0;
    // SAFETY: as above.
    unsafe { remapping(framed(sp, bp), (start, size_old, stays), size, call) }
}
