//! Room for the library's thread-local storage in that of a static executable.
//!
//! libc gives every thread a block that ends at the thread's control block, and copies into it what the executable's program headers
//! describe. Code finds its variables by fixed distances from the control block downwards, so room can be added in front:
//!
//! ```text
//!        TP - below                 TP - roundup(program's)        TP
//!        │ the library's │ nothing │ the program's                 │ control block
//! ```
//!
//! (*ELF Handling For Thread-Local Storage*, variant II.)

use crate::InjectError;

/// Thread-local storage as a program header describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) svma: u64,
    pub(crate) file_bytes: u64,
    pub(crate) memory_bytes: u64,
    /// A power of two.
    pub(crate) align: u64,
}

/// Where everything lies when both share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// How far below the control block the library's storage begins.
    pub(crate) below: u64,
    /// Bytes in front of the program's own initial values.
    pub(crate) in_front: u64,
    /// Of the whole.
    pub(crate) align: u64,
}

impl Layout {
    /// The layout for a program's storage and a library's, of which bytes and alignment are known.
    pub(crate) fn of(program: Described, (bytes, align): (u64, u64)) -> Result<Layout, InjectError> {
        /// No program has more.
        const BYTES_MAX: u64 = 1 << 30;
        let own_align = program.align.max(1);
        let is_sound = own_align.is_power_of_two()
            && own_align <= BYTES_MAX
            && program.svma.is_multiple_of(own_align)
            && program.memory_bytes <= BYTES_MAX
            && program.file_bytes <= program.memory_bytes;
        if !is_sound {
            return Err(InjectError::Damaged);
        }
        let own = program.memory_bytes.next_multiple_of(own_align);
        let align = own_align.max(align);
        let below = (own + bytes).next_multiple_of(align);
        Ok(Layout { below, in_front: below - own, align })
    }

    /// What describes the whole, with its initial values at `svma`.
    pub(crate) fn described(&self, program: Described, svma: u64) -> Described {
        Described {
            svma,
            file_bytes: self.in_front + program.file_bytes,
            memory_bytes: self.in_front + program.memory_bytes,
            align: self.align,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far below the control block libc lays out the whole, by what it is told.
    fn laid_out(described: Described) -> u64 {
        described.memory_bytes.next_multiple_of(described.align)
    }

    #[test]
    fn what_the_program_has_stays_where_its_code_looks_for_it() {
        for (memory_bytes, file_bytes, align) in
            [(0, 0, 1), (8, 8, 8), (17, 4, 8), (100, 0, 64), (4, 4, 4), (1, 1, 1), (4097, 1, 4096)]
        {
            let program = Described { svma: 4096 * 16, file_bytes, memory_bytes, align };
            for library in [(8, 8), (24, 16), (1, 1)] {
                let layout = Layout::of(program, library).unwrap();
                let whole = layout.described(program, 0);
                assert_eq!(laid_out(whole), layout.below, "{program:?} {library:?}");
                // The program's part begins where it began before.
                assert_eq!(layout.below - layout.in_front, memory_bytes.next_multiple_of(align));
                assert!(layout.in_front >= library.0 && layout.below.is_multiple_of(library.1));
            }
        }
    }

    #[test]
    fn what_no_linker_writes_is_refused() {
        let sound = Described { svma: 64, file_bytes: 8, memory_bytes: 8, align: 8 };
        assert!(Layout::of(sound, (8, 8)).is_ok());
        for damaged in [
            Described { align: 3, ..sound },
            Described { svma: 4, ..sound },
            Described { file_bytes: 9, ..sound },
            Described { memory_bytes: u64::MAX, ..sound },
            Described { align: 1 << 63, svma: 0, ..sound },
        ] {
            assert!(Layout::of(damaged, (8, 8)).is_err(), "{damaged:?}");
        }
    }
}
