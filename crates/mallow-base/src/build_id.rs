//! The build id of an ELF file.

/// The build id in a section of notes that linkers call `.note.gnu.build-id`: that of its first note, which is the only one there. To go through all notes
/// of all sections of a file can take for ever.
pub fn gnu_build_id(section: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"GNU\0";
    let word = |at: usize| Some(u32::from_le_bytes(*section.get(at..)?.first_chunk()?) as usize);
    let (name_bytes, bytes) = (word(0)?, word(4)?);
    let is_gnu = name_bytes == NAME.len() && section.get(12..16)? == NAME;
    section.get(16..16usize.checked_add(bytes)?).filter(|_| is_gnu)
}

#[cfg(test)]
mod tests {
    use super::gnu_build_id;

    #[test]
    fn the_first_note_is_read_and_nothing_beyond_it() {
        let note = [&[4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0], &b"GNU\0"[..], &[7, 8, 9, 0]].concat();
        assert_eq!(gnu_build_id(&note), Some(&[7, 8, 9][..]));
        assert!((0..19).all(|end| gnu_build_id(&note[..end]).is_none()));
        let others = [&[4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0], &b"GNU\0"[..]].concat();
        assert_eq!(gnu_build_id(&others), None);
    }
}
