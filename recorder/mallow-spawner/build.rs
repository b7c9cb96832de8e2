//! Linker flags of a program without libraries and start files.

fn main() {
    for argument in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
