//! The line of an instruction, from the table that a piece of code carries.
//!
//! Python has three formats, each as CPython's own notes describe it (`Objects/lnotab_notes.txt`, `Objects/locations.md`): up to 3.9 pairs of steps in bytes and
//! lines; in 3.10 pairs of which each is a range, with ranges that have no line; from 3.11 on entries of
//! varying length. A table that ends early gives the lines that stand in front of the damage.
//!
//! Ruby has one: a list of lines, and an index which tells for each place how many entries of the list begin at or before it. The index keeps
//! that number for the first 54 places by itself, nine of seven bits to a word, and for the others in blocks of 512 places: the
//! number in front of the block, then those of its words of 64 places within it, nine bits each, then a bit for each place at which an entry begins.

/// The line of an instruction, which is given by its number (two bytes each); none where the table says that there is none, or nothing.
pub(crate) fn line(version: u32, lines: &[u8], first_line: u32, instruction: u32) -> Option<u32> {
    let first_line = i64::from(first_line);
    let line = match version & 0xff {
        ..=9 => steps(lines, first_line, instruction.saturating_mul(2)),
        10 => ranges(lines, first_line, instruction.saturating_mul(2)),
        _ => entries(lines, first_line, instruction),
    };
    line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0)
}

fn steps(lines: &[u8], first_line: i64, at: u32) -> Option<i64> {
    let (mut line, mut begin) = (first_line, 0u32);
    for step in lines.chunks_exact(2) {
        begin += u32::from(step[0]);
        if begin > at {
            break;
        }
        line += i64::from(step[1] as i8);
    }
    Some(line)
}

fn ranges(lines: &[u8], first_line: i64, at: u32) -> Option<i64> {
    const NO_LINE: i8 = -128;
    let (mut line, mut end) = (first_line, 0u32);
    for step in lines.chunks_exact(2) {
        end += u32::from(step[0]);
        let has_line = step[1] as i8 != NO_LINE;
        if has_line {
            line += i64::from(step[1] as i8);
        }
        if at < end {
            return has_line.then_some(line);
        }
    }
    None
}

fn entries(lines: &[u8], first_line: i64, at: u32) -> Option<i64> {
    const NO_LINE: u8 = 15;
    const LONG: u8 = 14;
    const NO_COLUMNS: u8 = 13;
    let (mut line, mut end) = (first_line, 0u32);
    let mut rest = lines;
    while let Some((&head, mut behind)) = rest.split_first() {
        end += u32::from(head & 7) + 1;
        let code = head >> 3 & 15;
        let mut has_line = true;
        match code {
            NO_LINE => has_line = false,
            LONG | NO_COLUMNS => line += signed(&mut behind)?,
            10..=12 => line += i64::from(code - 10),
            _ => {}
        }
        if at < end {
            return has_line.then_some(line);
        }
        rest = behind_columns(behind);
    }
    None
}

/// What follows the head's first number is columns; only heads have the high bit. Eight bytes at once: the table is read anew for each instruction.
fn behind_columns(bytes: &[u8]) -> &[u8] {
    const HEADS: u64 = 0x8080_8080_8080_8080;
    let mut rest = bytes;
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        let heads = u64::from_le_bytes(*eight) & HEADS;
        if heads != 0 {
            return &rest[heads.trailing_zeros() as usize / 8..];
        }
        rest = behind;
    }
    let head = rest.iter().position(|byte| byte & 0x80 != 0);
    &rest[head.unwrap_or(rest.len())..]
}

/// Six bits a byte, the lowest first; bit 6 says that more follow. The lowest bit is the sign.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let (mut value, mut shift) = (0i64, 0);
    loop {
        let (&byte, behind) = bytes.split_first()?;
        *bytes = behind;
        value |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(if value & 1 != 0 { -(value >> 1) } else { value >> 1 });
        }
        shift += 6;
        (shift < 60).then_some(())?;
    }
}

/// The line of a place in Ruby's code, whose table begins with the number of entries and that of places.
pub(crate) fn ruby_line(version: u32, lines: &[u8], place: u32) -> Option<u32> {
    // An entry is a line, and one or, from 3.1 on, two numbers that do not matter here.
    let entry_bytes = if version < 3 << 8 | 1 { 8 } else { 12 };
    let (counts, rest) = lines.split_at_checked(8)?;
    let count = u32::from_le_bytes(counts[..4].try_into().ok()?) as usize;
    let (entries, index) = rest.split_at_checked(count.checked_mul(entry_bytes)?)?;
    let before = if count == 1 { 1 } else { entries_up_to(index, place as usize)? };
    let entry = before.checked_sub(1)? * entry_bytes;
    let line = u32::from_le_bytes(entries.get(entry..entry + 4)?.try_into().ok()?);
    Some(line).filter(|line| *line > 0)
}

