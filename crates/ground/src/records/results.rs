//! The page of what a campaign of the bench came to, beside its figures. The file may have been copied there
//! from elsewhere: it is served as a page of others, without scripts.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use wingbeat_api::RecordedResults;

use super::TEXT_MAX;

/// The figures of a campaign, beside which its page stands.
pub(super) const FIGURES: &str = "results.json";
/// The page.
const PAGE: &str = "index.html";
/// No longer page is served, bytes.
const PAGE_LEN_MAX: u64 = 64 << 20;
/// So much of it is read for its title, bytes.
const HEAD_LEN: u64 = 4 << 10;

/// Whether it is the page of a campaign's results by its name, and by what stands beside it.
pub(super) fn is_page(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == PAGE) && path.with_file_name(FIGURES).is_file()
}

/// What of the page in a folder is listed.
pub(super) fn about(root: &Path, folder: &Path) -> Option<RecordedResults> {
    let path = folder.join(PAGE);
    let about = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
    let mut head = Vec::new();
    File::open(&path).ok()?.take(HEAD_LEN).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let title = head.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let title = title.map_or_else(String::new, |(title, _)| plain(title));
    let page = path.strip_prefix(root).ok()?.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    Some(RecordedResults { page, title, length_bytes: about.len() })
}

/// A title without what HTML writes for the characters that it reserves.
fn plain(title: &str) -> String {
    let title = title.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    title.trim().chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect()
}

/// The page.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    File::open(path)?.take(PAGE_LEN_MAX + 1).read_to_end(&mut page)?;
    if page.len() as u64 > PAGE_LEN_MAX {
        return Err(io::Error::other(format!(
            "found a longer page, expected at most {} MB",
            PAGE_LEN_MAX >> 20
        )));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_read_as_it_was_meant() {
        assert_eq!(plain(" Loss &lt; 10 % &amp;amp; more\n"), "Loss < 10 % &amp; more");
    }
}
