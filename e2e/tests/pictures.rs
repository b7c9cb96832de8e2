//! The pictures in README and the guide show what mallow prints today; `cargo xtask pictures` makes them again.

use e2e::picture::{PICTURES, settled};
use e2e::repository;

#[test]
fn every_picture_shows_what_its_command_prints() {
    for picture in PICTURES {
        let shown = std::fs::read_to_string(picture.file()).unwrap();
        assert!(
            settled(&shown) == settled(&picture.drawn()),
            "docs/images/{}.svg is not what its command prints; `cargo xtask pictures` makes it again",
            picture.name
        );
    }
}

#[test]
fn every_picture_is_shown_somewhere() {
    let pages = std::fs::read_dir(repository().join("docs/guide")).unwrap().map(|page| page.unwrap().path());
    let pages = pages.chain([repository().join("README.md")]);
    let text: String = pages.map(|page| std::fs::read_to_string(page).unwrap()).collect();
    for image in std::fs::read_dir(repository().join("docs/images")).unwrap() {
        let name = image.unwrap().file_name().into_string().unwrap();
        assert!(text.contains(&format!("images/{name})")), "no page shows {name}");
    }
}
