//! What we depend on: its licences, where it comes from, what we do not want, and known faults of it.
//!
//! In: `cargo metadata`, `deny.toml` (read by cargo-deny as well), `advisories.txt`. Out: the problems, in words.
//! It runs everywhere, since it needs neither a tool nor the network: cargo-deny would be minutes of building, and the
//! advisories of RustSec live where build machines may not reach. So `advisories.txt` is a dated copy of those that touch
//! our dependencies; it also lists what was looked up, and what was not is told.

use crate::environment;
use crate::sources;
use anyhow::Context as _;
use semver::{Version, VersionReq};
use serde_json::Value;

/// Where dependencies may come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn run() -> anyhow::Result<bool> {
    let policy = Policy::read(&sources::read(&sources::root().join("deny.toml"))?)?;
    let advisories = Advisories::read(&sources::read(&sources::root().join("advisories.txt"))?)?;
    let packages = packages()?;
    let mut problems = Vec::new();
    for package in &packages {
        package.check(&policy, &mut problems);
        advisories.check(package, &mut problems);
    }
    for problem in &problems {
        println!("licences: {problem}");
    }
    let unknown: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
    let unknown: Vec<&str> = unknown.into_iter().filter(|name| !advisories.covers(name)).collect();
    println!("licences: {} packages, {} problems", packages.len(), problems.len());
    println!("licences: {} advisories as of {}", advisories.list.len(), advisories.date);
    println!("licences: not looked up: {}", unknown.join(" "));
    Ok(problems.is_empty())
}

/// The parts of deny.toml that we read.
struct Policy {
    allowed: Vec<String>,
    /// Licences that single packages may have besides.
    exceptions: Vec<(String, Vec<String>)>,
    banned: Vec<BannedPackage>,
}

/// A package that only its wrappers may depend on; nobody if there are none.
struct BannedPackage {
    name: String,
    wrappers: Vec<String>,
}

impl Policy {
    fn read(text: &str) -> anyhow::Result<Policy> {
        let table: toml::Table = text.parse().context("deny.toml")?;
        let list = |section: &str, key: &str| -> anyhow::Result<Vec<toml::Value>> {
            let value = table.get(section).and_then(|section| section.get(key));
            value.and_then(|value| value.as_array().cloned()).with_context(|| format!("{section}.{key}"))
        };
        let text = |value: &toml::Value| value.as_str().map(str::to_owned).context("a text in deny.toml");
        let texts = |value: Option<&toml::Value>| -> anyhow::Result<Vec<String>> {
            let list = value.map(|value| value.as_array().context("a list in deny.toml")).transpose()?;
            list.into_iter().flatten().map(text).collect()
        };
        let name = |entry: &toml::Value| text(entry.get("crate").context("an entry's crate in deny.toml")?);
        let exceptions = list("licenses", "exceptions").unwrap_or_default();
        let exceptions = exceptions.iter().map(|entry| Ok((name(entry)?, texts(entry.get("allow"))?)));
        let banned = list("bans", "deny")?;
        let banned = banned
            .iter()
            .map(|entry| Ok(BannedPackage { name: name(entry)?, wrappers: texts(entry.get("wrappers"))? }));
        Ok(Policy {
            allowed: list("licenses", "allow")?.iter().map(text).collect::<Result<_, _>>()?,
            exceptions: exceptions.collect::<anyhow::Result<_>>()?,
            banned: banned.collect::<anyhow::Result<_>>()?,
        })
    }
}

/// A package of somebody else.
struct Package {
    name: String,
    version: Version,
    licence: String,
    source: String,
    /// Who depends on it, by name.
    users: Vec<String>,
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let mut command = environment::program("cargo");
    command.args(["metadata", "--format-version", "1", "--locked"]);
    let output = command.output().context("start cargo metadata")?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let all = metadata["packages"].as_array().context("cargo metadata names packages")?;
    let foreign = all.iter().filter(|package| !package["source"].is_null());
    foreign.map(|package| Package::read(package, users(&metadata, all, &package["id"]))).collect()
}

/// The names of the packages that depend on one, for whatever target.
fn users(metadata: &Value, packages: &[Value], id: &Value) -> Vec<String> {
    let nodes = metadata["resolve"]["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let uses = |node: &&Value| node["dependencies"].as_array().is_some_and(|used| used.contains(id));
    let user = |node: &Value| packages.iter().find(|package| package["id"] == node["id"]);
    let names = nodes.iter().filter(uses).filter_map(user).filter_map(|user| user["name"].as_str());
    names.map(str::to_owned).collect()
}

impl Package {
    fn read(package: &Value, users: Vec<String>) -> anyhow::Result<Package> {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let version = text("version").parse().context("a package's version")?;
        let (name, licence, source) = (text("name"), text("license"), text("source"));
        Ok(Package { name, version, licence, source, users })
    }

    fn check(&self, policy: &Policy, problems: &mut Vec<String>) {
        let Package { name, version, licence, source, users } = self;
        let excepted = policy.exceptions.iter().filter(|(excepted, _)| excepted == name);
        let allowed = excepted.flat_map(|(_, allowed)| allowed).chain(&policy.allowed).cloned();
        if !is_allowed(licence, &allowed.collect::<Vec<_>>()) {
            problems.push(format!(
                "{name} {version} has the licence {licence:?}, which deny.toml does not allow"
            ));
        }
        if let Some(banned) = policy.banned.iter().find(|banned| banned.name == *name) {
            let is_wrapped = !banned.wrappers.is_empty() && !users.is_empty();
            let stranger = users.iter().find(|user| !banned.wrappers.contains(user));
            match stranger {
                None if is_wrapped => {}
                None => problems.push(format!("{name} {version} is banned by deny.toml")),
                Some(user) => {
                    problems.push(format!("{name} {version} is banned by deny.toml, and {user} has it"));
                }
            }
        }
        if source != REGISTRY {
            problems.push(format!("{name} {version} comes from {source}, which is not crates.io"));
        }
    }
}

/// Whether a licence expression can be met with allowed licences alone.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut good = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        good |= all_of(words, allowed);
    }
    good
}

