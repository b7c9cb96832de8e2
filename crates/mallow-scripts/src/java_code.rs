//! Methods of Java, as a JVM's own structures have them: their names, and the line of a bytecode.
//!
//! Names come as in a class file, `java/util/List`; the table of lines is that of HotSpot: pairs of steps in one byte where they are small, else
//! behind 255 as two numbers of one to five bytes, until a byte of 0 (`constMethod.hpp`, `compressedStream.hpp`).

use crate::code_log::Code;
use mallow_base::{Frame, Language};

/// In place of an index of bytecode: the frame is at none.
const NO_BYTECODE: u32 = mallow_wire::script::PLACE_MAX;
/// Since this version no byte of a number is 0.
const NO_ZEROS_SINCE: u32 = 20;

/// A method as it is shown: its class in front of its name, the package's folder in front of its file, and its lines as pairs of four bytes each.
pub(crate) fn method(logged: Code) -> Code {
    let version = logged.version >> 8;
    let (class, table) = class_and_table(&logged.lines).unwrap_or_default();
    let class = String::from_utf8_lossy(class).into_owned();
    let folder = class.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    let file = if logged.file.is_empty() { String::new() } else { folder + &logged.file };
    let name = format!("{}.{}", class_name(&class), logged.name);
    let mut lines = lines(table, u32::from(version >= NO_ZEROS_SINCE));
    // Of two that begin at the same place the first counts.
    lines.sort_by_key(|[bytecode, _]| *bytecode);
    lines.dedup_by_key(|[bytecode, _]| *bytecode);
    let lines = lines.into_iter().flatten().flat_map(u32::to_le_bytes).collect();
    Code { file, name, lines, ..logged }
}

