//! The explorer's page: the built files of `assets/`, packed into the program.
//!
//! In: a name. Out: an [`Asset`], compressed as it is sent, or unpacked for the few that take no gzip.
//! Invariants
//! - What is served is what is committed in `assets/`, which CI builds anew from `explorer/` and compares.
//! - Nothing here is secret, and nothing is read from the disk.
//!
//! Not here: who may see what, headers and caching (`gateway/src/explorer`).

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its path below `assets/`.
    pub name: &'static str,
    /// What it is, as a header says it.
    pub content_type: &'static str,
    /// Changes with the content; quotes included.
    pub etag: &'static str,
    /// Bytes of the content.
    pub length: usize,
    /// The content, compressed.
    pub gzip: &'static [u8],
}

/// All files, by name.
#[expect(clippy::unreadable_literal, reason = "the table is made by the build, and nobody reads it")]
pub const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Bytes before the compressed data of a gzip member without name.
const GZIP_HEAD: usize = 10;
/// Bytes behind them: checksum and length.
const GZIP_TAIL: usize = 8;

impl Asset {
    /// The file of a name.
    pub fn find(name: &str) -> Option<&'static Asset> {
        let place = ASSETS.binary_search_by(|asset| asset.name.cmp(name)).ok()?;
        ASSETS.get(place)
    }

    /// The content as it was before it was packed.
    pub fn content(&self) -> Vec<u8> {
        let end = self.gzip.len().saturating_sub(GZIP_TAIL);
        let deflated = self.gzip.get(GZIP_HEAD..end).unwrap_or_default();
        miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, self.length).unwrap_or_default()
    }

    /// Whether its name changes with its content, so that a browser may keep it for good: `name-<hash>.extension`, where the hash has
    /// eight hexadecimal digits at least, in lower case, and not only letters. Others are asked for again, and mostly not sent.
    pub fn is_immutable(&self) -> bool {
        let stem = self.name.rsplit_once('.').map_or(self.name, |(stem, _)| stem);
        stem.rsplit_once('-').is_some_and(|(_, hash)| {
            hash.len() >= 8
                && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                && hash.bytes().any(|byte| byte.is_ascii_digit())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_what_is_committed() {
        assert!(Asset::find("index.html").is_some() && Asset::find("index").is_none());
        for asset in ASSETS {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(asset.name);
            let committed = std::fs::read(path).expect("a file of the page");
            assert_eq!(asset.content(), committed, "{}", asset.name);
            assert_eq!(Asset::find(asset.name).expect("found by its name").etag, asset.etag);
        }
    }

    /// The page must come over a slow line in a second.
    #[test]
    fn the_page_is_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(bytes <= 350 << 10, "the page has {bytes} bytes compressed, more than 350 KB");
    }

    #[test]
    fn names_with_a_hash() {
        let check = |name, immutable| {
            let asset = Asset { name, content_type: "", etag: "", length: 0, gzip: &[] };
            assert_eq!(asset.is_immutable(), immutable, "{name}");
        };
        check("app-3fa9c01b.js", true);
        check("fonts/mono-3fa9c01b.woff2", true);
        check("app.js", false);
        check("app-3fa9.js", false);
        check("color-background.css", false);
        check("editor-language2.js", false);
        check("faded-facade.css", false);
        check("word-defacedfacade.css", false);
        check("index.html", false);
    }
}
