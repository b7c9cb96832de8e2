//! Fails when the programs that `mallow.toml` names allocate more than it allows.

use std::process::Command;

#[test]
fn allocations() {
    // The variable is for machines where mallow is not on PATH.
    let mallow = std::env::var_os("MALLOW_BIN").unwrap_or_else(|| "mallow".into());
    let check = Command::new(mallow).arg("check").current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let check = check.expect("mallow can be run");
    let said = String::from_utf8_lossy(&check.stdout) + String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{said}");
}
