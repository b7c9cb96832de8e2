//! Functions of a static executable that lead to ours of the same name.
//!
//! Where there is a loader, it puts our exported functions in front of libc's. In a static executable mallow finds libc's by their names, and
//! a jump is written over the beginning of each (`mallow_recorder::patches`). What ours call as the function behind them is
//! the rest of it (`mallow_recorder::named`).

use crate::{descriptors, exits, sandbox, start_main, starts, static_objects};
use mallow_recorder::named::is_called;
use mallow_wire::patches::NAME_BYTES;

/// Ours of a name; 0 when there is none.
pub(crate) fn by_name(name: &[u8; NAME_BYTES]) -> usize {
    let own: [(&[u8], *const ()); 12] = [
        (b"_exit", exits::exit_at_once as *const ()),
        (b"_Exit", exits::exit_at_once as *const ()),
        (b"prctl", sandbox::prctl as *const ()),
        (b"unshare", sandbox::unshare as *const ()),
        (b"setns", sandbox::setns as *const ()),
        (b"syscall", sandbox::syscall as *const ()),
        (b"execve", starts::execve as *const ()),
        (b"fexecve", starts::fexecve as *const ()),
        (b"execveat", starts::execveat as *const ()),
        (b"__libc_start_main", start_main::__libc_start_main as *const ()),
        (b"dl_iterate_phdr", static_objects::dl_iterate_phdr as *const ()),
        (b"_dl_find_object", static_objects::dl_find_object as *const ()),
    ];
    let found = own.iter().find(|(known, _)| is_called(name, known)).map(|row| row.1 as usize);
    found.unwrap_or_else(|| descriptors::by_name(name))
}
