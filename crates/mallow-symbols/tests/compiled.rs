//! Exact frames of small programs in C, C++, Rust and assembly.

use std::path::Path;

use crate::toolchain::{
    C_FRAMES, call_site, compile, compile_c, compile_nameless, key, lines, resolve_one, run, search,
};
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn frames_at(binary: &Path, function: &str, callee: &str) -> Vec<String> {
    let svma = call_site(binary, function, callee);
    let (frames, warnings) = resolve_one(SearchPaths::default(), &key(binary), svma);
    assert_eq!(warnings, [""; 0]);
    assert!(frames.iter().all(|frame| frame.module.as_deref() == binary.to_str()));
    lines(&frames)
}

#[test]
fn c_with_inlined_calls() {
    let folder = folder();
    for version in ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        let app = compile_c(folder.path(), &[version, "-gno-strict-dwarf"]);
        assert_eq!(frames_at(&app, "outer", "malloc"), C_FRAMES, "{version}");
    }
}

#[test]
fn compressed_sections() {
    let folder = folder();
    for kind in ["zlib", "zlib-gnu"] {
        let app = compile_c(folder.path(), &[&format!("-Wl,--compress-debug-sections={kind}")]);
        let sections = run(folder.path(), "readelf", &["-SW", "app"]);
        assert!(sections.contains(".zdebug_info") || sections.contains(" C "), "{sections}");
        assert_eq!(frames_at(&app, "outer", "malloc"), C_FRAMES, "{kind}");
    }
}

/// 200 KB in the file, 200 MB in memory: the function has its symbol's name, and no more is unpacked.
#[test]
fn a_section_that_a_few_bytes_make_large_is_not_unpacked() {
    let folder = folder();
    let app = compile_c(folder.path(), &[]);
    let zeros = folder.path().join("zeros");
    std::fs::write(&zeros, vec![0; 200 << 20]).expect("the folder takes a file");
    let update = format!(".debug_str={}", zeros.display());
    run(folder.path(), "objcopy", &["--update-section", &update, "app"]);
    run(folder.path(), "objcopy", &["--compress-debug-sections=zlib", "app"]);
    assert!(std::fs::metadata(&app).expect("it is there").len() < 1 << 20);
    let svma = call_site(&app, "outer", "malloc");
    let (frames, warnings) = resolve_one(SearchPaths::default(), &key(&app), svma);
    assert!(frames.iter().any(|frame| frame.function == "outer"), "{frames:?}");
    assert!(warnings.concat().contains("unpacks to 209715200 bytes"), "{warnings:?}");
}

#[test]
fn split_dwarf_in_a_dwo_file_and_in_a_package() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-gsplit-dwarf", "-gdwarf-5"]);
    assert_eq!(frames_at(&app, "outer", "malloc"), C_FRAMES);

    // The dwp of binutils 2.40 knows DWARF 4 only.
    let app = compile_c(folder.path(), &["-gsplit-dwarf", "-gdwarf-4"]);
    assert_eq!(frames_at(&app, "outer", "malloc"), C_FRAMES);
    run(folder.path(), "dwp", &["-e", "app", "-o", "app.dwp"]);
    for entry in std::fs::read_dir(folder.path()).expect("the folder is there").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(entry.path()).expect("the file can go");
        }
    }
    assert_eq!(frames_at(&app, "outer", "malloc"), C_FRAMES);
}

const CPP_SOURCE: &str = "\
namespace shop {
template <class T> inline __attribute__((always_inline)) T *cells(unsigned long n) {
    return new T[n];
}
template <class T, int N> struct Store {
    T *slots;
    __attribute__((noipa)) T *grow(unsigned long n) const {
        return cells<T>(n * N);
    }
};
namespace {
__attribute__((noipa)) char *hidden(unsigned long n) {
    return new char[n];
}
}
}
int main(int argc, char **) {
    shop::Store<int, 7> store{};
    auto local = [](unsigned long n) __attribute__((noipa)) {
        return new short[n];
    };
    return store.grow(argc) && shop::hidden(argc) && local(argc);
}
";

