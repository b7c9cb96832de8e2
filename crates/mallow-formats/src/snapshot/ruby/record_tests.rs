//! Lines as Ruby writes them, and malformed ones.

use super::*;

fn parsed(line: &str) -> (Record<'_>, Vec<u64>) {
    let mut references = Vec::new();
    let record = Record::parse(line.as_bytes(), Some(&mut references)).unwrap();
    (record, references)
}

#[test]
fn a_traced_object() {
    let (record, references) = parsed(
        r#"{"address":"0x7f10", "type":"OBJECT", "class":"0x7f38", "ivars":3, "references":["0x1", "0x7FFFffff0000"], "file":"a.rb", "line":12, "method":"new", "generation":9, "memsize":40, "flags":{"wb_protected":true, "shape":7, "old":null}}"#,
    );
    assert_eq!(references, [1, 0x7fff_ffff_0000]);
    assert_eq!(
        record,
        Record {
            address: Some(0x7f10),
            kind: b"OBJECT",
            class: Some(0x7f38),
            memsize: 40,
            generation: Some(9),
            file: Some(b"a.rb"),
            line: 12,
            ..Record::default()
        }
    );
}

#[test]
fn a_string_a_class_a_root_and_a_shape() {
    let (string, _) = parsed(
        r#"{"address":"0x8", "type":"STRING", "class":"0x7f38", "embedded":true, "bytesize":5, "value":"a\"\\b\u0001", "memsize":40}"#,
    );
    assert_eq!((string.value, string.bytesize), (Some(&br#"a\"\\b\u0001"#[..]), Some(5)));
    let (class, _) = parsed(
        r#"{"address":"0x8", "type":"CLASS", "class":"0x10", "superclass":"0x20", "real_class_name":"A::B", "singleton":true, "references":[], "memsize":1}"#,
    );
    assert_eq!(
        (class.real_class_name, class.is_singleton, class.superclass),
        (Some(&b"A::B"[..]), true, Some(0x20))
    );
    let (root, references) = parsed(r#"{"type":"ROOT", "root":"vm", "references":["0x10"]}"#);
    assert_eq!((root.root, root.address, references), (Some(&b"vm"[..]), None, vec![16]));
    let (shape, _) = parsed(
        r#"{"address":"0x8", "type":"SHAPE", "id":1, "parent_id":0, "depth":2, "shape_type":"IVAR","edge_name":"@a", "edges":0, "memsize":64}"#,
    );
    assert_eq!((shape.kind, shape.memsize), (&b"SHAPE"[..], 64));
}

#[test]
fn a_files_name_may_hold_anything() {
    let names: [&[u8]; 6] = [
        b"a\"b.rb",
        b"a\", \"memsize\":999999, \"x\":\"b.rb",
        b"a\", \"line\":1, \"generation\":2, \"x\":\"b.rb",
        b"a\nb.rb",
        b"\xff\xfe.rb",
        b"back\\",
    ];
    for name in names {
        let mut line =
            br#"{"address":"0x8", "type":"STRING", "class":"0x10", "references":["0x20"], "file":""#.to_vec();
        line.extend(name);
        line.extend(br#"", "line":7, "method":"m", "generation":3, "memsize":40, "flags":{"old":true}}"#);
        let mut references = Vec::new();
        let record = Record::parse(&line, Some(&mut references)).unwrap();
        assert_eq!(
            (record.file, record.line, record.memsize, record.generation),
            (Some(name), 7, 40, Some(3))
        );
        assert_eq!(references, [0x20], "{}", String::from_utf8_lossy(name));
    }
}

#[test]
fn a_place_may_have_no_line() {
    let line =
        br#"{"address":"0x8", "type":"STRING", "value":"$-a", "file":"a.rb", "generation":9, "memsize":40}"#;
    let record = Record::parse(line, None).unwrap();
    assert_eq!((record.file, record.line, record.generation), (Some(&b"a.rb"[..]), 0, Some(9)));
}

#[test]
fn of_a_damaged_line_the_rest_is_told() {
    let line = br#"{"address":"0x8", "type":"HASH", "class":"0x10", "si###ze":, "references":["0x20", "0x28"], "memsize":168}"#;
    let mut references = Vec::new();
    assert_eq!(Record::parse(line, Some(&mut references)), Err(Damaged));
    references.clear();
    let record = Record::rescue(line, &mut references).unwrap();
    assert_eq!(
        (record.address, record.kind, record.class, record.memsize),
        (Some(8), &b"HASH"[..], Some(16), 168)
    );
    assert_eq!(references, [0x20, 0x28]);
}

#[test]
fn every_beginning_of_a_line_is_refused_without_a_panic() {
    let line = br#"{"address":"0x7f10", "type":"OBJECT", "flags":{"a":[1, {"b":"c"}]}, "references":["0x1", "0x2"], "file":"a.rb", "line":12, "method":"new", "memsize":40}"#;
    for len in 0..line.len() {
        let mut references = Vec::new();
        assert_eq!(Record::parse(&line[..len], Some(&mut references)), Err(Damaged), "{len}");
        let _ = Record::rescue(&line[..len], &mut references);
    }
}
