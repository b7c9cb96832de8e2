//! `cargo xtask pictures`: makes the pictures of the terminal in `docs/images` again.

use e2e::picture::PICTURES;

fn main() -> std::io::Result<()> {
    for picture in PICTURES {
        std::fs::write(picture.file(), picture.drawn())?;
    }
    Ok(())
}
