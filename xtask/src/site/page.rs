//! A page of the documentation as read: title, headings, links, and its events for whoever writes it.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// A heading, and the text below it up to the next one.
pub(super) struct SitePart {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) level: HeadingLevel,
    pub(super) text: String,
}

/// A page that was read.
pub(super) struct Page {
    pub(super) file: PathBuf,
    pub(super) title: String,
    pub(super) parts: Vec<SitePart>,
    pub(super) events: Vec<Event<'static>>,
}

impl Page {
    pub(super) fn read(file: &Path, text: &str) -> Page {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let events: Vec<Event<'static>> = Parser::new_ext(text, options).map(Event::into_static).collect();
        let parts = parts(&events);
        let title = parts.first().map_or_else(|| file.display().to_string(), |part| part.title.clone());
        Page { file: file.to_owned(), title, parts, events }
    }

    /// Where the page is in the site: all pages are beside each other.
    pub(super) fn address(&self) -> String {
        if self.file == Path::new("README.md") {
            return "index.html".to_owned();
        }
        if self.file == Path::new("docs/README.md") {
            return "docs.html".to_owned();
        }
        let stem = self.file.with_extension("");
        let words: Vec<String> =
            stem.components().map(|word| word.as_os_str().to_string_lossy().to_lowercase()).collect();
        let words = words.strip_prefix(&["docs".to_owned()]).unwrap_or(&words);
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "readme").collect();
        format!("{}.html", words.join("-"))
    }

    /// Links to pages, headings and files that are not there.
    pub(super) fn broken_links(&self, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
        let links = self.events.iter().filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
            _ => None,
        });
        let broken = links.filter(|link| matches!(self.target(link, pages), LinkTarget::Missing));
        broken.map(|link| format!("{}: the link {link} leads nowhere", self.file.display())).collect()
    }

    /// The files of the repository that the page shows as pictures.
    pub(super) fn pictures(&self) -> Vec<PathBuf> {
        let shown = self.events.iter().filter_map(|event| match event {
            Event::Start(Tag::Image { dest_url, .. }) => self.picture(dest_url),
            _ => None,
        });
        shown.collect()
    }

    /// The file that a picture of this page is; none if it is on another site.
    pub(super) fn picture(&self, link: &str) -> Option<PathBuf> {
        (!link.contains("://")).then(|| joined(&self.file, link))
    }

    /// The files that the page has links to, whether they are pages or not.
    pub(super) fn linked_files(&self) -> Vec<PathBuf> {
        let links = self.events.iter().filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) if !dest_url.contains("://") => {
                let path = dest_url.split('#').next().unwrap_or_default();
                Some(joined(&self.file, path))
            }
            _ => None,
        });
        links.collect()
    }

    /// What a link of this page leads to.
    pub(super) fn target(&self, link: &str, pages: &BTreeMap<PathBuf, Page>) -> LinkTarget {
        if link.contains("://") || link.starts_with("mailto:") {
            return LinkTarget::Elsewhere;
        }
        let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
        let file = if path.is_empty() { self.file.clone() } else { joined(&self.file, path) };
        let Some(page) = pages.get(&file) else {
            let is_there = crate::sources::root().join(&file).exists();
            return if is_there { LinkTarget::Source } else { LinkTarget::Missing };
        };
        match anchor {
            None => LinkTarget::Page(page.address()),
            Some(anchor) if page.parts.iter().any(|part| part.id == anchor) => {
                LinkTarget::Page(format!("{}#{anchor}", page.address()))
            }
            Some(_) => LinkTarget::Missing,
        }
    }
}

/// What a link leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkTarget {
    /// A page of the site, with its address.
    Page(String),
    /// A file of the repository that is no page.
    Source,
    /// Another site.
    Elsewhere,
    /// Nothing.
    Missing,
}

/// Where a picture is in the site: beside the pages, as they are beside each other.
pub(super) fn picture_address(file: &Path) -> String {
    let words: Vec<String> =
        file.components().map(|word| word.as_os_str().to_string_lossy().to_lowercase()).collect();
    words.strip_prefix(&["docs".to_owned()]).unwrap_or(&words).join("-")
}

/// A path as seen from a file, without `.` and `..`.
fn joined(file: &Path, path: &str) -> PathBuf {
    let mut whole = file.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                whole.pop();
            }
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    whole
}

