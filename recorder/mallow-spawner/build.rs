//! The program has no library and no start files: what it needs of the linker.

fn main() {
    for argument in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
