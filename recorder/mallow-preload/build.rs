//! Makes the linker mark the library as one that is initialised before all others: what it changes in a program must
//! be changed before any code of that program runs, and before libraries start threads.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
}
