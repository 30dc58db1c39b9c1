//! The OpenAPI documents under docs/openapi, printed by the crates that serve what they describe.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// Crate, and the document that its example `openapi_CRATE` prints.
const DOCUMENTS: &[(&str, &str)] = &[("ground", "ground.json"), ("onboard", "wingbeatd.json")];

/// Writes every document, or compares it with the committed one.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let folder = root.join("docs/openapi");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    // With the features of the whole workspace, as the tests are built: nothing is compiled a second time.
    let mut build = process::cargo();
    build.current_dir(root).args(["build", "--quiet", "--workspace", "--tests", "--examples"]);
    process::run(&mut build)?;
    for (name, file) in DOCUMENTS {
        let mut print = Command::new(root.join(format!("target/debug/examples/openapi_{name}")));
        let document = process::output(&mut print)?;
        let path = folder.join(file);
        let committed = fs::read(&path).unwrap_or_default();
        if committed == document {
            println!("openapi: docs/openapi/{file} stands");
        } else if check {
            bail!(
                "docs/openapi/{file} differs from what crates/{name} serves; run `cargo xtask openapi` and commit it"
            );
        } else {
            fs::write(&path, document).with_context(|| format!("writing {}", path.display()))?;
            println!("openapi: docs/openapi/{file} written");
        }
    }
    Ok(())
}
