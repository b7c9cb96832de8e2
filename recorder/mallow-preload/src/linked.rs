//! Functions of an allocator that is linked into the program, which lead here by patches (`mallow_recorder::patches`).
//!
//! A trampoline comes with r11 pointing at the function's description ([`Patched`]), everything else as the program left it. The two
//! commonest kinds of functions take the way of our exported ones. All others are called from a frame that is described to unwinders and holds nothing
//! of Rust's: an exception of `operator new` passes through it. The call that it leaves behind is recognised by the next one
//! (`mallow_recorder::thread`).

use crate::interposed;
use core::arch::naked_asm;
use core::mem::{MaybeUninit, transmute};
use mallow_recorder::bounds::at;
use mallow_recorder::calls::{
    allocating_counted, allocating_guarded, freeing_at_once, freeing_guarded, freeing_published, write_sized,
};
use mallow_recorder::patches::Hooks;
use mallow_recorder::shadow::{self, Heap, ShadowBlock};
use mallow_recorder::stat::{self, Rest};
use mallow_recorder::thread::{Entry, Guard, Recording, enter};
use mallow_recorder::trampolines::Patched;
use mallow_recorder::way_in::enter_counting;
use mallow_recorder::{Caller, loads, script};
use mallow_wire::event::{Kind, word0};
use mallow_wire::patches::{ARGUMENTS_MAX, Arguments, Call, NO_ARGUMENT};

const HOOKS: Hooks = Hooks { of_call: hook_for, of_name: interposed::by_name };

/// Patches what is there and has an allocator of its own, and has us told of what comes.
pub(crate) fn install() {
    loads::begin(HOOKS, patch_loaded);
}

/// In the place of the loader's function that does nothing. It may be called by code that knows which registers that leaves alone.
#[unsafe(naked)]
unsafe extern "C" fn patch_loaded() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
        "mov rbp, rsp", ".cfi_def_cfa_register rbp",
        "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10",
        "and rsp, -16",
        "call {changed}",
        "mov r10, qword ptr [rbp - 64]", "mov r9, qword ptr [rbp - 56]", "mov r8, qword ptr [rbp - 48]",
        "mov rdi, qword ptr [rbp - 40]", "mov rsi, qword ptr [rbp - 32]", "mov rdx, qword ptr [rbp - 24]",
        "mov rcx, qword ptr [rbp - 16]", "mov rax, qword ptr [rbp - 8]",
        "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        changed = sym changed
    )
}

extern "C" fn changed() {
    loads::changed(HOOKS);
}

fn hook_for(call: Call, arguments: Arguments) -> usize {
    let hook: unsafe extern "C" fn() = match (call, arguments) {
        (Call::Allocate, Arguments { size: 0, count: NO_ARGUMENT, record, .. }) => {
            match Kind::of(record.into()) {
                Some(Kind::Zeroed) => hook_allocate_zeroed,
                Some(Kind::Aligned) => hook_allocate_aligned,
                _ => hook_allocate,
            }
        }
        (Call::Free, Arguments { block: 0, .. }) => hook_free,
        _ => hook_any,
    };
    hook as usize
}

