//! Packs the files of `assets/` into the program: each compressed as gzip, with its type and an entity tag.
//!
//! In: the folder, whose files are the built page as it is committed. Out: `assets.rs` in the build's own folder, a sorted table
//! that `lib.rs` includes. Same files give the same bytes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The level of compression: the best there is, since it is done once.
const LEVEL: u8 = 10;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("assets");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let mut names = Vec::new();
    list(&folder, "", &mut names)?;
    names.sort();
    let mut table = String::from("&[\n");
    for (index, name) in names.iter().enumerate() {
        let content = fs::read(folder.join(name))?;
        fs::write(out.join(format!("{index}.gz")), gzip(&content))?;
        let packed = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{index}.gz\"))");
        let etag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(&content));
        let _ = writeln!(
            table,
            "    Asset {{ name: {name:?}, content_type: {:?}, etag: {etag:?}, length: {}, gzip: {packed} }},",
            content_type(name)?,
            content.len()
        );
    }
    table.push(']');
    fs::write(out.join("assets.rs"), table)
}

/// All files below a folder, by their paths with slashes.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| io::Error::other(format!("{} is no text", name.display())))?;
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{path}/"), names)?;
        } else {
            names.push(path);
        }
    }
    Ok(())
}

/// What a file is, by the end of its name. One that is not known fails the build: a browser would not take it.
fn content_type(name: &str) -> io::Result<&'static str> {
    Ok(match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        _ => {
            return Err(io::Error::other(format!("assets/{name}: no content type is known for such a name")));
        }
    })
}

/// A gzip file of one member, without name and time.
fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    packed.extend(miniz_oxide::deflate::compress_to_vec(content, LEVEL));
    packed.extend(crc32fast::hash(content).to_le_bytes());
    packed.extend((content.len() as u32).to_le_bytes());
    packed
}
