//! Region markers for allocation tests in Rust.
//!
//! A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts. The
//! functions that do the work exist only while mallow runs the program; they are looked up once, and without them
//! a marker costs one compare, so that it may stay in a program that ships.
//!
//! ```
//! fn encode() {}
//!
//! mallow_markers::ops(1000);
//! mallow_markers::measure("encode", || {
//!     for _ in 0..1000 {
//!         encode();
//!     }
//! });
//! ```
//!
//! No marker allocates while mallow watches. Where mallow cannot be, in static programs and on other systems than
//! Unix, every marker does nothing.

#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

use std::ffi::{c_char, c_void, CStr};
use std::sync::OnceLock;

/// The longest name in bytes; what follows is cut off.
pub const NAME_BYTES_MAX: usize = 127;

/// Keeps a value from the optimiser, which may otherwise remove an allocation that is only freed again.
pub use std::hint::black_box as keep;

/// Begins one run of the region `name`, which ends when the guard is dropped.
///
/// A block belongs to the run in which it was born, whichever thread allocates it. Names have at most
/// [`NAME_BYTES_MAX`] bytes and end at the first zero byte.
#[must_use = "the region ends when the guard is dropped"]
pub fn region(name: &str) -> Region {
    let name = Name::of(name);
    if let Some(functions) = functions() {
        (functions.begin)(name.as_ptr());
    }
    Region { name }
}

/// A run of a region that has begun. Dropping it ends the run: waits until what other threads are still freeing is
/// gone, milliseconds as a rule, and reports what is left.
#[derive(Debug)]
pub struct Region {
    name: Name,
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(functions) = functions() {
            (functions.end)(self.name.as_ptr());
        }
    }
}

/// Runs `body` as often as mallow asks for, each time as one run of the region `name`: `MALLOW_WARMUP` times for
/// warming up and `MALLOW_RUNS` times for counting. Without these variables, as without mallow, once.
///
/// What `body` returns is dropped inside the region. Every run has to do the same work; what all of them share is
/// prepared before the call.
pub fn measure<T>(name: &str, mut body: impl FnMut() -> T) {
    let runs = count("MALLOW_WARMUP").unwrap_or(0) + count("MALLOW_RUNS").unwrap_or(1);
    for _ in 0..runs {
        let region = region(name);
        drop(keep(body()));
        drop(region);
    }
}

/// Says how many operations one run consists of, so that figures are printed per operation as well.
pub fn ops(ops_per_run: u64) {
    if let Some(functions) = functions() {
        (functions.ops)(ops_per_run);
    }
}

/// How many operations a run should do: the number in `MALLOW_OPS`, which mallow sets when it derives the figure
/// per operation from runs of different length, else `usual`.
pub fn ops_wanted(usual: u64) -> u64 {
    count("MALLOW_OPS").unwrap_or(usual)
}

/// Waits, in the middle of a region, until the blocks and descriptors that it holds stand still. The end of a
/// region does it by itself.
pub fn quiesce() {
    if let Some(functions) = functions() {
        (functions.quiesce)();
    }
}

/// Returns whether mallow watches this program.
pub fn is_watching() -> bool {
    functions().is_some()
}

/// A name as C wants it, on the stack.
#[derive(Debug)]
struct Name([u8; NAME_BYTES_MAX + 1]);

impl Name {
    fn of(text: &str) -> Name {
        let mut bytes = [0; NAME_BYTES_MAX + 1];
        let length = text.len().min(NAME_BYTES_MAX);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Name(bytes)
    }

    fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}

/// The number in an environment variable, if it is one below one million. `std::env::var` would allocate.
fn count(variable: &str) -> Option<u64> {
    let name = Name::of(variable);
    // SAFETY: the name ends with a zero byte. The program must not change its environment from another thread
    // meanwhile, which is what every function that reads it asks for.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, so it points to a text that ends with a zero byte and lives as long as the environment is
    // not changed; the borrow ends in this function.
    let digits = unsafe { CStr::from_ptr(value) }.to_bytes();
    let is_number = matches!(digits.len(), 1..=6) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// What mallow brings into a program.
struct Functions {
    begin: extern "C" fn(*const c_char),
    end: extern "C" fn(*const c_char),
    ops: extern "C" fn(u64),
    quiesce: extern "C" fn(),
}

fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    FUNCTIONS.get_or_init(look_up).as_ref()
}

#[cfg(unix)]
fn look_up() -> Option<Functions> {
    let begin = address(b"mallow_region_begin\0")?;
    let end = address(b"mallow_region_end\0")?;
    let ops = address(b"mallow_ops\0")?;
    let quiesce = address(b"mallow_quiesce\0")?;
    // SAFETY: mallow_region_begin takes a C string and returns nothing, which is what the type says; the C header
    // of mallow declares it so.
    let begin = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(begin) };
    // SAFETY: mallow_region_end is declared like mallow_region_begin.
    let end = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(end) };
    // SAFETY: mallow_ops takes a uint64_t and returns nothing.
    let ops = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(ops) };
    // SAFETY: mallow_quiesce takes and returns nothing.
    let quiesce = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(quiesce) };
    Some(Functions { begin, end, ops, quiesce })
}

#[cfg(not(unix))]
fn look_up() -> Option<Functions> {
    None
}

/// Where a symbol is, `None` when no library of this process has it. The name ends with a zero byte.
#[cfg(unix)]
fn address(name: &'static [u8]) -> Option<*mut c_void> {
    // SAFETY: null is RTLD_DEFAULT on Linux, and the name ends with a zero byte, as all callers write it.
    let address = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr().cast()) };
    (!address.is_null()).then_some(address)
}

extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    #[cfg(unix)]
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_zero_byte_and_are_cut() {
        let short = Name::of("encode");
        assert_eq!(&short.0[..7], b"encode\0");
        let long = Name::of(&"n".repeat(500));
        assert_eq!(long.0[NAME_BYTES_MAX - 1], b'n');
        assert_eq!(long.0[NAME_BYTES_MAX], 0);
    }

    #[test]
    fn without_mallow_markers_do_nothing_and_a_body_runs_once() {
        assert!(!is_watching());
        ops(10);
        quiesce();
        let mut runs = 0;
        measure("once", || runs += 1);
        assert_eq!(runs, 1);
        assert_eq!(ops_wanted(77), 77);
    }

    #[test]
    fn variables_count_only_when_they_are_numbers() {
        for (name, value, expected) in [
            ("MALLOW_TEST_A", "12", Some(12)),
            ("MALLOW_TEST_B", "", None),
            ("MALLOW_TEST_C", "-1", None),
            ("MALLOW_TEST_D", "1000000", None),
            ("MALLOW_TEST_E", "999999", Some(999_999)),
        ] {
            std::env::set_var(name, value);
            assert_eq!(count(name), expected, "{value}");
        }
        assert_eq!(count("MALLOW_TEST_UNSET"), None);
    }
}
