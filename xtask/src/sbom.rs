//! `cargo xtask sbom FILE`: what the program is made of, as CycloneDX 1.5 in JSON.
//!
//! In: `cargo metadata` and `Cargo.lock`. Out: every crate that is compiled into the program or runs while it is built, with version, licence,
//! checksum, and what it uses. Tools and tests of ours are not part of it. The same sources give the same bytes: no time, no serial number.

use crate::environment;
use crate::sources;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The package that the program comes from.
const PROGRAM: &str = "astrarium-server";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<bool> {
    let [file] = arguments else { anyhow::bail!("sbom FILE") };
    let output = environment::program("cargo")
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .output()
        .context("run cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let checksums = checksums(&sources::read(&sources::root().join("Cargo.lock"))?)?;
    let document = document(&metadata, &checksums)?;
    std::fs::write(file, serde_json::to_string_pretty(&document)? + "\n")
        .with_context(|| format!("write {file}"))?;
    println!("sbom: {} parts in {file}", document["components"].as_array().map_or(0, Vec::len));
    Ok(true)
}

/// Checksums of the packages of the lock file, by name and version.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let table: toml::Table = lock.parse().context("Cargo.lock")?;
    let packages = table.get("package").and_then(toml::Value::as_array).context("packages of Cargo.lock")?;
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    Ok(packages
        .iter()
        .filter_map(|package| {
            Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?))
        })
        .collect())
}

fn document(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Value> =
        list(metadata, "packages").filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let uses: BTreeMap<&str, Vec<&str>> = list(&metadata["resolve"], "nodes")
        .filter_map(|node| Some((node["id"].as_str()?, used(node))))
        .collect();
    let root = packages.iter().find(|(_, package)| package["name"] == PROGRAM);
    let (root, program) = root.with_context(|| format!("the package {PROGRAM}"))?;
    let mut reached = BTreeSet::from([*root]);
    let mut open = vec![*root];
    while let Some(id) = open.pop() {
        open.extend(uses.get(id).into_iter().flatten().filter(|id| reached.insert(id)));
    }
    let reference = |id: &str| packages.get(id).map(|package| locator(package)).unwrap_or_default();
    let mut components: Vec<Value> = reached
        .iter()
        .filter(|id| *id != root)
        .filter_map(|id| Some(component(packages.get(id)?, checksums)))
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let mut dependencies: Vec<Value> = reached
        .iter()
        .map(|id| {
            let used: BTreeSet<String> = uses.get(id).into_iter().flatten().map(|id| reference(id)).collect();
            json!({"ref": reference(id), "dependsOn": used})
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    let mut about = component(program, checksums);
    about["type"] = "application".into();
    about["name"] = "astrarium".into();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": about},
        "components": components,
        "dependencies": dependencies,
    }))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// What a package uses when it is built into something, or while it is built; not what its tests use.
fn used(node: &Value) -> Vec<&str> {
    list(node, "deps")
        .filter(|dependency| list(dependency, "dep_kinds").any(|kind| kind["kind"] != "dev"))
        .filter_map(|dependency| dependency["pkg"].as_str())
        .collect()
}

fn locator(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": "library",
        "bom-ref": locator(package),
        "purl": locator(package),
        "name": text("name"),
        "version": text("version"),
    });
    if let Some(licence) = package["license"].as_str() {
        // Some packages still write a slash where the word belongs.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_compiled_in_is_a_part() {
        let package = |id: &str, name: &str| json!({"id": id, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let uses = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("s", PROGRAM), package("a", "alpha"), package("b", "beta"), package("c", "gamma")],
            "resolve": {"nodes": [
                {"id": "s", "deps": [uses("a", Value::Null), uses("b", "dev".into())]},
                {"id": "a", "deps": [uses("c", "build".into())]},
                {"id": "b", "deps": []},
                {"id": "c", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"alpha\"\nversion = \"1.0.0\"\nchecksum = \"ab12\"\n";
        let made = document(&metadata, &checksums(lock).expect("a lock file")).expect("a document");
        let names: Vec<&str> = list(&made, "components").filter_map(|part| part["name"].as_str()).collect();
        assert_eq!(names, ["alpha", "gamma"]);
        assert_eq!(made["components"][0]["hashes"][0]["content"], "ab12");
        assert_eq!(made["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(made["metadata"]["component"]["name"], "astrarium");
        assert_eq!(made["dependencies"].as_array().map(Vec::len), Some(3));
    }
}