/// How many entries begin at or before a place.
fn entries_up_to(index: &[u8], place: usize) -> Option<usize> {
    const SINGLE: usize = 54;
    const BLOCK: usize = 512;
    const BLOCK_WORDS: usize = 10;
    let word = |at: usize| Some(u64::from_le_bytes(index.get(at * 8..at * 8 + 8)?.try_into().ok()?));
    if place < SINGLE {
        return Some((word(place / 9)? >> (place % 9 * 7) & 0x7f) as usize);
    }
    let block = SINGLE / 9 + (place - SINGLE) / BLOCK * BLOCK_WORDS;
    let within = (place - SINGLE) % BLOCK;
    let in_front = word(block)? as u32 as usize;
    let of_words = match within / 64 {
        0 => 0,
        at => (word(block + 1)? >> ((at - 1) * 9) & 0x1ff) as usize,
    };
    let begun = word(block + 2 + within / 64)? << (63 - within % 64);
    Some(in_front + of_words + begun.count_ones() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions of Ruby, and how many bytes they have in an entry behind its line.
    const RUBIES: [(u32, usize); 2] = [(2 << 8 | 7, 4), (3 << 8 | 1, 8)];

    /// A table as Ruby makes it, for entries at these places with these lines.
    fn ruby_table(entries: &[(usize, u32)], places: usize, more: usize) -> Vec<u8> {
        let up_to = |place: usize| entries.iter().filter(|(at, _)| *at <= place).count() as u64;
        let mut words = Vec::new();
        for word in 0..if places < 54 { places.div_ceil(9) } else { 6 } {
            words.push((0..9).map(|at| up_to(word * 9 + at) << (at * 7)).sum());
        }
        for start in (54..places.max(54)).step_by(512) {
            let begins = |place: usize| entries.iter().any(|(at, _)| *at == place);
            let bits =
                |word: usize| (0..64).map(|at| u64::from(begins(start + word * 64 + at)) << at).sum::<u64>();
            let of_words =
                (1..8).map(|word| (up_to(start + word * 64 - 1) - up_to(start - 1)) << ((word - 1) * 9));
            words.push(up_to(start - 1));
            words.push(of_words.sum());
            words.extend((0..8).map(bits));
        }
        let mut table = [(entries.len() as u32).to_le_bytes(), (places as u32).to_le_bytes()].concat();
        entries.iter().for_each(|(_, line)| table.extend([&line.to_le_bytes()[..], &vec![0; more]].concat()));
        words.iter().for_each(|word: &u64| table.extend(word.to_le_bytes()));
        table
    }

    #[test]
    fn a_place_of_ruby_has_the_line_of_the_last_entry_that_begins_at_or_before_it() {
        let cases = [1, 8, 9, 53, 54, 55, 565, 566, 567, 3000].into_iter();
        let cases = cases.flat_map(|places| [1, 2, 7, 60].map(|step| (places, step)));
        for (places, step) in cases {
            let entries: Vec<_> = (0..places).step_by(step).map(|at| (at, 10 + at as u32 * 3)).collect();
            for (version, more) in RUBIES {
                let table = ruby_table(&entries, places, more);
                for place in 0..places {
                    let expected = entries.iter().rev().find(|(at, _)| *at <= place).map(|(_, line)| *line);
                    let line = ruby_line(version, &table, place as u32);
                    assert_eq!(line, expected, "{version} {places} {step} {place}");
                }
                if entries.len() > 1 {
                    assert_eq!(ruby_line(version, &table, places as u32 + 600), None, "behind the index");
                }
            }
        }
        for (version, _) in RUBIES {
            assert_eq!(ruby_line(version, &[1, 0, 0, 0, 9, 0, 0, 0], 0), None);
            assert_eq!(ruby_line(version, &[], 0), None);
        }
    }

    /// What each interpreter says of `def f(a):\n    b = (\n        a)\n    return [b,\n        a]`, and the table that it made.
    #[test]
    fn lines_are_those_that_the_interpreter_gives() {
        let of = |minor: u32, table: &[u8], count: u32| {
            (0..count).map(|at| line(3 << 8 | minor, table, 1, at)).collect::<Vec<_>>()
        };
        let lines = [1, 3, 2, 4, 5, 4, 4].map(Some);
        for minor in [8, 9] {
            assert_eq!(of(minor, &[0, 2, 2, 255, 2, 2, 2, 1, 2, 255], 6), lines[1..]);
        }
        assert_eq!(of(10, &[2, 2, 2, 255, 2, 2, 2, 1, 4, 255], 7), [&lines[1..], &[None]].concat());
        let table =
            [128, 0, 224, 8, 9, 240, 3, 0, 5, 6, 224, 12, 13, 216, 8, 9, 240, 3, 1, 12, 11, 240, 0, 1, 5, 11];
        for minor in [11, 12, 13] {
            assert_eq!(of(minor, &table, 7), lines);
        }
    }

    #[test]
    fn instructions_without_a_line_have_none() {
        assert_eq!(line(3 << 8 | 10, &[2, 2, 2, 0x80, 2, 1], 1, 1), None);
        assert_eq!(line(3 << 8 | 10, &[2, 2, 2, 0x80, 2, 1], 1, 2), Some(4));
        let table = [0x80 | 13 << 3, 6, 0x80 | 15 << 3 | 1, 0x80 | 13 << 3, 1];
        let lines = [0, 1, 2, 3].map(|at| line(3 << 8 | 12, &table, 1, at));
        assert_eq!(lines, [Some(4), None, None, Some(4)]);
    }

    /// Columns of every length, among them those that end with the table.
    #[test]
    fn the_next_head_is_found_behind_any_number_of_columns() {
        for columns in 0..40 {
            let mut table = vec![0x7f; columns];
            assert_eq!(behind_columns(&table), [0u8; 0], "{columns}");
            for more in 0..20 {
                table.truncate(columns);
                table.push(0x80 | more);
                table.extend(vec![more; more as usize]);
                assert_eq!(behind_columns(&table), &table[columns..], "{columns} {more}");
            }
        }
    }

    #[test]
    fn damaged_tables_end_quietly() {
        assert_eq!(line(3 << 8 | 11, &[0x80 | 14 << 3, 0x40], 1, 5), None);
        assert_eq!(line(3 << 8 | 9, &[1], 7, 0), Some(7));
        assert_eq!(line(3 << 8 | 10, &[], 7, 0), None);
        assert_eq!(line(3 << 8 | 12, &[0xff; 40], 7, 39), None);
    }
}