/// The headings with their text; identifiers are made as code forges make them, so that links hold in both places.
fn parts(events: &[Event<'_>]) -> Vec<SitePart> {
    let mut parts: Vec<SitePart> = Vec::new();
    let mut heading: Option<(HeadingLevel, String)> = None;
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some((*level, String::new())),
            Event::End(TagEnd::Heading(_)) => {
                let Some((level, title)) = heading.take() else { continue };
                let id = unused(&parts, &slug(&title));
                parts.push(SitePart { id, title, level, text: String::new() });
            }
            Event::Text(text) | Event::Code(text) => match (&mut heading, parts.last_mut()) {
                (Some((_, title)), _) => title.push_str(text),
                (None, Some(part)) => {
                    part.text.push_str(text);
                    part.text.push(' ');
                }
                (None, None) => {}
            },
            _ => {}
        }
    }
    parts
}

fn unused(parts: &[SitePart], slug: &str) -> String {
    let is_used = |id: &str| parts.iter().any(|part| part.id == id);
    let numbered = (1..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.to_owned()).chain(numbered).find(|id| !is_used(id)).unwrap_or_default()
}

pub(super) fn slug(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The language of a code block, and why our tests do not run it, if they do not.
pub(super) fn code_kind<'a>(kind: &'a CodeBlockKind<'_>) -> (&'a str, Option<&'a str>) {
    let CodeBlockKind::Fenced(info) = kind else { return ("", None) };
    let info: &CowStr<'_> = info;
    let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
    (language, rest.trim().strip_prefix("not-run:").map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> BTreeMap<PathBuf, Page> {
        let of = |file: &str, text: &str| (PathBuf::from(file), Page::read(Path::new(file), text));
        BTreeMap::from([
            of(
                "README.md",
                "# Home\n\n[a](docs/a.md#two-words) [b](xtask) [c](docs/none.md) [d](https://e/)",
            ),
            of("docs/a.md", "# A\n\n## Two words\n\n## Two words\n\n[up](../README.md) [own](#a) [no](#b)"),
        ])
    }

    #[test]
    fn pictures_are_files_beside_the_pages() {
        let page = Page::read(
            Path::new("docs/a.md"),
            "![a](a/one.png) ![b](https://e/two.png) [c](b.md#d) [e](../README.md)",
        );
        assert_eq!(page.pictures(), [PathBuf::from("docs/a/one.png")]);
        assert_eq!(picture_address(&page.pictures()[0]), "a-one.png");
        assert_eq!(page.linked_files(), [PathBuf::from("docs/b.md"), PathBuf::from("README.md")]);
    }

    #[test]
    fn links_lead_to_pages_and_headings() {
        let pages = pages();
        let home = &pages[Path::new("README.md")];
        let check =
            |link: &str, expected: LinkTarget| assert_eq!(home.target(link, &pages), expected, "{link}");
        check("docs/a.md", LinkTarget::Page("a.html".to_owned()));
        check("docs/a.md#two-words-1", LinkTarget::Page("a.html#two-words-1".to_owned()));
        check("docs/a.md#three", LinkTarget::Missing);
        check("xtask", LinkTarget::Source);
        check("https://example.org/", LinkTarget::Elsewhere);
        assert_eq!(home.broken_links(&pages), ["README.md: the link docs/none.md leads nowhere"]);
        let other = &pages[Path::new("docs/a.md")];
        assert_eq!(other.broken_links(&pages), ["docs/a.md: the link #b leads nowhere"]);
        assert_eq!(other.target("../README.md", &pages), LinkTarget::Page("index.html".to_owned()));
    }

    #[test]
    fn identifiers_are_those_of_code_forges() {
        assert_eq!(slug("What `x` is, and isn't"), "what-x-is-and-isnt");
        assert_eq!(slug("From A to B"), "from-a-to-b");
    }

    #[test]
    fn code_blocks_say_what_they_are() {
        let fenced = |info: &str| CodeBlockKind::Fenced(info.to_owned().into());
        assert_eq!(code_kind(&fenced("sh server")), ("sh", None));
        assert_eq!(code_kind(&fenced("sh not-run: too long")), ("sh", Some("too long")));
        assert_eq!(code_kind(&CodeBlockKind::Indented), ("", None));
    }
}
