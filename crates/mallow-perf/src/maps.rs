//! What is mapped in a process, as the kernel's text has it.

use crate::Mapped;

/// The code of files that is mapped in a process.
pub(crate) fn maps_of(pid: u32) -> Vec<Mapped> {
    mapped(&std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default())
}

/// The same from the kernel's text.
pub(crate) fn mapped(text: &str) -> Vec<Mapped> {
    text.lines().filter_map(map_line).collect()
}

/// `55d0-55d1 r-xp 00001000 fe:01 1234   /usr/bin/a b`; none if it is no code of a file.
fn map_line(line: &str) -> Option<Mapped> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let mut words = rest.splitn(5, ' ');
    let (flags, offset) = (words.next()?, words.next()?);
    let path = words.nth(2)?.trim_start();
    let number = |text| u64::from_str_radix(text, 16).ok();
    (flags.as_bytes().get(2) == Some(&b'x') && !path.is_empty()).then_some(())?;
    Some(Mapped { start: number(start)?, end: number(end)?, offset: number(offset)?, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_read_from_maps() {
        let line = "55d0000-55d1000 r-xp 00001000 fe:01 1234                       /usr/bin/a b";
        let map = map_line(line).unwrap();
        assert_eq!(
            (map.start, map.end, map.offset, map.path.as_str()),
            (0x55d_0000, 0x55d_1000, 0x1000, "/usr/bin/a b")
        );
        assert!(map_line(&line.replace("r-xp", "r--p")).is_none());
        assert!(map_line("7f0-7f1 rwxp 00000000 00:00 0 ").is_none());
        let vdso =
            map_line("7ffc1000-7ffc3000 r-xp 00000000 00:00 0                          [vdso]").unwrap();
        assert_eq!(vdso.path, "[vdso]");
    }
}
