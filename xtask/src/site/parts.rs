//! What pages are written as: the document with its navigation, and the index of the search.

use super::page::{LinkTarget, Page, code_kind, picture_address};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Tag, TagEnd, html};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Characters of a part that the search knows; the longest parts are tables of this size.
const INDEXED_CHARACTERS_MAX: usize = 20_000;

/// A whole page.
pub(super) fn document(
    page: &Page,
    navigation: &[(&str, Vec<&Page>)],
    pages: &BTreeMap<PathBuf, Page>,
) -> String {
    let title = escaped(&page.title);
    let title = if page.title == "Astrarium" { title } else { format!("{title} · Astrarium") };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n\
         <script src=\"search-index.js\" defer></script>\n<script src=\"search.js\" defer></script>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the text</a>\n<header><a href=\"index.html\">Astrarium</a>\n\
         <div id=\"search\" role=\"search\" hidden><label>Search <input type=\"search\" autocomplete=\"off\"></label>\
         <ol aria-live=\"polite\"></ol></div></header>\n<main id=\"content\">\n{}</main>\n<nav aria-label=\"Pages\">{}</nav>\n\
         <nav class=\"within\" aria-label=\"On this page\">{}</nav>\n</body>\n</html>\n",
        body(page, pages),
        links(page, navigation),
        within(page)
    )
}

fn links(page: &Page, navigation: &[(&str, Vec<&Page>)]) -> String {
    let mut text = String::new();
    for (title, pages) in navigation {
        let _ = write!(text, "\n<h2>{title}</h2>\n<ul>");
        for other in pages {
            let current = if other.file == page.file { " aria-current=\"page\"" } else { "" };
            let _ = write!(
                text,
                "\n<li><a href=\"{}\"{current}>{}</a></li>",
                other.address(),
                escaped(&other.title)
            );
        }
        text.push_str("\n</ul>");
    }
    text
}

/// The headings of the page, if there are enough to be lost in.
fn within(page: &Page) -> String {
    let parts: Vec<_> = page.parts.iter().filter(|part| part.level == HeadingLevel::H2).collect();
    if parts.len() < 2 {
        return String::new();
    }
    let items =
        parts.iter().map(|part| format!("<li><a href=\"#{}\">{}</a></li>", part.id, escaped(&part.title)));
    format!("<h2>On this page</h2><ul>{}</ul>", items.collect::<String>())
}

fn body(page: &Page, pages: &BTreeMap<PathBuf, Page>) -> String {
    let mut ids = page.parts.iter().map(|part| part.id.clone());
    let mut dropped_links = 0_usize;
    let events = page.events.iter().cloned().filter_map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = ids.next().map(CowStr::from);
            Some(Event::Start(Tag::Heading { level, id, classes, attrs }))
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => match page.target(&dest_url, pages) {
            LinkTarget::Page(address) => {
                Some(Event::Start(Tag::Link { link_type, dest_url: address.into(), title, id }))
            }
            LinkTarget::Elsewhere => Some(Event::Start(Tag::Link { link_type, dest_url, title, id })),
            LinkTarget::Source | LinkTarget::Missing => {
                dropped_links += 1;
                None
            }
        },
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let address = page.picture(&dest_url).map_or(dest_url, |file| picture_address(&file).into());
            Some(Event::Start(Tag::Image { link_type, dest_url: address, title, id }))
        }
        Event::End(TagEnd::Link) if dropped_links > 0 => {
            dropped_links -= 1;
            None
        }
        Event::Start(Tag::CodeBlock(kind)) => Some(Event::Html(code_start(&code_kind(&kind)).into())),
        Event::End(TagEnd::CodeBlock) => Some(Event::Html("</code></pre>\n".into())),
        // Comments are for those who write pages; other markup is shown.
        Event::Html(text) | Event::InlineHtml(text) if text.trim_start().starts_with("<!--") => None,
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        other => Some(other),
    });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text.replace("<table>", "<div class=\"wide\"><table>").replace("</table>", "</table></div>")
}

fn code_start((language, reason): &(&str, Option<&str>)) -> String {
    let note =
        reason.map(|reason| format!("<p class=\"note\">Not run by our tests: {}.</p>\n", escaped(reason)));
    format!("{}<pre tabindex=\"0\"><code class=\"language-{}\">", note.unwrap_or_default(), escaped(language))
}

/// The index as a script, since pages that are opened as files may load scripts and nothing else.
pub(super) fn search_index(pages: &[&Page]) -> String {
    let parts = pages.iter().flat_map(|page| {
        page.parts.iter().map(|part| {
            let text: String = part.text.chars().take(INDEXED_CHARACTERS_MAX).collect();
            serde_json::json!([format!("{}#{}", page.address(), part.id), page.title, part.title, text])
        })
    });
    format!("window.searchIndex = {};\n", serde_json::Value::Array(parts.collect()))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[track_caller]
    fn check(markdown: &str, expected: &str) {
        let page = Page::read(Path::new("docs/a.md"), markdown);
        let found = body(&page, &BTreeMap::new());
        assert!(found.contains(expected), "{expected} in {found}");
    }

    #[test]
    fn pages_are_text() {
        check("# <b>A</b>", "<h1 id=\"a\">");
        check("x <script>alert(1)</script>", "&lt;script&gt;");
        check("<!-- made by hand -->\n\ntext", "<p>text</p>");
        check("```sh not-run: <too> long\nls\n```", "Not run by our tests: &lt;too&gt; long.");
        check("```sh\na < b\n```", "<code class=\"language-sh\">a &lt; b");
        check("[code](../xtask)", "<p>code</p>");
        check("![shown](a/one.png)", "<img src=\"a-one.png\" alt=\"shown\"");
        check("[there](https://example.org/)", "<a href=\"https://example.org/\">there</a>");
    }
}
