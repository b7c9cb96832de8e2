//! Makes files and folders: the only place where mallow does.
//!
//! mallow runs as root, in folders of other people, and writes down what programs do. So a file is made anew, never through a symbolic link
//! that somebody has planted; what is there already is replaced as a whole and not written into; it is its owner's alone whatever was there; and
//! a folder from which programs are loaded or run is trusted only when nobody else can swap it, or a folder above it.
//!
//! This crate must never know what is in the files. In reading order: `create`, `folders`.

mod create;
mod folders;

pub use create::{append, create_new, lock_file, overwrite, publish, replace};
pub use folders::{check_ours, check_parents, private_folder};
