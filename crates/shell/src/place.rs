//! Where in the account one is, and paths to elsewhere: `/database/container/item`.
//!
//! A path is relative to the place unless it begins with `/`; `..` goes up. A word in quotes is one name, whatever is in it.

use crate::failure::ShellFailure;
use crate::words::CommandWord;

/// A place in the account: the ids from the root on, at most database, container and item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellPlace {
    parts: Vec<String>,
}

impl ShellPlace {
    /// Names of the levels.
    const DEPTH_MAX: usize = 3;

    /// Follows a word from here.
    pub(crate) fn follow(&self, word: &CommandWord) -> Result<ShellPlace, ShellFailure> {
        if word.is_quoted {
            let mut place = self.clone();
            place.enter(&word.text)?;
            return Ok(place);
        }
        self.follow_path(&word.text)
    }

    /// Follows a path from here.
    pub(crate) fn follow_path(&self, path: &str) -> Result<ShellPlace, ShellFailure> {
        let mut place = if path.starts_with('/') { ShellPlace::default() } else { self.clone() };
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match part {
                "." => {}
                ".." => {
                    place.parts.pop();
                }
                _ => place.enter(part)?,
            }
        }
        Ok(place)
    }

    fn enter(&mut self, part: &str) -> Result<(), ShellFailure> {
        if self.parts.len() == Self::DEPTH_MAX {
            return Err(ShellFailure::told("paths have at most three parts: /database/container/item"));
        }
        self.parts.push(part.to_owned());
        Ok(())
    }

    pub(crate) fn database(&self) -> Option<&str> {
        self.parts.first().map(String::as_str)
    }

    pub(crate) fn container(&self) -> Option<(&str, &str)> {
        Some((self.parts.first()?, self.parts.get(1)?))
    }

    pub(crate) fn item(&self) -> Option<(&str, &str, &str)> {
        Some((self.parts.first()?, self.parts.get(1)?, self.parts.get(2)?))
    }

    pub(crate) fn depth(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn parent(&self) -> ShellPlace {
        ShellPlace { parts: self.parts.iter().take(self.parts.len().saturating_sub(1)).cloned().collect() }
    }
}

impl std::fmt::Display for ShellPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "/{}", astrarium_client::harmless(&self.parts.join("/")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let here = ShellPlace::default().follow_path("/d/c").unwrap();
        let check = |path: &str, expected: &str| {
            assert_eq!(here.follow_path(path).unwrap().to_string(), expected, "{path}");
        };
        check("1", "/d/c/1");
        check("..", "/d");
        check("../..", "/");
        check("../../../..", "/");
        check("/x//y/", "/x/y");
        check("../e/./2", "/d/e/2");
        assert!(here.follow_path("1/2").is_err());
        let quoted = CommandWord { text: "a/../b".to_owned(), is_quoted: true };
        assert_eq!(here.follow(&quoted).unwrap().item(), Some(("d", "c", "a/../b")));
        assert_eq!(here.follow_path("1").unwrap().parent(), here);
    }
}