/// The class's name, with its length in front of it, and the rest.
fn class_and_table(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Classes that the JVM makes for itself have a number or an address in their names, which is another one in the next run.
fn class_name(class: &str) -> String {
    let class = class.split_once("+0x").map_or(class, |(class, _)| class);
    let digits = |text: &str| text.trim_end_matches(|last: char| last.is_ascii_digit()).to_owned();
    let made = ["$$Lambda$", "GeneratedMethodAccessor", "GeneratedConstructorAccessor"];
    let class = match made.iter().any(|made| class.contains(made)) {
        true => digits(class).trim_end_matches('$').to_owned(),
        false => class.to_owned(),
    };
    class.replace('/', ".")
}

/// The entries of a table: bytecodes, each with the line that begins there.
fn lines(table: &[u8], lowest: u32) -> Vec<[u32; 2]> {
    const END: u8 = 0;
    const LONG: u8 = 255;
    let (mut bytecode, mut line) = (0i64, 0i64);
    let (mut bytes, mut found) = (table.iter().copied(), Vec::new());
    while let Some(step) = bytes.next().filter(|step| *step != END) {
        if step == LONG {
            let steps = (signed(&mut bytes, lowest), signed(&mut bytes, lowest));
            let (Some(bytecodes), Some(lines)) = steps else { break };
            bytecode += bytecodes;
            line += lines;
        } else {
            bytecode += i64::from(step >> 3);
            line += i64::from(step & 7);
        }
        if let (Ok(bytecode), Ok(line)) = (u32::try_from(bytecode), u32::try_from(line)) {
            found.push([bytecode, line]);
        }
    }
    found
}

/// A number of one to five bytes, the lowest first, its sign in the lowest bit.
fn signed(bytes: &mut impl Iterator<Item = u8>, lowest: u32) -> Option<i64> {
    const MORE: u8 = 192;
    const LENGTH_MAX: u32 = 5;
    let mut sum = 0u32;
    for index in 0..LENGTH_MAX {
        let byte = bytes.next()?;
        sum = sum.wrapping_add(u32::from(byte).wrapping_sub(lowest).wrapping_shl(6 * index));
        if byte < MORE {
            break;
        }
    }
    let half = i64::from(sum >> 1);
    Some(if sum & 1 != 0 { -half - 1 } else { half })
}

/// The line of a bytecode: that of the entry which begins last at or before it, as the JVM itself has it.
pub(crate) fn line(lines: &[u8], bytecode: u32) -> Option<u32> {
    let (entries, _) = lines.as_chunks::<8>();
    let word = |entry: &[u8; 8], at: usize| entry[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    let behind = entries.partition_point(|entry| word(entry, 0) <= bytecode);
    let last = entries.get(behind.checked_sub(1)?).filter(|_| bytecode != NO_BYTECODE)?;
    Some(word(last, 4))
}

/// A method of Java that was read where the JVM keeps it.
#[derive(Clone, Debug)]
pub struct JavaMethod(Code);

impl JavaMethod {
    /// A method as the JVM of this version has it: its class's name as in a class file, its own, its file's, which may be empty, and its table of lines with what may
    /// follow it.
    pub fn new(version: u32, class: &[u8], name: &[u8], file: &[u8], table: &[u8]) -> JavaMethod {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = [&(class.len() as u64).to_le_bytes()[..], class, table].concat();
        let (file, name) = (text(file), text(name));
        JavaMethod(method(Code { version: version << 8, file, name, lines, ..Code::default() }))
    }

    /// The frame at a bytecode, by its index; none for no bytecode.
    pub fn frame(&self, bytecode: Option<u32>) -> Frame {
        let JavaMethod(code) = self;
        Frame {
            function: code.name.clone(),
            file: Some(code.file.clone()).filter(|file| !file.is_empty()),
            line: line(&code.lines, bytecode.unwrap_or(NO_BYTECODE)).filter(|line| *line > 0),
            language: Language::Java,
            ..Frame::default()
        }
    }

    /// About how many bytes of memory this takes.
    pub fn held_bytes(&self) -> usize {
        size_of::<JavaMethod>() + self.0.file.len() + self.0.name.len() + self.0.lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(class: &str, version: u32, table: &[u8]) -> Code {
        JavaMethod::new(version, class.as_bytes(), b"add", b"Cart.java", table).0
    }

    #[test]
    fn names_are_those_of_the_source_and_the_same_in_each_run() {
        let of = |class: &str| logged(class, 17, &[]);
        assert_eq!(
            (of("shop/Cart$Item").name, of("shop/Cart").file),
            ("shop.Cart$Item.add".into(), "shop/Cart.java".into())
        );
        assert_eq!((of("Cart").name, of("Cart").file), ("Cart.add".into(), "Cart.java".into()));
        for class in ["a/B$$Lambda$14+0x0000000800c03000", "a/B$$Lambda+0x00007f1234", "a/B$$Lambda$7"] {
            assert_eq!(of(class).name, "a.B$$Lambda.add");
        }
        assert_eq!(
            of("jdk/internal/reflect/GeneratedMethodAccessor12").name,
            "jdk.internal.reflect.GeneratedMethodAccessor.add"
        );
        assert_eq!(method(Code { lines: vec![200; 8], ..Code::default() }).name, ".");
    }

    #[test]
    fn a_bytecode_has_the_line_of_the_entry_that_begins_last_before_it() {
        // 0: line 12; 5: line 14; 6: line 11 (back by 3, which is 5 with its sign); 150: line 511.
        for (version, lowest) in [(17, 0), (21, 1)] {
            let long = [255, 2 + lowest, 5 + lowest];
            // 288 = 192 + 96 and 1000 = 232 + 64 * 12, with the lowest byte added to each of them.
            let far = match lowest {
                0 => vec![255, 224, 1, 232, 12],
                _ => vec![255, 225, 2, 233, 13],
            };
            let table = [&[255, lowest, 24 + lowest][..], &[5 << 3 | 2], &long, &far, &[0, 9, 9]].concat();
            let code = logged("Cart", version, &table);
            let at = |bytecode| line(&code.lines, bytecode);
            assert_eq!(
                [0, 4, 5, 6, 149, 150, 60_000].map(at),
                [12, 12, 14, 11, 11, 511, 511].map(Some),
                "{version}"
            );
            assert_eq!(at(NO_BYTECODE), None);
            let method = JavaMethod::new(version, b"a/Cart", b"add", b"Cart.java", &table);
            let frame = method.frame(Some(5));
            let shown = (frame.function.as_str(), frame.file.as_deref(), frame.line);
            assert_eq!(shown, ("a.Cart.add", Some("a/Cart.java"), Some(14)));
            assert_eq!((method.frame(None).line, frame.language), (None, Language::Java));
        }
        // Entries that go back, and two at one place.
        let table = [5 << 3 | 7, 1, 255, 3, 4];
        let code = logged("Cart", 17, &table);
        assert_eq!(
            [2, 3, 4, 5, 9].map(|at| line(&code.lines, at)),
            [None, Some(10), Some(10), Some(7), Some(7)]
        );
        assert_eq!(line(&[], 0), None);
        assert_eq!(lines(&[255, 255], 0), Vec::<[u32; 2]>::new(), "damaged");
    }
}
