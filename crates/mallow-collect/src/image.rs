//! Whether a process still runs the program that registered.
//!
//! A program that takes its place registers in turn, if the recorder is in it. If it is not, nothing more comes from the process, and its memory is
//! another program's. That it has become another one is seen in its mappings, where the shared memory is missing. They are read when the recorder has
//! noted what the process is about to become. A system call of the program's own is not noted: then they are read when nothing but this process is waited
//! for, and when so much memory came that it is looked at.

use crate::mapping::{FileId, Noted};
use crate::moment::Moment;
use mallow_base::printable;
use mallow_launch::started::{has_library, mappings_of, name_of};
use mallow_wire::shared::Header;
use rustix::fs::{major, minor};
use std::io;
use std::time::{Duration, Instant};

/// The program that registered.
#[derive(Debug)]
pub(crate) struct Image {
    /// The process as we see it.
    pid: u32,
    /// As it sees itself.
    own_pid: u32,
    registered: Moment,
    /// The file of its shared memory.
    file: FileId,
    replaced: Option<Replaced>,
    /// When it was looked at last without a note.
    looked_at: Instant,
}

/// Another program in its place.
#[derive(Debug)]
struct Replaced {
    since: Instant,
    may_register: bool,
    /// Its name, where nobody has noted what it is.
    unnoted: Option<String>,
}

/// How often a process that is waited for is looked at.
const WAITED_INTERVAL: Duration = Duration::from_secs(1);
/// How long a program may take to load the recorder, which is the first that its loader does, when nothing else is waited for.
const LOADED_MAX: Duration = Duration::from_secs(1);
/// And until it registers, which it does before its own code begins; a forked child does with its first event.
const REGISTERED_MAX: Duration = Duration::from_secs(3);

impl Image {
    /// The program of a process that registers, and is that number of all.
    pub(crate) fn new(pid: u32, index: u32, header: &Header, file: FileId) -> Image {
        let (looked_at, registered) = (Instant::now(), Moment::of_registration(header, index));
        Image { pid, own_pid: header.pid, registered, file, replaced: None, looked_at }
    }

    /// Looks whether it was replaced. `noted` is what the process has noted last that has neither failed nor registered; `is_waited_for`, whether the
    /// recording would be over without it.
    pub(crate) fn look<'a>(&mut self, noted: impl FnOnce(u32) -> Option<&'a Noted>, is_waited_for: bool) {
        if self.replaced.is_some() {
            return;
        }
        match noted(self.own_pid).filter(|noted| noted.at.follows(self.registered)) {
            Some(noted) if self.is_gone(noted) => {
                let may_register = noted.may_register();
                self.replaced = Some(Replaced { since: Instant::now(), may_register, unnoted: None });
            }
            None if is_waited_for && self.looked_at.elapsed() > WAITED_INTERVAL => {
                self.looked_at = Instant::now();
                if mappings_of(self.pid).is_ok_and(|maps| is_missing(&maps, self.file)) {
                    self.replace();
                }
            }
            _ => {}
        }
    }

    /// It was seen that another program runs there.
    pub(crate) fn replace(&mut self) {
        let unnoted = Some(name_of(self.pid));
        self.replaced.get_or_insert(Replaced { since: Instant::now(), may_register: true, unnoted });
    }

    /// Returns what has to be reported of another program, if nobody has noted which it is.
    pub(crate) fn sentence(&self) -> Option<String> {
        let name = self.replaced.as_ref()?.unnoted.as_ref()?;
        Some(format!(
            "process {} was not recorded from then on: by a system call of its own it became another program ({})",
            self.pid,
            printable(name)
        ))
    }

    /// Returns whether another program runs in the process.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.is_some()
    }

    /// Returns whether another program runs there that will not register.
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.replaced.as_ref().is_some_and(|it| !it.may_register || !is_awaited(self.pid, it.since))
    }

    fn is_gone(&self, noted: &Noted) -> bool {
        match mappings_of(self.pid) {
            Ok(maps) => is_missing(&maps, self.file),
            // A program with other rights than ours. One that gave up its own is still the same.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                is_name_of(name_of(self.pid).as_bytes(), noted.path.as_bytes())
            }
            Err(_) => false,
        }
    }
}

/// Returns whether a process that was seen at a time may still register.
pub(crate) fn is_awaited(pid: u32, since: Instant) -> bool {
    let awaited = since.elapsed();
    awaited < LOADED_MAX || awaited < REGISTERED_MAX && mappings_of(pid).is_ok_and(|maps| has_library(&maps))
}

/// Returns whether a process has mappings, and none of them is of a file. One that ends has none at all.
pub(crate) fn is_missing(maps: &[u8], file: FileId) -> bool {
    let device = format!("{:02x}:{:02x}", major(file.device), minor(file.device));
    let inode = file.inode.to_string();
    let is_of_file = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(3);
        fields.next() == Some(device.as_bytes()) && fields.next() == Some(inode.as_bytes())
    };
    !maps.is_empty() && !maps.split(|byte| *byte == b'\n').any(is_of_file)
}

/// Returns whether the kernel calls a program at `path` so: the first 15 bytes of the file's name.
fn is_name_of(name: &[u8], path: &[u8]) -> bool {
    const NAME_BYTES: usize = 15;
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !name.is_empty() && file.get(..NAME_BYTES).unwrap_or(file) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
        55e1d5c00000-55e1d5c02000 r--p 00000000 08:01 917 /usr/bin/app\n\
        7f2b40000000-7f2b40021000 rw-s 00000000 00:01 1034 /memfd:mallow (deleted)\n\
        7ffd5c000000-7ffd5c021000 rw-p 00000000 00:00 0 [stack]\n";

    #[test]
    fn a_file_is_missing_where_no_mapping_is_of_its_device_and_inode() {
        let file = |minor, inode| FileId { device: rustix::fs::makedev(0, minor), inode };
        assert!(!is_missing(MAPS, file(1, 1034)));
        assert!(is_missing(MAPS, file(2, 1034)));
        assert!(is_missing(MAPS, file(1, 1035)));
        assert!(is_missing(MAPS, file(1, 103)));
        // A process that ends.
        assert!(!is_missing(b"", file(1, 1034)));
    }

    #[test]
    fn a_programs_name_is_the_end_of_its_path() {
        assert!(is_name_of(b"ping", b"/usr/bin/ping"));
        assert!(is_name_of(b"a-name-of-many-", b"/opt/a-name-of-many-letters"));
        assert!(!is_name_of(b"bash", b"/usr/bin/ping"));
        assert!(!is_name_of(b"a-name", b"/opt/a-name-of-many-letters"));
        assert!(!is_name_of(b"", b"/usr/bin/"));
    }
}
