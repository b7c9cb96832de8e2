//! What is recognised.

use super::*;
use mallow_gate::sample::environment;
use proptest::prelude::*;

const GLIBC: &[u8] =
    b"\x7fELF\0\0GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright\0";
const MUSL: &[u8] = b"\x7fELF\0musl libc (x86_64)\nVersion %s\n\x001.2\x001.2.3\0";

fn modules(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn libcs_are_recognised_by_what_they_say() {
    let glibc = modules(&["/usr/lib/x86_64-linux-gnu/libc.so.6"]);
    assert_eq!(libc(&glibc, GLIBC), "glibc 2.36");
    assert_eq!(libc(&glibc, b""), "glibc");
    assert_eq!(libc(&glibc, b"GNU C Library without it\0version 1.1"), "glibc");
    let musl = modules(&["/lib/ld-musl-x86_64.so.1"]);
    assert_eq!(libc(&musl, MUSL), "musl 1.2.3");
    assert_eq!(libc(&musl, b"\xff\xfe"), "musl");
    assert_eq!(libc(&[], b""), "unknown");
}

#[test]
fn this_machines_libc_says_its_version() {
    let Some(path) = ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
    else {
        return;
    };
    let content = std::fs::read(path).expect("it is there");
    let name = libc(&modules(&[path]), &content);
    let version = name.strip_prefix("glibc 2.").expect("it is glibc 2");
    assert!(version.parse::<u32>().is_ok(), "{name}");
}

#[test]
fn runtimes_are_recognised_by_file_names() {
    let expected = [
        ("/usr/bin/python3.11", &[][..], Some("python 3.11")),
        ("/srv/app", &["/usr/lib/libpython3.11.so.1.0"][..], Some("python 3.11")),
        ("/usr/bin/ruby", &["/usr/lib/libruby-3.1.so.3.1"], Some("ruby 3.1")),
        ("/usr/bin/ruby3.1", &[], Some("ruby 3.1")),
        ("/usr/bin/node", &["/lib/libnode.so.108"], Some("node abi 108")),
        ("/opt/node/bin/node", &[], Some("node")),
        ("/srv/app", &["/opt/libswiftCore.so"], Some("swift")),
        ("/srv/pythonic", &["/usr/lib/libc.so.6"], None),
        ("/srv/test_ruby_free", &[], None),
    ];
    for (executable, libraries, name) in expected {
        assert_eq!(runtime(executable, &modules(libraries)).as_deref(), name, "{executable}");
    }
}

#[test]
fn the_allocator_is_the_libcs_unless_another_is_mapped() {
    assert_eq!(allocator(&modules(&["/usr/lib/libc.so.6"])), "libc");
    assert_eq!(allocator(&modules(&["/usr/lib/libc.so.6", "/usr/lib/libjemalloc.so.2"])), "jemalloc");
    assert_eq!(allocator(&modules(&["/usr/lib/libtcmalloc_minimal.so.4"])), "tcmalloc");
}

#[test]
fn all_together() {
    let seen = ObservedProgram {
        architecture: "x86_64",
        executable: "/srv/demo/bench",
        modules: &modules(&["/usr/lib/libc.so.6"]),
        libc: GLIBC,
        runtime: None,
        processors: 2,
    };
    assert_eq!(of(&seen), environment());
    let rust = of(&ObservedProgram { runtime: Some("rustc 1.88"), ..seen });
    assert_eq!(rust.runtime, "rustc 1.88");
}

proptest! {
    #[test]
    fn no_content_makes_it_panic(content in prop::collection::vec(any::<u8>(), 0..200), name in "\\PC{0,20}") {
        let seen = ObservedProgram {
            architecture: &name, executable: &name, modules: std::slice::from_ref(&name), libc: &content, runtime: None,
            processors: 1,
        };
        let class = of(&seen).class_name();
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
        prop_assert!(class.chars().all(is_safe), "{}", class);
    }
}
