//! Creates files and folders. No other crate of mallow does. Opens what is read, where that may be stdin.
//!
//! mallow runs as root, in folders of other users, and writes down what programs do. So a file is created anew, never through a
//! symbolic link that another user has planted; an existing file is replaced as a whole and not written into; its permissions are
//! its owner's only, whatever they were before. A folder from which programs are loaded or run is trusted only if no other user can
//! swap it, or a folder above it. A trace is marked as made here. Executables and libraries are read within limits, and found below the roots of
//! processes that see other files.
//!
//! This crate must never know what is in the files. In reading order: `create`, `folders`, `input`, `foreign`, `origin`, `roots`.

mod create;
mod folders;
mod foreign;
mod input;
mod origin;
pub mod roots;

pub use create::{append, create_new, lock_file, overwrite, publish, replace, replace_with};
pub use folders::{check_ours, check_parents, private_folder};
pub use foreign::{ForeignFile, is_hollow, stored_bytes};
pub use input::{STREAM, open_input};
pub use origin::{is_made_here, mark_as_made_here};