#[test]
fn cpp_with_templates_and_lambdas() {
    let folder = folder();
    let flags = ["-g", "-O2", "-fno-optimize-sibling-calls", "-Wl,--build-id"];
    let app = compile(folder.path(), "g++", "app.cpp", CPP_SOURCE, &flags);
    assert_eq!(
        frames_at(&app, "_ZNK4shop5StoreIiLi7EE4growEm", "_Znam"),
        [
            "^int* shop::cells<int>(unsigned long) app.cpp:3",
            "shop::Store<int, 7>::grow(unsigned long) const app.cpp:8"
        ]
    );
    assert_eq!(
        frames_at(&app, "_ZN4shop12_GLOBAL__N_16hiddenEm", "_Znam"),
        ["shop::(anonymous namespace)::hidden(unsigned long) app.cpp:13"]
    );
    assert_eq!(
        frames_at(&app, "_ZZ4mainENKUlmE_clEm", "_Znam"),
        ["main::{lambda(unsigned long)#1}::operator()(unsigned long) const app.cpp:20"]
    );
}

const RUST_SOURCE: &str = "\
unsafe extern \"C\" {
    fn malloc(size: usize) -> *mut u8;
}
struct Pool<T>(T);
impl<T> Pool<T> {
    #[inline(always)]
    fn take(&self, n: usize) -> *mut u8 {
        unsafe { malloc(n + 1) }
    }
}
#[inline(never)]
#[unsafe(no_mangle)]
fn plain(n: usize) -> usize {
    Pool(1u8).take(n) as usize + 1
}
mod deep {
    pub trait Grow {
        fn grow(&self) -> usize;
    }
    impl Grow for u16 {
        #[inline(never)]
        fn grow(&self) -> usize {
            unsafe { crate::malloc(*self as usize) as usize + 2 }
        }
    }
}
fn main() {
    let n = std::env::args().count();
    println!(\"{}\", plain(n) + deep::Grow::grow(&(n as u16)));
}
";

#[test]
fn rust_names_in_both_manglings() {
    let folder = folder();
    let cases =
        [("legacy", "_ZN", "^app::Pool<T>::take app.rs:8"), ("v0", "_R", "^<app::Pool<u8>>::take app.rs:8")];
    for (mangling, prefix, take) in cases {
        let option = format!("-Csymbol-mangling-version={mangling}");
        let flags = ["-g", "-O", "--edition=2024", &option];
        let flags = if mangling == "v0" { &flags[..] } else { &flags[..3] };
        let app = compile(folder.path(), "rustc", "app.rs", RUST_SOURCE, flags);
        assert_eq!(frames_at(&app, "plain", "malloc"), [take, "plain app.rs:14"], "{mangling}");
        let names = run(folder.path(), "nm", &["app"]);
        let mut symbols = names.lines().filter_map(|line| line.split(' ').next_back());
        let symbol = symbols.find(|name| {
            name.starts_with(prefix) && ["Grow$GT$4grow", "4Grow4grow"].iter().any(|grow| name.contains(grow))
        });
        let symbol = symbol.expect("grow has a symbol");
        assert_eq!(
            frames_at(&app, symbol, "malloc"),
            ["<u16 as app::deep::Grow>::grow app.rs:23"],
            "{mangling}"
        );
    }
}

const ASSEMBLY: &str = "\
.globl main
.text
main:
    nop
    call bare
    ret
bare:
    xor %eax, %eax
    ret
";

#[test]
fn line_tables_without_functions_take_the_name_from_the_symbol_table() {
    let folder = folder();
    let app = compile(folder.path(), "gcc", "app.s", ASSEMBLY, &["-g", "-Wl,--build-id"]);
    assert_eq!(frames_at(&app, "main", "bare"), ["main app.s:5"]);
}

#[test]
fn without_debug_information_the_symbol_table_names_functions() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-g0"]);
    assert_eq!(frames_at(&app, "outer", "malloc"), ["outer ?:?"]);
}

