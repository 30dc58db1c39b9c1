//! `cargo xtask vectors`: the tests of the bytes that all machines share, on another machine's instructions under qemu-user: every
//! golden datagram is sealed and opened, signatures are verified, bundles of keys are made and read.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Target, debian, emulator, install, installed, missing, without_emulator};
use crate::process;

/// Whose tests they are, each with its features.
const PACKAGES: [[&str; 2]; 2] = [["wingbeat-wire", "stand-in"], ["wingbeat-keys", ""]];

/// What this machine lacks to run tests for `target`, if anything.
pub(crate) fn vectors_missing(target: Target) -> Option<String> {
    missing(target).or_else(|| without_emulator(target))
}

/// Builds the tests for `target` and runs them.
pub(crate) fn vectors(root: &Path, target: Target) -> Result<()> {
    if let Some(what) = vectors_missing(target) {
        bail!("{what}");
    }
    let triple = target.triple();
    let folder = root.join("target/cross");
    let has_target = installed(triple)? || install(triple);
    let compiler = if has_target { None } else { Some(debian::compiler(&folder, target.debian())?) };
    // Another compiler's artefacts do not mix with rustup's.
    let folder = if has_target { folder } else { folder.join("debian") };
    let variable = format!("CARGO_TARGET_{}", triple.to_uppercase().replace('-', "_"));
    for [package, features] in PACKAGES {
        println!("vectors: {package} for {triple}");
        let mut test = process::cargo();
        test.current_dir(root).args(["test", "--lib", "--quiet", "--color", "never", "--target", triple]);
        test.args(["--package", package, "--features", features, "--target-dir"]).arg(&folder);
        test.env(format!("{variable}_LINKER"), target.linker());
        if let Some(emulator) = emulator(target) {
            test.env(format!("{variable}_RUNNER"), emulator.join(" "));
        }
        if let Some(compiler) = &compiler {
            compiler.apply(&mut test);
        }
        process::run(&mut test)?;
    }
    Ok(())
}