fn all_of(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut good = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        good &= one(words, allowed);
    }
    good
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let good = any_of(words, allowed);
        return words.next() == Some(")") && good;
    }
    let mut licence = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next().unwrap_or_default());
    }
    allowed.contains(&licence)
}

/// The copy of what RustSec says about our dependencies.
struct Advisories {
    date: String,
    covered: Vec<String>,
    list: Vec<Advisory>,
}

struct Advisory {
    id: String,
    package: String,
    /// Versions that do not have the fault: one of these has to match.
    good: Vec<VersionReq>,
}

impl Advisories {
    fn read(text: &str) -> anyhow::Result<Advisories> {
        let mut all = Advisories { date: String::new(), covered: Vec::new(), list: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (head, rest) = line.split_once(": ").with_context(|| format!("advisories.txt: {line}"))?;
            match head.split_once(' ') {
                None if head == "date" => rest.clone_into(&mut all.date),
                None => all.covered.extend(rest.split_whitespace().map(str::to_owned)),
                Some((id, package)) => {
                    let good = rest.split('|').map(|good| VersionReq::parse(good.trim()));
                    let good = good.collect::<Result<_, _>>().with_context(|| line.to_owned())?;
                    all.list.push(Advisory { id: id.to_owned(), package: package.to_owned(), good });
                }
            }
        }
        Ok(all)
    }

    fn covers(&self, name: &str) -> bool {
        self.covered.iter().any(|covered| covered == name)
    }

    fn check(&self, package: &Package, problems: &mut Vec<String>) {
        let Package { name, version, .. } = package;
        for advisory in self.list.iter().filter(|advisory| advisory.package == *name) {
            if !advisory.good.iter().any(|good| good.matches(version)) {
                problems.push(format!("{name} {version} has the fault {}", advisory.id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        let check =
            |expression, expected| assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("", false);
        check("MIT OR GPL-3.0-only", true);
        check("GPL-3.0-only/MIT", true);
        check("MIT AND GPL-3.0-only", false);
        check("(MIT OR GPL-3.0-only) AND ISC", true);
        check("(MIT OR GPL-3.0-only) AND Zlib", false);
        check("Apache-2.0 WITH LLVM-exception OR Zlib", true);
        check("Apache-2.0", false);
        check("MIT MIT", false);
    }

    #[test]
    fn exceptions_hold_for_whom_they_name() {
        let policy = Policy::read(
            "[licenses]\nallow = [\"MIT\"]\nexceptions = [{ crate = \"odd\", allow = [\"CC0-1.0\"] }]\n\
             [bans]\ndeny = [{ crate = \"never\" }, { crate = \"inside\", wrappers = [\"around\"] }]\n",
        );
        let policy = policy.unwrap();
        let check = |name: &str, licence: &str, users: &[&str], expected: &str| {
            let users = users.iter().map(|user| (*user).to_owned()).collect();
            let (name, licence, source) = (name.to_owned(), licence.to_owned(), REGISTRY.to_owned());
            let package = Package { name, version: Version::new(1, 0, 0), licence, source, users };
            let mut problems = Vec::new();
            package.check(&policy, &mut problems);
            let told = problems.join("; ");
            assert!(
                told.contains(expected) && told.is_empty() == expected.is_empty(),
                "{told:?} {expected:?}"
            );
        };
        check("good", "MIT", &["us"], "");
        check("odd", "CC0-1.0", &["us"], "");
        check("good", "CC0-1.0", &["us"], "has the licence");
        check("never", "MIT", &["us"], "banned");
        check("never", "MIT", &[], "banned");
        check("inside", "MIT", &["around"], "");
        check("inside", "MIT", &["around", "us"], "and us has it");
        check("inside", "MIT", &[], "banned");
    }

    #[test]
    fn a_faulty_version_is_found_and_a_mended_one_is_not() {
        let text = "date: 2026-11-16\nlooked-up: one two\nRUSTSEC-1 one: >= 1.2.3, < 2.0.0 | < 0.5.0\n";
        let advisories = Advisories::read(text).unwrap();
        assert!(advisories.covers("two") && !advisories.covers("three"));
        let check = |version: &str, expected: usize| {
            let (name, source) = ("one".to_owned(), REGISTRY.to_owned());
            let version = version.parse().unwrap();
            let mut problems = Vec::new();
            let (licence, users) = (String::new(), Vec::new());
            advisories.check(&Package { name, version, licence, source, users }, &mut problems);
            assert_eq!(problems.len(), expected, "{problems:?}");
        };
        check("1.2.2", 1);
        check("1.2.3", 0);
        check("2.0.0", 1);
        check("0.4.9", 0);
    }
}
