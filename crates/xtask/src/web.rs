//! The Node.js side: installing what a lock file names once per change of it, and building the web page
//! when one of its sources is newer than the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::process;

/// An npm command in a folder of the repository, without colours, advertising or a question.
pub(crate) fn npm(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.current_dir(folder).args(arguments).env("NO_COLOR", "1").env("CI", "true");
    command
}

/// `npm ci` in the folder, unless the last one was for the same lock file.
pub(crate) fn install(root: &Path, folder: &str) -> Result<()> {
    let place = root.join(folder);
    let lock_path = place.join("package-lock.json");
    let lock = fs::read(&lock_path)
        .with_context(|| format!("{}: expected it next to package.json", lock_path.display()))?;
    let stamp = root.join("target/xtask").join(format!("{}.lock", folder.replace('/', "-")));
    if place.join("node_modules").is_dir() && fs::read(&stamp).is_ok_and(|last| last == lock) {
        return Ok(());
    }
    process::run(&mut npm(&place, &["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    fs::create_dir_all(root.join("target/xtask")).context("creating target/xtask")?;
    fs::write(&stamp, lock).with_context(|| format!("writing {}", stamp.display()))
}

/// Builds web/dist when it is missing or older than a source.
pub(crate) fn build_when_stale(root: &Path) -> Result<()> {
    let web = root.join("web");
    if !web.join("package.json").is_file() {
        bail!("{}: found no package.json, expected the web page's sources", web.display());
    }
    let built = fs::metadata(web.join("dist/index.html")).and_then(|m| m.modified()).ok();
    if let (Some(built), Some(changed)) = (built, newest(&web)?)
        && built >= changed
    {
        return Ok(());
    }
    if !process::is_installed("node") || !process::is_installed("npm") {
        bail!(
            "the web page must be built: found no node or npm, expected Node.js 20.19 or newer with npm \
             (`cargo xtask demo --headless` needs neither)"
        );
    }
    println!("building the web page");
    install(root, "web")?;
    process::run(&mut npm(&web, &["run", "build", "--silent"]))
}

/// When a source of the page changed last.
fn newest(web: &Path) -> Result<Option<SystemTime>> {
    let mut newest = None;
    let mut folders: Vec<PathBuf> = vec![web.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "node_modules" || name == "dist" || name.to_string_lossy().starts_with('.') {
                continue;
            }
            let facts = entry.metadata()?;
            if facts.is_dir() {
                folders.push(entry.path());
            } else {
                newest = newest.max(facts.modified().ok());
            }
        }
    }
    Ok(newest)
}