/// A hook for functions of up to three arguments: as an exported one's, with the description as one argument more.
macro_rules! short_hook {
    ($hook:ident, $work:path) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $hook() {
            naked_asm!(
                ".cfi_startproc",
                "mov rcx, rsp", "mov r8, rbp", "mov r9, r11",
                "test spl, 8",
                "jz 2f",
                "jmp {work}",
                "2: push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "and rsp, -16",
                "call {work}",
                "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

short_hook!(hook_allocate, work_allocate::<{ Kind::Alloc as u8 }>);
short_hook!(hook_allocate_zeroed, work_allocate::<{ Kind::Zeroed as u8 }>);
short_hook!(hook_allocate_aligned, work_allocate::<{ Kind::Aligned as u8 }>);
short_hook!(hook_free, work_free);

/// The kind of record of a block that is allocated.
#[inline(always)]
const fn kind_of(record: u8) -> Kind {
    match Kind::of(record as u64) {
        Some(kind) if kind.is_allocation() => kind,
        _ => Kind::Alloc,
    }
}

type ThreeArguments = unsafe extern "C" fn(usize, usize, usize) -> *mut u8;

/// A call of a patched function of up to three arguments, which are passed on.
macro_rules! passed_on {
    ($patched:ident, $a:expr, $b:ident, $c:ident) => {
        move || transmute::<usize, ThreeArguments>($patched.real)($a, $b, $c)
    };
}

unsafe extern "C" fn work_allocate<const KIND: u8>(
    size: usize,
    b: usize,
    c: usize,
    sp: usize,
    bp: usize,
    patched: &Patched,
) -> *mut u8 {
    // SAFETY: the hook passed its caller's registers.
    unsafe {
        match enter_counting(Caller { sp, bp }) {
            Some(counted) => {
                allocating_counted(counted, Heap::Operators, size, passed_on!(patched, size, b, c))
            }
            None => allocate_guarded::<KIND>(size, b, c, sp, bp, patched),
        }
    }
}

/// What [`work_allocate`] ends with: a jump, as the arguments are where they were.
#[inline(never)]
unsafe extern "C" fn allocate_guarded<const KIND: u8>(
    size: usize,
    b: usize,
    c: usize,
    sp: usize,
    bp: usize,
    patched: &Patched,
) -> *mut u8 {
    let caller = Caller { sp, bp };
    // SAFETY: as above.
    unsafe {
        allocating_guarded(Heap::Operators, kind_of(KIND), caller, size, passed_on!(patched, size, b, c))
    }
}

unsafe extern "C" fn work_free(block: *mut u8, b: usize, c: usize, sp: usize, bp: usize, patched: &Patched) {
    // SAFETY: as above.
    unsafe {
        let call = passed_on!(patched, block as usize, b, c);
        if block.is_null() {
            call();
            return;
        }
        let Some(counted) = enter_counting(Caller { sp, bp }) else {
            return free_guarded(block, b, c, sp, bp, patched);
        };
        match freeing_at_once(counted, Heap::Operators, block, move || _ = call()) {
            Ok(()) => {}
            Err((Rest::Publish, _)) => free_published(block, b, c, sp, bp, patched),
            Err(_) => free_guarded(block, b, c, sp, bp, patched),
        }
    }
}

/// As [`allocate_guarded`].
#[inline(never)]
unsafe extern "C" fn free_guarded(
    block: *mut u8,
    b: usize,
    c: usize,
    sp: usize,
    bp: usize,
    patched: &Patched,
) {
    script::freed(block as usize);
    // SAFETY: as above.
    unsafe {
        let call = passed_on!(patched, block as usize, b, c);
        freeing_guarded(Heap::Operators, Caller { sp, bp }, block, move || _ = call());
    }
}

/// As [`allocate_guarded`].
#[cold]
#[inline(never)]
unsafe extern "C" fn free_published(
    block: *mut u8,
    b: usize,
    c: usize,
    _sp: usize,
    _bp: usize,
    patched: &Patched,
) {
    // SAFETY: as above.
    unsafe {
        let call = passed_on!(patched, block as usize, b, c);
        freeing_published(move || _ = call());
    }
}

/// What `hook_any` keeps while the function runs.
#[repr(C)]
struct Frame {
    under_way: MaybeUninit<UnderWay>,
    arguments: [usize; ARGUMENTS_MAX],
    patched: *const Patched,
    bp: usize,
    return_address: usize,
}

/// A call between its beginning and its end.
struct UnderWay {
    entry: Entry,
    /// What was known of the block that is being replaced, when calls are only counted.
    before: Option<ShadowBlock>,
}

/// Bytes that the hook's instructions leave for it.
const UNDER_WAY_BYTES: usize = size_of::<UnderWay>();
const _: () = assert!(align_of::<UnderWay>() == 8);

#[unsafe(naked)]
unsafe extern "C" fn hook_any() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
        "mov rbp, rsp", ".cfi_def_cfa_register rbp",
        "push r11", "push r8", "push rcx", "push rdx", "push rsi", "push rdi",
        "sub rsp, {under_way}",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {begin}",
        "mov rdi, qword ptr [rbp - 48]",
        "mov rsi, qword ptr [rbp - 40]",
        "mov rdx, qword ptr [rbp - 32]",
        "mov rcx, qword ptr [rbp - 24]",
        "mov r8, qword ptr [rbp - 16]",
        "call rax",
        "lea rdi, [rbp - 48 - {under_way}]",
        "mov rsi, rax",
        "call {finish}",
        "leave", ".cfi_def_cfa rsp, 8", ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        begin = sym begin, finish = sym finish, under_way = const UNDER_WAY_BYTES
    )
}

impl Frame {
    fn caller(&self) -> Caller {
        Caller { sp: (&raw const self.return_address) as usize, bp: self.bp }
    }

    fn patched(&self) -> &Patched {
        // SAFETY: the trampoline's description, which stays mapped.
        unsafe { &*self.patched }
    }

    fn argument(&self, index: u8) -> usize {
        if index == NO_ARGUMENT { 0 } else { *at(&self.arguments, usize::from(index) % ARGUMENTS_MAX) }
    }

    /// The block that the function is given, or null.
    fn block(&self) -> *mut u8 {
        self.argument(self.patched().arguments.block) as *mut u8
    }

    /// How many bytes are asked for.
    fn size(&self) -> usize {
        let Arguments { size, count, .. } = self.patched().arguments;
        let count = if count == NO_ARGUMENT { 1 } else { self.argument(count) };
        count.saturating_mul(self.argument(size))
    }

    /// Returns whether a live block is replaced.
    fn replaces(&self) -> bool {
        let call = self.patched().call;
        matches!(call, Call::Reallocate | Call::ReallocateOrFree | Call::Resize) && !self.block().is_null()
    }
}

/// Before the function: gives its address.
unsafe extern "C" fn begin(frame: &mut Frame) -> usize {
    let block = frame.block();
    let frees = frame.patched().call == Call::Free;
    if frees && !block.is_null() {
        script::freed(block as usize);
    }
    // SAFETY: the hook's frame has its caller's registers.
    let entry = if frees && block.is_null() { Entry::Pass } else { unsafe { enter(frame.caller()) } };
    let mut before = None;
    match &entry {
        Entry::Record(guard) if frees => {
            guard.in_hook();
            guard.push([word0(Kind::Free, block as u64, 0)]);
            guard.in_real();
        }
        Entry::Record(guard) if frame.replaces() => {
            guard.in_hook();
            guard.push([word0(Kind::ReallocBegin, block as u64, u64::from(guard.is_nested()))]);
            guard.in_real();
        }
        Entry::Count(guard) if frees || frame.replaces() => {
            guard.in_hook();
            if frees {
                // SAFETY: the guard's thread.
                unsafe { stat::freed(guard.thread(), Heap::Operators, block as usize) };
            } else {
                before = shadow::set_aside(Heap::Operators, block as usize);
            }
            guard.in_real();
        }
        _ => {}
    }
    frame.under_way.write(UnderWay { entry, before });
    frame.patched().real
}

/// What came of a call.
enum CallResult {
    /// A block.
    Block(*mut u8),
    /// Nothing, and a block that it was given is gone.
    Freed,
    /// Nothing.
    Nothing,
}

impl Frame {
    fn result_of(&self, answer: usize) -> CallResult {
        let (block, is_null) = (answer as *mut u8, answer == 0);
        match self.patched().call {
            Call::AllocateInto if answer != 0 => CallResult::Nothing,
            // SAFETY: the function has answered that it wrote a block there.
            Call::AllocateInto => CallResult::Block(unsafe { *(self.argument(0) as *const *mut u8) }),
            Call::Resize if answer >= self.size() => CallResult::Block(self.block()),
            Call::Resize => CallResult::Nothing,
            Call::ReallocateOrFree if is_null && self.replaces() => CallResult::Freed,
            Call::Reallocate if is_null && self.replaces() && self.size() == 0 => CallResult::Freed,
            _ if is_null => CallResult::Nothing,
            _ => CallResult::Block(block),
        }
    }
}

/// Behind the function, of which `answer` came: gives that.
unsafe extern "C" fn finish(frame: &mut Frame, answer: usize) -> usize {
    // SAFETY: `begin` wrote it.
    let UnderWay { entry, before } = unsafe { frame.under_way.assume_init_read() };
    if matches!(frame.patched().call, Call::Free | Call::Inner) {
        return answer;
    }
    // SAFETY: the hook's frame has its caller's registers; the guards prove that the thread's state is ours to use.
    unsafe {
        match &entry {
            Entry::Record(guard) => {
                guard.in_hook();
                record(guard, frame, &frame.result_of(answer));
            }
            Entry::Count(guard) => {
                guard.in_hook();
                count(guard, frame, &frame.result_of(answer), before);
            }
            Entry::Pass => {}
        }
    }
    answer
}

unsafe fn record(guard: &Guard, frame: &Frame, came: &CallResult) {
    let (kind, block) = match (came, frame.replaces()) {
        (CallResult::Block(block), false) => (kind_of(frame.patched().arguments.record), *block),
        (CallResult::Block(block), true) => (Kind::ReallocDone, *block),
        (CallResult::Freed, _) => {
            guard.push([word0(Kind::ReallocFreed, 0, 0)]);
            return;
        }
        (CallResult::Nothing, false) => (Kind::Failed, core::ptr::null_mut()),
        (CallResult::Nothing, true) => (Kind::ReallocFailed, core::ptr::null_mut()),
    };
    // SAFETY: by contract.
    unsafe { write_sized(guard, kind, block, frame.size(), frame.caller()) };
}

unsafe fn count(guard: &Guard, frame: &Frame, came: &CallResult, before: Option<ShadowBlock>) {
    let thread = guard.thread();
    let replaced = frame.block() as usize;
    // SAFETY: by contract.
    unsafe {
        match (came, frame.replaces()) {
            (CallResult::Nothing, true) => {
                shadow::put_back(Heap::Operators, replaced, before);
                stat::failed(thread);
            }
            (CallResult::Nothing, false) => stat::failed(thread),
            (CallResult::Freed, _) => stat::freed_aside(thread, replaced, before),
            (CallResult::Block(block), replaces) => {
                if replaces {
                    stat::freed_aside(thread, replaced, before);
                    stat::reallocated(thread);
                }
                stat::allocated(thread, Heap::Operators, *block as usize, frame.size());
            }
        }
    }
}
