//! A Debian package: the files that `[package.metadata.deb]` of a crate names, packed by `dpkg-deb`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::process;

/// The scripts that dpkg runs.
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

/// `Cargo.toml` of a crate, as far as a package needs it.
#[derive(Deserialize)]
struct Manifest {
    package: ManifestPackage,
}

#[derive(Deserialize)]
struct ManifestPackage {
    description: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    deb: Recipe,
}

/// `[package.metadata.deb]`. Fields of the same name are those of Debian's control file (deb-control(5)).
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Recipe {
    name: String,
    maintainer: String,
    /// The long description.
    extended_description: String,
    section: String,
    depends: String,
    recommends: Option<String>,
    suggests: Option<String>,
    /// A folder with the scripts that dpkg runs.
    maintainer_scripts: Option<PathBuf>,
    /// Files that belong to the operator once they are installed: absolute paths.
    #[serde(default)]
    conf_files: Vec<String>,
    assets: Vec<Asset>,
}

/// A file, or a folder with all that is in it, and where it goes.
#[derive(Deserialize)]
struct Asset {
    /// Below the crate's folder; a program is named alone.
    from: PathBuf,
    /// A folder or, without a slash at its end, a file; below the system's root.
    to: String,
    /// Octal.
    mode: String,
}

/// The parts of a package besides the crate's own files.
pub(super) struct Parts<'a> {
    /// The crate's folder.
    pub(super) of_crate: &'a Path,
    /// The folder of the programs.
    pub(super) programs: &'a Path,
    pub(super) version: &'a str,
    /// Debian's name of the architecture.
    pub(super) architecture: &'a str,
    /// Both licences of the project.
    pub(super) copyright: &'a str,
}

/// Packs it as `file`.
///
/// # Errors
/// `Cargo.toml` has no such recipe, a file of the recipe is missing, or `dpkg-deb` fails.
pub(super) fn pack(parts: &Parts<'_>, file: &Path) -> Result<()> {
    let manifest = parts.of_crate.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let Manifest { package } = toml::from_str(&text).with_context(|| manifest.display().to_string())?;
    let recipe = &package.metadata.deb;
    let stage = file.with_extension("stage");
    if stage.exists() {
        std::fs::remove_dir_all(&stage)?;
    }
    for asset in &recipe.assets {
        asset.copy(parts, &stage)?;
    }
    let copyright = stage.join("usr/share/doc").join(&recipe.name).join("copyright");
    write(&copyright, parts.copyright, 0o644)?;
    let bytes = size(&stage)?;
    let control = stage.join("DEBIAN");
    write(&control.join("control"), recipe.control(&package.description, parts, bytes), 0o644)?;
    if !recipe.conf_files.is_empty() {
        write(&control.join("conffiles"), &(recipe.conf_files.join("\n") + "\n"), 0o644)?;
    }
    if let Some(folder) = &recipe.maintainer_scripts {
        for script in SCRIPTS {
            let from = parts.of_crate.join(folder).join(script);
            if from.exists() {
                copy(&from, &control.join(script), 0o755)?;
            }
        }
    }
    process::output(
        Command::new("dpkg-deb").args(["--root-owner-group", "-Zxz", "--build"]).arg(&stage).arg(file),
    )?;
    std::fs::remove_dir_all(&stage)?;
    Ok(())
}

impl Recipe {
    /// Returns the text of `DEBIAN/control`.
    fn control(&self, description: &str, parts: &Parts<'_>, bytes: u64) -> String {
        let mut lines = vec![
            format!("Package: {}", self.name),
            format!("Version: {}", parts.version),
            format!("Architecture: {}", parts.architecture),
            format!("Maintainer: {}", self.maintainer),
            format!("Installed-Size: {}", bytes.div_ceil(1_024)),
            format!("Section: {}", self.section),
            "Priority: optional".to_owned(),
            format!("Depends: {}", self.depends),
        ];
        for (field, value) in [("Recommends", &self.recommends), ("Suggests", &self.suggests)] {
            lines.extend(value.iter().map(|value| format!("{field}: {value}")));
        }
        lines.push(format!("Description: {description}"));
        // A line of the long description begins with a space; an empty one is a point (deb-control(5)).
        for line in self.extended_description.trim().lines() {
            lines.push(format!(" {}", if line.trim().is_empty() { "." } else { line.trim() }));
        }
        lines.join("\n") + "\n"
    }
}

impl Asset {
    fn copy(&self, parts: &Parts<'_>, stage: &Path) -> Result<()> {
        let mode = u32::from_str_radix(&self.mode, 8).with_context(|| {
            format!("{}: mode: found {:?}, expected octal", self.from.display(), self.mode)
        })?;
        let is_program = self.from.components().count() == 1;
        let from = if is_program { parts.programs } else { parts.of_crate }.join(&self.from);
        let to = stage.join(&self.to);
        if from.is_dir() {
            return copy_folder(&from, &to, mode);
        }
        let name = from.file_name().context("an asset without a name")?;
        copy(&from, &if self.to.ends_with('/') { to.join(name) } else { to }, mode)
    }
}

