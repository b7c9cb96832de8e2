//! The allocation functions, and what they have to know before anything begins.
//!
//! A linker takes of an archive what somebody asks for. So whoever begins something asks for all of the functions: a program whose only calls come from
//! libraries would be left without them.

use super::throwing;
use mallow_family::{cxx, family};
use mallow_recorder::thread;
use mallow_recorder::watchers::{is_outside, watchers};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Function = unsafe extern "C" fn();

static FAMILY: [Function; 13] = [
    family::malloc,
    family::calloc,
    family::realloc,
    family::reallocarray,
    family::free,
    family::posix_memalign,
    family::memalign,
    family::aligned_alloc,
    family::valloc,
    family::elsewhere::pvalloc,
    family::elsewhere::cfree,
    family::elsewhere::free_sized,
    family::elsewhere::free_aligned_sized,
];

static OPERATORS: [Function; 20] = [
    cxx::_Znwm,
    cxx::_Znam,
    cxx::_ZnwmSt11align_val_t,
    cxx::_ZnamSt11align_val_t,
    cxx::_ZnwmRKSt9nothrow_t,
    cxx::_ZnamRKSt9nothrow_t,
    cxx::_ZnwmSt11align_val_tRKSt9nothrow_t,
    cxx::_ZnamSt11align_val_tRKSt9nothrow_t,
    cxx::_ZdlPv,
    cxx::_ZdaPv,
    cxx::_ZdlPvm,
    cxx::_ZdaPvm,
    cxx::_ZdlPvSt11align_val_t,
    cxx::_ZdaPvSt11align_val_t,
    cxx::_ZdlPvmSt11align_val_t,
    cxx::_ZdaPvmSt11align_val_t,
    cxx::_ZdlPvRKSt9nothrow_t,
    cxx::_ZdaPvRKSt9nothrow_t,
    cxx::_ZdlPvSt11align_val_tRKSt9nothrow_t,
    cxx::_ZdaPvSt11align_val_tRKSt9nothrow_t,
];

/// Whether the program runs under mallow. A program in C may come here before its first allocation, so it is found out.
pub(crate) fn is_recorded_from_outside() -> bool {
    black_box((&FAMILY, &OPERATORS, &throwing::START));
    watchers();
    is_outside()
}

/// Does what is mallow's own work, unrecorded; none when it panicked.
pub(crate) fn own_work<T>(work: impl FnOnce() -> T) -> Option<T> {
    let mut answer = None;
    thread::unrecorded(|| answer = caught(work));
    answer
}

/// Does something that may lead to a panic of ours, which does not leave it.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
