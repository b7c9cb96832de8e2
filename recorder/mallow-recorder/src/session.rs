//! Parses the environment variables that name the collector's session.

use crate::sys;
use core::arch::{asm, global_asm};
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering};
use mallow_wire::handshake::SESSION_VARIABLE;
use mallow_wire::shared::*;

global_asm!(".weak environ");

/// A list of strings that ends with a null pointer, as an environment is.
pub type Strings = *const *const c_char;

/// The session of the collector, from the environment.
pub(crate) struct Session {
    /// A reference into the environment: there is no room for a copy on a small stack.
    pub(crate) name: &'static [u8],
    /// The file at which only the user who records may connect; empty for none.
    pub(crate) path: &'static [u8],
    pub(crate) token: [u8; 16],
    pub(crate) mode: u32,
    pub(crate) features: u32,
    pub(crate) begin: Begin,
}

/// When recording begins; all of it is 0 for at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Begin {
    /// In nanoseconds of the monotonic clock.
    monotonic_ns: u64,
    /// The number of the time namespace of that clock.
    clock: u64,
    /// In nanoseconds since 1970, which are the same in each namespace. Somebody may set that clock.
    real_ns: u64,
}

impl Begin {
    fn find() -> Begin {
        let mut parts = variable(BEGIN_VARIABLE).unwrap_or_default().splitn(3, |byte| *byte == b':');
        let [monotonic_ns, clock, real_ns] = [(); 3].map(|()| parts.next().and_then(decimal).unwrap_or(0));
        Begin { monotonic_ns, clock, real_ns }
    }

    /// Returns whether it is yet to come for a process that starts now, by the monotonic clock of this time namespace.
    pub(crate) fn is_to_come(self, now_ns: u64, clock: u64) -> bool {
        match clock == self.clock {
            true => now_ns < self.monotonic_ns,
            false => self.monotonic_ns > 0 && sys::real_ns() < self.real_ns,
        }
    }
}

impl Session {
    pub(crate) fn find() -> Option<Session> {
        let value = variable(SESSION_VARIABLE)?;
        let mut parts = value.splitn(3, |byte| *byte == b':');
        let (name, token) = (parts.next()?, parts.next()?);
        let path = parts.next().unwrap_or_default();
        let (mode, features) = match variable(MODE_VARIABLE) {
            Some(b"stat") => (MODE_STAT, 0),
            Some(b"check") => (MODE_RECORD, FEATURE_MARKS | FEATURE_DESCRIPTORS),
            Some(b"soak") => (MODE_RECORD, FEATURE_HELPER_THREAD),
            _ => (MODE_RECORD, 0),
        };
        let is_counted = mode == MODE_STAT || variable(RUNTIMES_VARIABLE).is_some();
        let features = if is_counted { features } else { features | FEATURE_RUNTIMES };
        let is_python = mode == MODE_RECORD && variable(PYTHON_OBJECTS_VARIABLE).is_some();
        let features = if is_python { features | FEATURE_PYTHON_OBJECTS } else { features };
        let has_mappings = mode == MODE_RECORD && variable(MAPPINGS_VARIABLE).is_some();
        let features = if has_mappings { features | FEATURE_MAPPINGS } else { features };
        let mut session = Session { name, path, token: [0; 16], mode, features, begin: Begin::find() };
        if token.len() != 32 {
            return None;
        }
        for (i, digit) in token.iter().enumerate() {
            session.token[i / 2] = session.token[i / 2] << 4 | (*digit as char).to_digit(16)? as u8;
        }
        Some(session)
    }
}

/// A number in decimal digits.
fn decimal(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from((*digit as char).to_digit(10)?))
    })
}

/// A variable of the environment; none while libc has not set `environ` yet, or when it is not there.
pub fn variable(name: &str) -> Option<&'static [u8]> {
    let environ = environ()?;
    let mut entry = environ;
    loop {
        // SAFETY: the environment is a null-terminated list of strings. Another thread may change it, as for
        // `getenv`.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: as above.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        if let Some(value) = bytes.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
        // SAFETY: as above.
        entry = unsafe { entry.add(1) };
    }
}

/// Takes the recorder's library, the first of the preloaded ones, out of this process's environment, and the variable with it if it names no other. For who can
/// start no program any more that could use it, also by functions of libc that give the environment on unasked.
///
/// Another thread may read it meanwhile, as for `setenv`.
pub fn take_library_out(is_ours: impl Fn(&[u8]) -> bool) {
    const PRELOADS: &[u8] = b"LD_PRELOAD=";
    let Some(mut entry) = environ().map(<*const _>::cast_mut) else { return };
    // SAFETY: as in `variable`; list and strings lie in memory that the program may write to, as `putenv` and `unsetenv` have it.
    unsafe {
        while !(*entry).is_null() {
            let list = CStr::from_ptr(*entry).to_bytes().strip_prefix(PRELOADS);
            let first = list.and_then(|list| list.split(|byte| matches!(byte, b':' | b' ')).next());
            let (Some(list), Some(first)) = (list, first.filter(|first| is_ours(first))) else {
                entry = entry.add(1);
                continue;
            };
            let rest = list.get(first.len() + 1..).unwrap_or_default();
            if rest.is_empty() {
                let mut place = entry;
                while !(*place).is_null() {
                    place.write(*place.add(1));
                    place = place.add(1);
                }
                continue;
            }
            let place = (*entry).add(PRELOADS.len()).cast_mut();
            core::ptr::copy(rest.as_ptr().cast(), place, rest.len());
            place.add(rest.len()).write(0);
            entry = entry.add(1);
        }
    }
}

/// The environment as the loader handed it to us; null when it did not.
static AT_START: AtomicPtr<*const c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Stores the environment that the loader passes to the objects that it initialises. It is used while libc has not
/// set its own variable: a library that is initialised before all others, as ours is, precedes libc too.
pub fn note_environment(list: Strings) {
    AT_START.store(list.cast_mut(), Ordering::Relaxed);
}

/// The environment; none while libc has not set it.
pub fn environ() -> Option<*const *const c_char> {
    // SAFETY: libc's variable, which no static executable lets us find.
    let environ = unsafe { environ_variable().as_ref() }.copied().unwrap_or_default();
    let environ = if environ.is_null() { AT_START.load(Ordering::Relaxed) } else { environ };
    (!environ.is_null()).then_some(environ.cast_const())
}

/// The environment that libc gives to programs that it starts; null after `clearenv`.
pub fn environ_of_libc() -> Strings {
    // SAFETY: as in `environ`.
    let environ = unsafe { environ_variable().as_ref() };
    environ.map_or_else(|| AT_START.load(Ordering::Relaxed), |list| *list).cast_const()
}

/// Returns libc's variable; null if no object defines it.
fn environ_variable() -> *mut *mut *const c_char {
    let variable: *mut *mut *const c_char;
    // SAFETY: reads the global offset table, so that an executable's own copy of the variable is found; 0
    // when nobody defines it.
    unsafe {
        asm!("mov {}, qword ptr [rip + environ@GOTPCREL]", out(reg) variable, options(nostack, preserves_flags, pure, readonly));
    }
    variable
}