fn copy_folder(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let entries = std::fs::read_dir(from).with_context(|| from.display().to_string())?;
    let entries = entries.collect::<std::io::Result<Vec<_>>>()?;
    ensure!(!entries.is_empty(), "{}: found nothing in it, expected files", from.display());
    for entry in entries {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy_folder(&path, &to, mode)? } else { copy(&path, &to, mode)? }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = std::fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    write(to, bytes, mode)
}

fn write(to: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    let folder = to.parent().context("a file has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    std::fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Returns the bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
        bytes += if kind?.is_dir() { size(&path)? } else { std::fs::metadata(&path)?.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(text: &str) -> Recipe {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_control_file_has_the_fields_of_the_recipe() {
        let recipe = recipe(
            "name = \"wingbeatd\"\nmaintainer = \"M\"\nextended-description = \"\"\"\nOne.\n\nTwo.\"\"\"\nsection = \"net\"\n\
             depends = \"libc6\"\nsuggests = \"chrony\"\nassets = []",
        );
        let here = Path::new("");
        let parts =
            Parts { of_crate: here, programs: here, version: "0.1", architecture: "amd64", copyright: "" };
        assert_eq!(
            recipe.control("a daemon", &parts, 1_025),
            "Package: wingbeatd\nVersion: 0.1\nArchitecture: amd64\nMaintainer: M\nInstalled-Size: 2\nSection: net\n\
             Priority: optional\nDepends: libc6\nSuggests: chrony\nDescription: a daemon\n One.\n .\n Two.\n"
        );
    }

    #[test]
    fn a_file_that_is_missing_and_a_mode_that_is_none_are_named() {
        let folder = tempfile::TempDir::new().unwrap();
        let parts = Parts {
            of_crate: folder.path(),
            programs: folder.path(),
            version: "0.1",
            architecture: "amd64",
            copyright: "",
        };
        let refusal = |from: &str, mode: &str| {
            let asset = Asset { from: from.into(), to: "usr/bin/".into(), mode: mode.into() };
            format!("{:#}", asset.copy(&parts, &folder.path().join("stage")).unwrap_err())
        };
        assert!(refusal("wingbeatd", "755").contains("wingbeatd"));
        assert!(refusal("wingbeatd", "9").starts_with("wingbeatd: mode: found \"9\", expected octal"));
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        assert!(refusal("./empty", "644").contains("found nothing in it"));
    }

    #[test]
    fn a_package_holds_files_with_their_modes_and_folders_with_all_that_is_in_them() {
        if !process::is_installed("dpkg-deb") {
            println!("skipped: no dpkg-deb here");
            return;
        }
        let folder = tempfile::TempDir::new().unwrap();
        let of_crate = folder.path().join("crate");
        write(
            &of_crate.join("Cargo.toml"),
            "[package]\nname = \"x\"\ndescription = \"d\"\n[package.metadata.deb]\nname = \"x\"\nmaintainer = \"m\"\n\
             extended-description = \"e\"\nsection = \"net\"\ndepends = \"libc6\"\nmaintainer-scripts = \"scripts\"\n\
             conf-files = [\"/etc/x.toml\"]\nassets = [\n{ from = \"x\", to = \"usr/bin/\", mode = \"755\" },\n\
             { from = \"./x.toml\", to = \"etc/x.toml\", mode = \"600\" },\n\
             { from = \"./page/all\", to = \"usr/share/x/\", mode = \"644\" }]\n",
            0o644,
        )
        .unwrap();
        for file in
            ["programs/x", "crate/x.toml", "crate/page/all/a", "crate/page/all/b/c", "crate/scripts/postinst"]
        {
            write(&folder.path().join(file), "#!/bin/sh\n", 0o644).unwrap();
        }
        let programs = folder.path().join("programs");
        let parts = Parts {
            of_crate: &of_crate,
            programs: &programs,
            version: "0.1",
            architecture: "all",
            copyright: "MIT\n",
        };
        let file = folder.path().join("x.deb");
        pack(&parts, &file).unwrap();
        let list = process::output(Command::new("dpkg-deb").arg("--contents").arg(&file)).unwrap();
        let list = String::from_utf8(list).unwrap();
        let mode = |path: &str| {
            let line = list.lines().find(|line| line.ends_with(&format!(" ./{path}")));
            line.and_then(|line| line.split(' ').next()).unwrap_or("missing").to_owned()
        };
        assert_eq!(mode("usr/bin/x"), "-rwxr-xr-x", "{list}");
        assert_eq!(mode("etc/x.toml"), "-rw-------", "{list}");
        assert_eq!(mode("usr/share/x/a"), "-rw-r--r--", "{list}");
        assert_eq!(mode("usr/share/x/b/c"), "-rw-r--r--", "{list}");
        assert_eq!(mode("usr/share/doc/x/copyright"), "-rw-r--r--", "{list}");
        let scripts = process::output(Command::new("dpkg-deb").arg("--info").arg(&file).arg("postinst"));
        assert_eq!(scripts.unwrap(), b"#!/bin/sh\n");
    }
}
