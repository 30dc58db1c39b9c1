//! `cargo xtask windows`: the program `wingbeat` for 64-bit Windows, as far as another machine can show: it compiles.
//!
//! Two routes to a standard library for the target, as in `cross`: rustup's, where it is installed, else Debian's `rustc-web`, which
//! builds it from `rust-web-src`. Either way MinGW compiles the parts in C.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// Debian's compiler, and the source of its standard library.
const DEBIAN: [&str; 3] =
    ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/lib/rustlib/src/rust/library/Cargo.lock"];

/// What is missing here, with the packages that have it.
pub(crate) fn missing() -> Option<String> {
    if !process::is_installed(COMPILER) {
        return Some(format!("no {COMPILER} here (Debian: gcc-mingw-w64-x86-64)"));
    }
    let has_debian = DEBIAN.iter().all(|path| Path::new(path).exists());
    (!has_rustup() && !has_debian).then(|| {
        format!("no standard library for {TARGET} here (rustup target add {TARGET}, or Debian: rustc-web, cargo-web, rust-web-src)")
    })
}

/// Whether the compiler in use has the target's standard library.
fn has_rustup() -> bool {
    let printed =
        process::output(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    printed.is_ok_and(|path| PathBuf::from(String::from_utf8_lossy(&path).trim()).is_dir())
}

/// Compiles it.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/windows");
    let mut build = if has_rustup() {
        process::cargo()
    } else {
        println!("windows: by Debian's compiler, which builds the standard library");
        let mut build = Command::new(DEBIAN[1]);
        // The standard library of a stable compiler is built with its own unstable features.
        build.env("RUSTC", DEBIAN[0]).env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
        build
    };
    build.current_dir(root).args(["check", "--package", "wingbeat-cli", "--target", TARGET]);
    build.env("CARGO_TARGET_DIR", &folder);
    // It is neither measured nor shipped.
    build.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::run(&mut build)?;
    println!("windows: compiled, neither linked nor run");
    Ok(())
}
