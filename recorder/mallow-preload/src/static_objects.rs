//! What a loader would say, in a static executable, where none is: which objects there are. And what the compiler takes from libc, for as long as
//! nobody has made that ready.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use mallow_recorder::real::Real;
use mallow_recorder::{cfi, objects};
use mallow_wire::static_start::{MappedObject, StaticStart};

static START: AtomicPtr<StaticStart> = AtomicPtr::new(core::ptr::null_mut());

/// Notes what mallow says of the executable.
pub(crate) fn note(start: &'static StaticStart) {
    START.store(core::ptr::from_ref(start).cast_mut(), Ordering::Release);
    note_own();
    let executable = objects::find(start.entry as usize).map(|object| object.start);
    if let Some(first) = executable.filter(|_| start.frame_count > 0) {
        // SAFETY: mallow put the table there.
        unsafe { cfi::note_table(first, start.frames as usize, start.frame_count as usize) };
    }
}

/// The executable and this library; none where a loader knows them.
fn objects() -> Option<&'static [MappedObject; 2]> {
    // SAFETY: null, or what mallow mapped for the process's life.
    unsafe { START.load(Ordering::Acquire).as_ref() }.map(|start| &start.objects)
}

type Visit = unsafe extern "C" fn(*const MappedObject, usize, *mut c_void) -> c_int;

/// In the place of the loader's function of this name, for this library.
///
/// # Safety
/// As `dl_iterate_phdr`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int {
    for object in objects().into_iter().flatten() {
        // SAFETY: by contract; the objects are mapped.
        let answer = unsafe { visit(object, size_of::<MappedObject>(), data) };
        if answer != 0 {
            return answer;
        }
    }
    0
}

static ITERATE: Real = Real::named(c"dl_iterate_phdr");
static FIND_OBJECT: Real = Real::named(c"_dl_find_object");

/// `dl_iterate_phdr` of the program: with this library behind its own objects, because unwinders look there for whoever has a frame on
/// a stack.
///
/// # Safety
/// As `dl_iterate_phdr`.
pub(crate) unsafe extern "C" fn dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int {
    type Iterate = unsafe extern "C" fn(Visit, *mut c_void) -> c_int;
    let real = ITERATE.address();
    if real != 0 {
        // SAFETY: libc's type for the symbol.
        let answer = unsafe { transmute::<usize, Iterate>(real)(visit, data) };
        if answer != 0 {
            return answer;
        }
    }
    match objects() {
        // SAFETY: by contract.
        Some([_, library]) => unsafe { visit(library, size_of::<MappedObject>(), data) },
        None => 0,
    }
}

/// `struct dl_find_object`.
#[repr(C)]
pub(crate) struct FoundObject {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    eh_frame_header: usize,
    reserved: [u64; 7],
}

/// Where this library lies: its first byte, behind its last one, and its table of unwind information.
static OWN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

fn note_own() {
    let Some(object) = objects::find(note_own as *const () as usize) else { return };
    let words = [object.start, object.end, object.eh_frame_header];
    OWN.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
}

/// `_dl_find_object` of the program, which GCC's unwinder asks: it knows of this library too.
///
/// # Safety
/// As `_dl_find_object`.
pub(crate) unsafe extern "C" fn dl_find_object(address: usize, found: *mut FoundObject) -> c_int {
    type Find = unsafe extern "C" fn(usize, *mut FoundObject) -> c_int;
    let [start, end, eh_frame_header] = OWN.each_ref().map(|place| place.load(Ordering::Relaxed));
    if (start..end).contains(&address) {
        // SAFETY: by contract there is room.
        unsafe {
            found.write(FoundObject { flags: 0, start, end, link_map: 0, eh_frame_header, reserved: [0; 7] })
        };
        return 0;
    }
    match FIND_OBJECT.address() {
        0 => -1,
        // SAFETY: libc's type for the symbol.
        real => unsafe { transmute::<usize, Find>(real)(address, found) },
    }
}

/// Exports what the compiler takes from libc, for a program in which nobody has made libc ready: its own versions wait for the processor to be
/// looked at. mallow leads to these when it maps the library into a static executable.
macro_rules! memory {
    ($($name:ident: $($line:literal)*;)*) => {
        $(
            #[doc = concat!("As the function of C without `mallow_`: `", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As that one.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(".cfi_startproc", $($line,)* ".cfi_endproc")
            }
        )*
    };
}

memory! {
    mallow_memcpy: "mov rax, rdi" "mov rcx, rdx" "rep movsb" "ret";
    mallow_memset: "mov r8, rdi" "mov eax, esi" "mov rcx, rdx" "rep stosb" "mov rax, r8" "ret";
    mallow_bcmp: "xor eax, eax" "mov rcx, rdx" "cmp eax, eax" "repe cmpsb" "setne al" "ret";
    mallow_strlen: "xor eax, eax" "2: cmp byte ptr [rdi + rax], 0" "je 3f" "inc rax" "jmp 2b" "3: ret";
    // Backwards where the target begins within what is to be moved.
    mallow_memmove: "mov rax, rdi" "mov rcx, rdx" "mov r8, rdi" "sub r8, rsi" "cmp r8, rdx" "jb 2f" "rep movsb" "ret"
        "2: lea rdi, [rdi + rdx - 1]" "lea rsi, [rsi + rdx - 1]" "std" "rep movsb" "cld" "ret";
}
