//! Programs of C and assembly that are built, and what is planned for them.

use super::*;
use std::process::Command;

/// Builds a program of C.
fn built(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let (c, program) = (folder.join("own.c"), folder.join("own"));
    std::fs::write(&c, source).unwrap();
    let status = Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&c).args(flags).status().unwrap();
    assert!(status.success());
    program
}

/// Builds one, and looks into it.
fn examined(source: &str, flags: &[&str]) -> Option<Image> {
    let folder = tempfile::tempdir().unwrap();
    Image::examine(&built(folder.path(), source, flags)).image
}

const USES_ALL: &str = "#include <stdlib.h>\nint main(int n, char **v) { void *p = realloc(malloc(n), 2 * n); free(calloc(n, n)); \
    posix_memalign(&p, 64, n); free(aligned_alloc(64, 64)); free(p); return 0; }\n";

#[test]
fn every_function_of_debians_allocators_can_be_patched() {
    let jemalloc =
        examined(USES_ALL, &["/usr/lib/x86_64-linux-gnu/libjemalloc.a", "-lstdc++", "-lm"]).unwrap();
    assert_eq!((jemalloc.allocator, jemalloc.unseen.as_slice()), ("jemalloc", &[][..]));
    assert!(jemalloc.patch_count() >= 10, "{}", jemalloc.patch_count());
    let tcmalloc =
        examined(USES_ALL, &["/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.a", "-lstdc++", "-lm"]).unwrap();
    assert_eq!((tcmalloc.allocator, tcmalloc.unseen.as_slice()), ("tcmalloc", &[][..]));
}

#[test]
fn a_program_without_one_needs_nothing() {
    assert_eq!(examined(USES_ALL, &[]), None);
    // A function of a file's own may be called anything.
    let own = "static void free(int *n) { ++*n; }\nstatic int *malloc(int *n) { return n + 1; }\nvoid *kept[] = {free, malloc};\n\
               int main(int n, char **v) { free(malloc(&n)); return 0; }\n";
    assert_eq!(examined(own, &["-fno-builtin"]), None);
}

/// Which one is called is decided when the program starts, so none of them is patched; that the program has an allocator of its own is known all the same.
#[test]
fn an_allocator_that_is_chosen_at_the_start_is_named_and_not_patched() {
    let own = "static void *give(unsigned long n) { return (void *)0; }\nstatic void take(void *p) {}\n\
               static void *choose_giving(void) { return give; }\nstatic void *choose_taking(void) { return take; }\n\
               void *malloc(unsigned long) __attribute__((ifunc(\"choose_giving\")));\nvoid free(void *) __attribute__((ifunc(\"choose_taking\")));\n\
               int main(void) { free(malloc(1)); return 0; }\n";
    let folder = tempfile::tempdir().unwrap();
    let found = Image::examine(&built(folder.path(), own, &["-fno-builtin"]));
    assert_eq!((found.named, found.image), (Some("malloc"), None));
}

/// Two functions of a program's own in assembly, which may say anything of themselves.
fn assembled(malloc: &str) -> Image {
    let source = format!(
        "__asm__(\".text\\n.globl malloc\\n.type malloc, @function\\n{malloc}\\n.globl free\\n.type free, @function\\n\
         free: xor %eax, %eax\\nmov %rdi, %rsi\\nret\\nnop\\n.size free, 6\\n\");\n\
         void *malloc(unsigned long); void free(void *);\nint main(void) {{ free(malloc(1)); return 0; }}\n"
    );
    examined(&source, &[]).unwrap()
}

#[test]
fn what_cannot_be_patched_is_named_with_the_reason() {
    for (malloc, reason) in [
        (
            "malloc: ret\\n.size malloc, 1\\n.globl other\\n.type other, @function\\nother: ret; ret; ret; ret; ret",
            "it is too short",
        ),
        ("malloc: push %rax\\ncall *%rax\\nret", "it begins with a call"),
        (
            "malloc: xor %eax, %eax\\nother: push %rbp\\npush %rbp\\npush %rbp\\nret\\nback: jmp other",
            "the program jumps between",
        ),
        (
            "malloc: push %rbp\\n.globl inner\\n.type inner, @function\\ninner: push %rbp\\npush %rbp\\npush %rbp\\npush %rbp\\nret",
            "the program jumps between",
        ),
        (".pushsection .data\\nmalloc: .quad 0\\n.popsection", "its symbol leads to where there is no code"),
        ("malloc: .byte 6, 6, 6, 6, 6, 6", "its first bytes are no instructions"),
    ] {
        let image = assembled(malloc);
        assert_eq!(image.unseen.len(), 1, "{malloc}: {image:?}");
        assert_eq!(image.unseen[0].function, "malloc");
        assert!(image.unseen[0].reason.contains(reason), "{malloc}: {:?}", image.unseen);
        assert_eq!(image.patch_count(), 1, "{malloc}");
    }
}
