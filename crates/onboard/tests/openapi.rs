//! The committed OpenAPI document is what the daemon serves.

use std::path::Path;

#[test]
fn the_committed_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi/wingbeatd.json");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let served = wingbeat_onboard::openapi().to_pretty_json().expect("JSON");
    assert!(
        committed.trim_end() == served,
        "docs/openapi/wingbeatd.json differs from the daemon; run `cargo xtask openapi` and commit it"
    );
}
