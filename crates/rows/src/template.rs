//! Texts made from a row: `{country}-{address.zip}`, for ids and partition keys.
//!
//! `{name}` stands for a property, dots lead into objects, `{#}` for the number of the row, `{{` and `}}` for braces. Strings stand as they are,
//! numbers and booleans as they are written; anything else, or nothing, fails the row.

use crate::RowsError;
use astrarium_value::json::{Kind, Node};

/// Longest text that a template may make: an id has at most 1,023 characters, a key 2 KB.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    RowNumber,
    Property(Vec<String>),
}

impl TextTemplate {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<TextTemplate, RowsError> {
        let bad = |what: &str| RowsError::input(format!("the template {text:?} {what}"));
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '{' if rest.starts_with('{') => {
                    literal.push('{');
                    rest = &rest[1..];
                }
                '}' if rest.starts_with('}') => {
                    literal.push('}');
                    rest = &rest[1..];
                }
                '}' => return Err(bad("has a } without {; a brace itself is written }}")),
                '{' => {
                    let (name, after) = rest.split_once('}').ok_or_else(|| bad("has a { without }"))?;
                    if name.is_empty() || name.split('.').any(str::is_empty) {
                        return Err(bad("has a property without a name"));
                    }
                    if !literal.is_empty() {
                        parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(match name {
                        "#" => TemplatePart::RowNumber,
                        name => TemplatePart::Property(name.split('.').map(str::to_owned).collect()),
                    });
                    rest = after;
                }
                other => literal.push(other),
            }
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        if parts.is_empty() {
            return Err(bad("is empty"));
        }
        Ok(TextTemplate { parts })
    }

    /// The text for a row, or why there is none.
    pub fn fill(&self, row: Node<'_>, number: u64) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::RowNumber => text.push_str(&number.to_string()),
                TemplatePart::Property(path) => text.push_str(&property(row, path)?),
            }
            if text.len() > TEXT_BYTES_MAX {
                return Err(format!("a template makes more than {TEXT_BYTES_MAX} bytes"));
            }
        }
        Ok(text)
    }
}

fn property(row: Node<'_>, path: &[String]) -> Result<String, String> {
    let found =
        path.iter().try_fold(row, |node, name| (node.kind() == Kind::Object).then(|| node.get(name))?);
    let shown = path.join(".");
    match found {
        None => Err(format!("a template needs the property {shown:?}, which it lacks")),
        Some(node) => match node.kind() {
            Kind::String => Ok(node.as_str().unwrap_or_default().into_owned()),
            Kind::Number | Kind::Bool => Ok(node.raw().to_owned()),
            _ => Err(format!("a template needs the property {shown:?} as a string, number or boolean")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astrarium_value::json::Text;

    #[test]
    fn templates() {
        let text =
            Text::parse(b"{\"a\":\"x\",\"n\":12345678901234567890,\"o\":{\"b\":true},\"l\":[]}").unwrap();
        let fill = |template: &str| TextTemplate::parse(template).unwrap().fill(text.root(), 7);
        assert_eq!(fill("{a}-{n}/{o.b}#{#}{{}}").unwrap(), "x-12345678901234567890/true#7{}");
        for (template, fragment) in
            [("{z}", "lacks"), ("{o}", "as a string"), ("{l.b}", "lacks"), ("{a.b}", "lacks")]
        {
            assert!(fill(template).unwrap_err().contains(fragment), "{template}");
        }
        for bad in ["", "{", "a}", "{}", "{a.}", "{a"] {
            assert!(TextTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
