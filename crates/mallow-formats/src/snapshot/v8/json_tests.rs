//! The stream in pieces of all sizes.

use super::*;

/// Returns some bytes at a time, and then fails like a truncated archive.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (piece, rest) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
        buffer[..piece.len()].copy_from_slice(piece);
        self.0 = rest;
        Ok(piece.len())
    }
}

fn records(text: &str, piece: usize) -> (Vec<[u64; 2]>, Result<(), Stop>) {
    let mut taken = Vec::new();
    let result = Json::new(Pieces(text.as_bytes(), piece)).records(2, |record: &[u64; 2]| {
        taken.push(*record);
        if record[0] == 99 { Err("no 99") } else { Ok(()) }
    });
    (taken, result)
}

#[test]
fn numbers_come_in_records() {
    let text = " [1,2\n,30 , 4\r\n\t,\n 0005,9999999999999999999]";
    let expected = vec![[1, 2], [30, 4], [5, 9_999_999_999_999_999_999]];
    for piece in [1, 2, 3, 31, 1000] {
        let (taken, result) = records(text, piece);
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(taken, expected);
        // What is cut off is dropped, since the number before the cut may continue after it.
        for end in 0..text.len() {
            let (taken, result) = records(&text[..end], piece);
            assert!(matches!(result, Err(Stop::End)), "{result:?}");
            assert_eq!(taken, expected[..taken.len()]);
        }
    }
    assert!(records("[ ]", 1).1.is_ok());
}

#[test]
fn numbers_of_other_shapes_are_errors_with_their_place() {
    let cases = [
        ("[1,-2]", "byte 3: a whole number that is not negative was expected"),
        ("[1,2.5]", "byte 4: a comma or `]` was expected"),
        ("[1,2,3]", "byte 7: a record of 2 numbers was expected"),
        ("[1,10000000000000000000]", "byte 3: a number of at most 19 digits was expected"),
        ("{}", "byte 0: an array of numbers was expected"),
        ("[99,1]", "byte 6: no 99 was expected"),
    ];
    for (text, expected) in cases {
        let Err(Stop::Error(error)) = records(text, 1).1 else { panic!("{text}") };
        assert_eq!(error.to_string(), format!("this V8 heap snapshot makes no sense at {expected}"));
    }
    let digits = "1".repeat(2 * BLOCK_BYTES);
    assert!(matches!(records(&format!("[{digits}]"), 1 << 20).1, Err(Stop::Error(_))));
}

#[test]
fn strings_are_decoded() {
    let cases = [
        (r#""""#, "", 0),
        (r#""a\"\\\/\n\u0041\u00E9""#, "a\"\\/\nA\u{e9}", 7),
        ("\"\u{e9}\u{20ac}\u{1f600}\"", "\u{e9}\u{20ac}\u{1f600}", 4),
        (r#""\uD83D\uDE00!\uF600""#, "\u{1f600}!\u{f600}", 4),
        (r#""\uD83D-\uDE00\uD83D\u0041""#, "\u{fffd}-\u{fffd}\u{fffd}A", 5),
    ];
    for (text, expected, units) in cases {
        for piece in [1, 100] {
            let mut out = Vec::new();
            let counted = Json::new(Pieces(text.as_bytes(), piece)).string(1000, &mut out).unwrap();
            assert_eq!((String::from_utf8_lossy(&out).as_ref(), counted), (expected, units));
        }
    }
    let long = format!("\"{}\"", "ab".repeat(BLOCK_BYTES));
    let mut out = Vec::new();
    assert_eq!(Json::new(long.as_bytes()).string(7, &mut out).unwrap(), 2 * BLOCK_BYTES);
    assert_eq!(out, b"abababa");
}

#[test]
fn values_of_any_kind_are_passed() {
    let text = r#" {"a":[1,"]}\"",{}],"b":null} , "x\\" ,-1.5e3, [[[]]] ]"#;
    let mut json = Json::new(Pieces(text.as_bytes(), 1));
    let mut seen = Vec::new();
    loop {
        let mut value = Vec::new();
        json.value(1000, &mut value).unwrap();
        seen.push(String::from_utf8(value).unwrap().trim().to_owned());
        if json.next(b']').unwrap() == Next::Nothing {
            break;
        }
    }
    assert_eq!(seen, [r#"{"a":[1,"]}\"",{}],"b":null}"#, r#""x\\""#, "-1.5e3", "[[[]]]"]);
    let deep = "[".repeat(1 << 20);
    assert!(matches!(Json::new(deep.as_bytes()).value(0, &mut Vec::new()), Err(Stop::End)));
}
