//! `operator new` that failed, where these are the program's only operators, because libstdc++ is in the executable too and the linker took ours.
//!
//! What is needed for it are weak symbols: the header defines what throws, in C++ alone, and libstdc++ knows the handler, if the program sets one.

use core::arch::asm;
use core::mem::transmute;
use mallow_family::cxx;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut u8;
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
}

type Handler = Option<unsafe extern "C-unwind" fn()>;

/// The address of a weak symbol; 0 where the program does not have it. The directive stands beside the use, so that both are in one object file.
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads the global offset table.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, pure, readonly)
            );
        }
        address
    }};
}

/// Makes it known before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array.00101")]
pub(crate) static START: extern "C" fn() = start;

extern "C" fn start() {
    cxx::on_failure(new, new_aligned);
}

unsafe extern "C-unwind" fn new(size: usize) -> *mut u8 {
    // SAFETY: as `operator new`.
    until_there_is(|| unsafe { malloc(size) })
}

unsafe extern "C-unwind" fn new_aligned(size: usize, align: usize) -> *mut u8 {
    // SAFETY: as `operator new`.
    until_there_is(|| unsafe { aligned_alloc(align, size) })
}

/// Asks the program's handler for memory until there is some, and throws where it has no handler.
fn until_there_is(call: impl Fn() -> *mut u8) -> *mut u8 {
    loop {
        match handler() {
            // SAFETY: the program gave it for this.
            Some(handler) => unsafe { handler() },
            None => throw(),
        }
        let block = call();
        if !block.is_null() {
            return block;
        }
    }
}

/// `std::get_new_handler()`.
fn handler() -> Handler {
    match weak!("_ZSt15get_new_handlerv") {
        0 => None,
        // SAFETY: the symbol has this type in libstdc++.
        get => unsafe { transmute::<usize, unsafe extern "C" fn() -> Handler>(get)() },
    }
}

/// Throws `std::bad_alloc`. A program that includes the header nowhere in C++ is ended, as one is that throws without exceptions.
fn throw() -> ! {
    match weak!("mallow_inside_throw_bad_alloc") {
        0 => std::process::abort(),
        // SAFETY: as above.
        throw => unsafe { transmute::<usize, unsafe extern "C-unwind" fn() -> !>(throw)() },
    }
}