#[test]
fn without_a_symbol_table_exported_names_remain() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-g0", "-rdynamic"]);
    let svma = call_site(&app, "outer", "malloc");
    let start = call_site(&app, "_start", "__libc_start_main");
    run(folder.path(), "strip", &["app"]);
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let frames = symbolizer.resolve(&key(&app), &[svma, start]);
    assert_eq!(lines(&frames[0]), ["outer ?:?"]);
    assert_eq!(lines(&frames[1]), ["_start ?:?"]);
    assert_eq!(symbolizer.warnings(), [""; 0]);

    let gap = symbolizer.resolve(&key(&app), &[1]);
    assert_eq!(lines(&gap[0]), ["0x1 ?:?"]);
    let expected = format!(
        "{} is stripped: only its exported functions have names. Install its debug package (-dbgsym, -dbg or \
         -debuginfo), or build it with -g and without -s.",
        app.display()
    );
    assert_eq!(symbolizer.warnings(), [expected]);
}

#[test]
fn without_any_symbol_frames_are_addresses() {
    let folder = folder();
    let app = compile_nameless(folder.path());
    let mut symbolizer = Symbolizer::new(search(folder.path()));
    let frames = symbolizer.resolve(&key(&app), &[0x40_1000, 0x40_1001]);
    assert_eq!(lines(&frames[0]), ["0x401000 ?:?"]);
    assert_eq!(lines(&frames[1]), ["0x401001 ?:?"]);
    symbolizer.resolve(&key(&app), &[0x40_1000]);
    let expected = format!(
        "{} has no symbols at all, so its frames are addresses. Install its debug package (-dbgsym, -dbg or \
         -debuginfo), or build it with -g and without -s.",
        app.display()
    );
    assert_eq!(symbolizer.warnings(), [expected]);
}

#[test]
fn answers_keep_the_order_and_number_of_questions() {
    let folder = folder();
    let app = compile_c(folder.path(), &[]);
    let outer = call_site(&app, "outer", "malloc");
    let main = call_site(&app, "main", "outer");
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let frames = symbolizer.resolve(&key(&app), &[main, 0, outer, main]);
    let outermost: Vec<_> = frames.iter().map(|frames| frames.last().map(|f| f.function.as_str())).collect();
    assert_eq!(outermost, [Some("main"), Some("0x0"), Some("outer"), Some("main")]);
    assert!(symbolizer.resolve(&key(&app), &[]).is_empty());
}

#[test]
fn memory_without_a_file_has_a_module_and_addresses() {
    for path in ["[vdso]", "[anon:jit]", "/memfd:code (deleted)", "//anon"] {
        let module = ModuleKey { path: path.to_owned(), build_id: vec![1, 2, 3] };
        let (frames, warnings) = resolve_one(SearchPaths::default(), &module, 0xabc);
        assert_eq!(lines(&frames), ["0xabc ?:?"]);
        assert_eq!(frames[0].module.as_deref(), Some(path));
        assert_eq!(warnings, [""; 0]);
    }
    let unnamed = ModuleKey { path: String::new(), build_id: Vec::new() };
    let (frames, _) = resolve_one(SearchPaths::default(), &unnamed, 0xabc);
    assert_eq!(frames[0].module, None);
}

/// Functions by the names that people know, which come first, last and between the others: a sort that is not stable may take any of them.
const ALIASES: &str = "\
.text
.macro alias name
.globl \\name
.type \\name, @function
\\name:
.endm
alias first
alias __first
alias __GI_first
call malloc@plt
ret
.size first, .-first
.size __first, .-__first
.size __GI_first, .-__GI_first
alias __GI_last
alias __last
alias last
call malloc@plt
ret
.size __GI_last, .-__GI_last
.size __last, .-__last
.size last, .-last
.globl main
.type main, @function
main:
call first
call last
ret
.size main, .-main
.section .note.GNU-stack
";

#[test]
fn of_several_names_of_assembly_the_best_known_one_is_taken() {
    let folder = folder();
    let app = compile(folder.path(), "gcc", "app.s", ALIASES, &["-g", "-Wl,--build-id"]);
    let symbols = run(folder.path(), "nm", &["app"]);
    for (name, place) in [("first", "app.s:10"), ("last", "app.s:18")] {
        let line =
            symbols.lines().find(|line| line.ends_with(&format!(" T {name}"))).expect("it is a symbol");
        let svma = u64::from_str_radix(&line[..16], 16).expect("nm prints hexadecimal numbers");
        let (frames, warnings) = resolve_one(SearchPaths::default(), &key(&app), svma);
        assert_eq!((lines(&frames), warnings), (vec![format!("{name} {place}")], Vec::new()));
    }
}
