//! Asks the linker for a library that is set up before all others: what it changes in a program has to be changed before
//! any code of that program runs, and before libraries start threads.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,initfirst");
}
