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
//! A test of any framework counts what it does by [`count`], and asserts on it.
//!
//! No marker allocates while mallow watches. Where mallow cannot be, in static programs and on other systems than
//! Unix, every marker does nothing.

#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::fmt;
use std::marker::PhantomData;
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
    let runs = number_in("MALLOW_WARMUP").unwrap_or(0) + number_in("MALLOW_RUNS").unwrap_or(1);
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
    number_in("MALLOW_OPS").unwrap_or(usual)
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

/// What a thread allocated in a count: its own calls, exactly, whatever other threads did meanwhile.
///
/// The rules are those of `mallow record`: a `realloc` is an allocation of the new size and frees the old block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Successful allocating calls.
    pub allocations: u64,
    /// The bytes that they requested.
    pub bytes: u64,
    /// Those of the calls that were `realloc` of a live block.
    pub reallocations: u64,
    /// Blocks that the thread freed before it allocated again.
    pub temporary: u64,
    /// The highest sum of bytes of these blocks that lived at a time.
    pub peak_bytes: u64,
    /// Those of the blocks that live at the end, whichever thread frees blocks.
    pub remaining_blocks: u64,
    /// Their bytes.
    pub remaining_bytes: u64,
}

/// Why there are no counts. They are never 0 for want of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotCounted {
    /// The program does not run under mallow, or is static.
    NotUnderMallow,
    /// It does, and this was not counted: under `mallow stat`, which only adds up, or because not every call was recorded.
    NotRecorded,
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotCounted::NotUnderMallow => {
                "Allocations are not counted, because the program does not run under mallow. Run it with `mallow record -- PROGRAM` or \
                 `cargo mallow test`."
            }
            NotCounted::NotRecorded => {
                "Allocations were not counted: `mallow stat` counts whole programs only, and a thread whose calls were not all recorded has \
                 no exact count. Run the program with `mallow record -- PROGRAM`."
            }
        })
    }
}

impl std::error::Error for NotCounted {}

/// Runs `body` and counts what the calling thread allocates meanwhile. Returns what `body` returned, which is dropped after the count, and the
/// counts.
///
/// What other threads allocate is not counted, also if `body` started them; so tests that run side by side do not disturb each other. Counts
/// may lie within each other.
///
/// ```
/// let (text, counts) = mallow_markers::count(|| "mallow".repeat(100));
/// assert_eq!(text.len(), 600);
/// if let Ok(counts) = counts {
///     assert_eq!((counts.allocations, counts.remaining_bytes), (1, 600));
/// }
/// ```
///
/// A test that must not pass uncounted unwraps: the message says how to run it.
pub fn count<T>(body: impl FnOnce() -> T) -> (T, Result<Counts, NotCounted>) {
    let counting = Count::begin();
    let result = keep(body());
    (result, counting.end())
}

/// A count between two places of one thread, where no closure fits. One that is dropped ends, and its counts are lost.
#[derive(Debug)]
#[must_use = "what is counted is returned by end()"]
pub struct Count {
    is_open: bool,
    /// It belongs to the thread that began it.
    thread: PhantomData<*const ()>,
}

impl Count {
    /// Counts what the calling thread allocates from here on.
    pub fn begin() -> Count {
        if let Some(functions) = functions() {
            (functions.count_begin)();
        }
        Count { is_open: true, thread: PhantomData }
    }

    /// Ends it. Of several the last one that began has to end first.
    ///
    /// # Errors
    /// Why nothing was counted.
    pub fn end(mut self) -> Result<Counts, NotCounted> {
        self.close()
    }

    fn close(&mut self) -> Result<Counts, NotCounted> {
        self.is_open = false;
        let functions = functions().ok_or(NotCounted::NotUnderMallow)?;
        let mut values = [0; 7];
        if (functions.count_end)(values.as_mut_ptr(), values.len()) < values.len() {
            return Err(NotCounted::NotRecorded);
        }
        let [allocations, bytes, reallocations, temporary, peak_bytes, remaining_blocks, remaining_bytes] =
            values;
        Ok(Counts {
            allocations,
            bytes,
            reallocations,
            temporary,
            peak_bytes,
            remaining_blocks,
            remaining_bytes,
        })
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self.close();
        }
    }
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
fn number_in(variable: &str) -> Option<u64> {
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
    count_begin: extern "C" fn() -> c_int,
    count_end: extern "C" fn(*mut u64, usize) -> usize,
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
    let count_begin = address(b"mallow_count_begin\0")?;
    let count_end = address(b"mallow_count_end\0")?;
    // SAFETY: mallow_region_begin takes a C string and returns nothing, which is what the type says; the C header
    // of mallow declares it so.
    let begin = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(begin) };
    // SAFETY: mallow_region_end is declared like mallow_region_begin.
    let end = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(end) };
    // SAFETY: mallow_ops takes a uint64_t and returns nothing.
    let ops = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(ops) };
    // SAFETY: mallow_quiesce takes and returns nothing.
    let quiesce = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(quiesce) };
    // SAFETY: mallow_count_begin takes nothing and returns an int.
    let count_begin = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(count_begin) };
    // SAFETY: mallow_count_end takes room for values and how many there is room for, and returns how many it wrote.
    let count_end =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(*mut u64, usize) -> usize>(count_end) };
    Some(Functions { begin, end, ops, quiesce, count_begin, count_end })
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
            assert_eq!(number_in(name), expected, "{value}");
        }
        assert_eq!(number_in("MALLOW_TEST_UNSET"), None);
    }

    #[test]
    fn without_mallow_a_body_runs_and_nothing_is_counted() {
        let (result, counts) = count(|| vec![1, 2, 3]);
        assert_eq!((result, counts), (vec![1, 2, 3], Err(NotCounted::NotUnderMallow)));
        assert!(NotCounted::NotUnderMallow.to_string().contains("`mallow record -- PROGRAM`"));
    }
}
