//! Names are the same whether all units of the debug information are parsed or only those that some addresses need.

use crate::toolchain::{build_id, key, run, text};
use mallow_base::Frame;
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use std::path::Path;

fn resolve(search: &SearchPaths, module: &ModuleKey, svmas: &[u64]) -> Vec<Vec<Frame>> {
    let mut symbolizer = Symbolizer::new(search.clone());
    let frames = symbolizer.resolve(module, svmas);
    assert_eq!(symbolizer.warnings(), [""; 0]);
    frames
}

/// Three units that inline each other's functions, and one in assembly.
fn build(folder: &Path, flags: &[&str]) -> Vec<u8> {
    let header =
        "static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + (x >> 3); }\n";
    std::fs::write(folder.join("twice.h"), header).expect("the folder is writable");
    for (name, calls) in [("a", "twice(x)"), ("b", "a(twice(x) + 1)"), ("c", "b(x) + twice(a(x))")] {
        let source = format!(
            "#include \"twice.h\"\nint a(int); int b(int); int c(int);\nint {name}(int x) {{ return {calls}; }}\n"
        );
        std::fs::write(folder.join(format!("{name}.c")), source).expect("the folder is writable");
    }
    std::fs::write(folder.join("d.s"), ".globl d\n.text\nd:\n nop\n ret\n").expect("the folder is writable");
    let main = "int c(int); void d(void); int main(int n, char **v) { d(); (void)v; return c(n); }\n";
    std::fs::write(folder.join("main.c"), main).expect("the folder is writable");
    let mut words = vec!["-g", "-O2", "-o", "app", "main.c", "a.c", "b.c", "c.c", "d.s"];
    words.extend(flags);
    run(folder, "gcc", &words);
    std::fs::read(folder.join("app")).expect("the program is there")
}

#[test]
fn each_address_alone_is_named_as_among_all_and_as_without_a_list_of_ranges() {
    let as_one = ["-flto", "-ffat-lto-objects"];
    let packed_as_one = [as_one[0], as_one[1], "-gz=zlib"];
    for flags in [&["-gz=none"][..], &["-gz=zlib"], &["-gdwarf-4"], &as_one, &packed_as_one] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        build(folder.path(), flags);
        let app = key(&folder.path().join("app"));
        run(folder.path(), "objcopy", &["--remove-section", ".debug_aranges", "app", "plain"]);
        let plain = key(&folder.path().join("plain"));
        let svmas: Vec<u64> = (0x1000..0x1300).collect();
        let search = SearchPaths::default();
        let with_paths = |frames: Vec<Vec<Frame>>| -> Vec<Vec<Frame>> {
            let own = |frame: Frame| Frame { module: None, ..frame };
            frames.into_iter().map(|frames| frames.into_iter().map(own).collect()).collect()
        };
        let expected = with_paths(resolve(&search, &plain, &svmas));
        assert!(
            expected.iter().flatten().any(|frame| frame.inlined && frame.function == "twice"),
            "{flags:?}"
        );
        assert!(expected.iter().flatten().any(|frame| frame.function == "d" && frame.line.is_some()));
        assert_eq!(with_paths(resolve(&search, &app, &svmas)), expected, "{flags:?}");
        for (svma, expected) in svmas.iter().zip(&expected) {
            let alone = with_paths(resolve(&search, &app, &[*svma]));
            assert_eq!(&alone[0], expected, "{flags:?} {svma:#x}");
        }
    }
}

/// Rust's units as one: what is inlined has its name in the unit of another crate.
#[test]
fn a_function_that_is_named_by_another_units_is_named_as_among_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = "use std::collections::BTreeMap;\nfn main() {\n    let mut rows: BTreeMap<String, Vec<usize>> = BTreeMap::new();\n    \
                  for (at, word) in std::env::args().enumerate() { rows.entry(word).or_default().push(at); }\n    \
                  println!(\"{}\", rows.values().map(Vec::len).sum::<usize>());\n}\n";
    std::fs::write(folder.path().join("app.rs"), source).expect("the folder is writable");
    run(folder.path(), "rustc", &["-O", "-g", "-Clto=fat", "-Clink-arg=-Wl,--build-id", "app.rs"]);
    run(folder.path(), "objcopy", &["--remove-section", ".debug_aranges", "app", "plain"]);
    run(folder.path(), "objcopy", &["--compress-debug-sections=zlib", "app", "packed"]);
    let [app, plain, packed] = ["app", "plain", "packed"].map(|name| key(&folder.path().join(name)));
    let text = run(folder.path(), "readelf", &["-SW", "app"]);
    let words: Vec<&str> =
        text.lines().find(|line| line.contains(" .text ")).expect("it has code").split_whitespace().collect();
    let at = words.iter().position(|word| *word == ".text").expect("it has code");
    let [start, bytes] = [at + 2, at + 4].map(|at| u64::from_str_radix(words[at], 16).expect("a number"));
    let svmas: Vec<u64> = (start..start + bytes).step_by(211).collect();
    let own = |frames: Vec<Vec<Frame>>| -> Vec<Vec<Frame>> {
        let own = |frame: Frame| Frame { module: None, ..frame };
        frames.into_iter().map(|frames| frames.into_iter().map(own).collect()).collect()
    };
    let expected = own(resolve(&SearchPaths::default(), &plain, &svmas));
    let inlined = expected.iter().flatten().filter(|frame| frame.inlined);
    assert!(inlined.clone().count() > 1000 && inlined.into_iter().all(|frame| frame.function != "??"));
    for (svmas, expected) in svmas.chunks(40).zip(expected.chunks(40)) {
        assert_eq!(own(resolve(&SearchPaths::default(), &app, svmas)), expected);
        assert_eq!(own(resolve(&SearchPaths::default(), &packed, svmas)), expected);
    }
}

/// The C library's debug file: two thousand units, some of them in assembly, compressed.
#[test]
fn a_few_addresses_of_the_c_library_are_named_as_without_a_list_of_ranges() {
    let libc = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let digits: String = build_id(libc).iter().map(|byte| format!("{byte:02x}")).collect();
    let place = format!(".build-id/{}/{}.debug", &digits[..2], &digits[2..]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plain = folder.path().join(&place);
    std::fs::create_dir_all(plain.parent().expect("it has a folder")).expect("the folder is writable");
    let installed = Path::new("/usr/lib/debug").join(&place);
    run(folder.path(), "objcopy", &["--remove-section", ".debug_aranges", text(&installed), text(&plain)]);
    let without = SearchPaths { debug_roots: vec![folder.path().to_owned()], ..SearchPaths::default() };
    let svmas: Vec<u64> = (0x26000..0x180000).step_by(0x1e37).collect();
    let expected = resolve(&without, &key(libc), &svmas);
    assert!(expected.iter().flatten().filter(|frame| frame.line.is_some()).count() > 100);
    for (svmas, expected) in svmas.chunks(12).zip(expected.chunks(12)) {
        assert_eq!(resolve(&SearchPaths::default(), &key(libc), svmas), expected);
    }
    // Alone, each needs the beginnings of packed sections up to another place.
    for (svma, expected) in svmas.iter().zip(&expected).step_by(7) {
        assert_eq!(&resolve(&SearchPaths::default(), &key(libc), &[*svma])[0], expected, "{svma:#x}");
    }
}
