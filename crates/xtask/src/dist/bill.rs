//! The list of the software in a package, in the form of CycloneDX 1.5 (<https://cyclonedx.org/docs/1.5/json/>): every
//! crate that is linked, with its version, licence and source, so that a flaw that is found in one can be looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};
use serde_json::{Value, json};

use super::VERSION;

/// The list for the package `name`, made of `of_crate`.
pub(super) fn of(root: &Path, of_crate: &str, name: &str) -> Result<String> {
    let metadata = MetadataCommand::new().current_dir(root).exec().context("cargo metadata")?;
    let linked = linked(&metadata, of_crate)?;
    let mut components: Vec<Value> = Vec::new();
    for package in metadata.packages.iter().filter(|package| linked.contains(&package.id)) {
        let version = package.version.to_string();
        let mut component = json!({
            "type": "library",
            "name": package.name.as_str(),
            "version": version,
        });
        if let Some(licence) = &package.license {
            component["licenses"] = json!([{ "expression": licence }]);
        }
        // Ours are in no registry.
        if package.source.is_some() {
            component["purl"] = json!(format!("pkg:cargo/{}@{version}", package.name));
        }
        components.push(component);
    }
    components.sort_by_key(|component| format!("{}@{}", component["name"], component["version"]));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": name, "version": VERSION } },
        "components": components,
    });
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

/// The crates that are linked into the programs of a crate: not what only builds or tests them.
fn linked<'a>(metadata: &'a Metadata, of_crate: &str) -> Result<BTreeSet<&'a PackageId>> {
    let graph = metadata.resolve.as_ref().context("cargo metadata: found no dependencies")?;
    let nodes: BTreeMap<&PackageId, _> = graph.nodes.iter().map(|node| (&node.id, node)).collect();
    let first = metadata.packages.iter().find(|package| package.name.as_str() == of_crate);
    let first = first.with_context(|| format!("cargo metadata: found no crate {of_crate}"))?;
    let mut linked = BTreeSet::from([&first.id]);
    let mut waiting = vec![&first.id];
    while let Some(id) = waiting.pop() {
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            let is_linked = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if is_linked && linked.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    Ok(linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_lists_what_is_linked_and_not_what_tests_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let bill: Value = serde_json::from_str(&of(&root, "wingbeat-onboard", "wingbeatd").unwrap()).unwrap();
        let components = bill["components"].as_array().unwrap();
        let has = |name: &str| components.iter().find(|component| component["name"] == name);
        let tokio = has("tokio").unwrap();
        assert!(tokio["purl"].as_str().unwrap().starts_with("pkg:cargo/tokio@1."), "{tokio}");
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        assert!(has("wingbeat-agent").is_some() && has("wingbeat-onboard").is_some());
        assert!(has("tempfile").is_none(), "it only tests");
        assert!(has("wingbeat-sim").is_none());
    }
}
