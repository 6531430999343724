//! JSON as a tree that keeps the spelling of numbers and the order of members, and patterns written like JSON.
//!
//! In: the text of a body, or of an expected body. Out: [`Json`], or where the text is wrong.
//! A pattern may have `...` at the end of an object or array (further members are welcome) and a hole such as `<any>`
//! in place of a value. Invariants
//! - A number is the text it was written as: `1E+2` and `100` differ, as they do for a reader of raw documents.
//! - Printing a tree and reading it again gives the same tree.
//!
//! Not here: comparing (`pattern`). The product's own reader is not used: it is what is being tested.

use std::fmt::{self, Write as _};

/// A value, or a pattern for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`, `true`, `false` or a number, as written.
    Word(String),
    /// A text, without escapes.
    Text(String),
    /// An array.
    Array {
        /// Its elements.
        items: Vec<Json>,
        /// Whether a pattern allows further elements.
        open: bool,
    },
    /// An object.
    Object {
        /// Its members in their order.
        members: Vec<(String, Json)>,
        /// Whether a pattern allows further members.
        open: bool,
    },
    /// A hole of a pattern: what stands between `<` and `>`.
    Hole(String),
}

impl Json {
    /// Reads JSON.
    pub fn parse(text: &str) -> Result<Json, String> {
        TestJsonReader::read(text, false)
    }

    /// Reads a pattern.
    pub fn parse_pattern(text: &str) -> Result<Json, String> {
        TestJsonReader::read(text, true)
    }

    /// The last member of this name.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object { members, .. } => {
                members.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Word(word) => out.write_str(word),
            Json::Text(text) => write!(out, "\"{}\"", escape(text)),
            Json::Hole(name) => write!(out, "<{name}>"),
            Json::Array { items, open } => {
                let items = items.iter().map(Json::to_string);
                write!(out, "[{}]", joined(items, *open))
            }
            Json::Object { members, open } => {
                let members = members.iter().map(|(name, value)| format!("\"{}\":{value}", escape(name)));
                write!(out, "{{{}}}", joined(members, *open))
            }
        }
    }
}

fn joined(parts: impl Iterator<Item = String>, open: bool) -> String {
    let mut parts: Vec<String> = parts.collect();
    if open {
        parts.push("...".to_owned());
    }
    parts.join(",")
}

/// The inside of a JSON text that means `text`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(control));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

struct TestJsonReader<'a> {
    text: &'a str,
    position: usize,
    pattern: bool,
}

impl<'a> TestJsonReader<'a> {
    fn read(text: &'a str, pattern: bool) -> Result<Json, String> {
        let mut reader = TestJsonReader { text, position: 0, pattern };
        let value = reader.value()?;
        reader.skip_space();
        if reader.position < text.len() { Err(reader.wrong("the end")) } else { Ok(value) }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn wrong(&self, wanted: &str) -> String {
        let near: String = self.rest().chars().take(20).collect();
        format!("not JSON: {wanted} expected at byte {}, before {near:?}", self.position)
    }

    fn skip_space(&mut self) {
        let trimmed = self.rest().trim_start_matches([' ', '\t', '\n', '\r']);
        self.position = self.text.len() - trimmed.len();
    }

    /// Takes a mark if it comes next.
    fn take(&mut self, mark: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(mark);
        if found {
            self.position += mark.len();
        }
        found
    }

    fn value(&mut self) -> Result<Json, String> {
        self.skip_space();
        match self.rest().chars().next() {
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"') => self.string().map(Json::Text),
            Some('<') if self.pattern => self.hole(),
            _ => self.word(),
        }
    }

    fn object(&mut self) -> Result<Json, String> {
        self.take("{");
        let mut members = Vec::new();
        let open = self.list("}", |reader| {
            reader.skip_space();
            let name = reader.string()?;
            if !reader.take(":") {
                return Err(reader.wrong("a colon"));
            }
            members.push((name, reader.value()?));
            Ok(())
        })?;
        Ok(Json::Object { members, open })
    }

    fn array(&mut self) -> Result<Json, String> {
        self.take("[");
        let mut items = Vec::new();
        let open = self.list("]", |reader| {
            items.push(reader.value()?);
            Ok(())
        })?;
        Ok(Json::Array { items, open })
    }

    /// Reads a list up to its end mark; true if it ends with `...`.
    fn list(
        &mut self,
        end: &str,
        mut one: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<bool, String> {
        if self.take(end) {
            return Ok(false);
        }
        loop {
            if self.pattern && self.take("...") {
                return if self.take(end) { Ok(true) } else { Err(self.wrong(end)) };
            }
            one(self)?;
            if self.take(end) {
                return Ok(false);
            }
            if !self.take(",") {
                return Err(self.wrong("a comma"));
            }
        }
    }

    fn hole(&mut self) -> Result<Json, String> {
        let end = self.rest().find('>').ok_or_else(|| self.wrong("the end of a hole"))?;
        let name = self.rest()[1..end].to_owned();
        self.position += end + 1;
        Ok(Json::Hole(name))
    }

    fn word(&mut self) -> Result<Json, String> {
        let is_part = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
        let word: String = self.rest().chars().take_while(|character| is_part(*character)).collect();
        let is_number = word.parse::<f64>().is_ok()
            && word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if !is_number && !matches!(word.as_str(), "null" | "true" | "false") {
            return Err(self.wrong("a value"));
        }
        self.position += word.len();
        Ok(Json::Word(word))
    }

    fn string(&mut self) -> Result<String, String> {
        if !self.rest().starts_with('"') {
            return Err(self.wrong("a text"));
        }
        self.position += 1;
        let mut units: Vec<u16> = Vec::new();
        loop {
            let character = self.rest().chars().next().ok_or_else(|| self.wrong("the end of a text"))?;
            self.position += character.len_utf8();
            match character {
                '"' => return Ok(String::from_utf16_lossy(&units)),
                '\\' => units.push(self.escaped()?),
                other => units.extend_from_slice(other.encode_utf16(&mut [0; 2])),
            }
        }
    }

    fn escaped(&mut self) -> Result<u16, String> {
        let letter = self.rest().chars().next().ok_or_else(|| self.wrong("an escape"))?;
        self.position += letter.len_utf8();
        let meant = match letter {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => letter,
            'u' => {
                let digits = self.rest().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let unit = digits.ok_or_else(|| self.wrong("four digits"))?;
                self.position += 4;
                return Ok(unit);
            }
            _ => return Err(self.wrong("an escape")),
        };
        Ok(meant as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, printed: Option<&str>) {
        let read = Json::parse_pattern(text);
        assert_eq!(read.as_ref().ok().map(Json::to_string).as_deref(), printed, "{text}: {read:?}");
    }

    #[test]
    fn trees_keep_spelling_and_order() {
        check("{\"b\": 1E+2, \"a\": [-0, null, ...], ...}", Some("{\"b\":1E+2,\"a\":[-0,null,...],...}"));
        check("\"\\u00e9\\n\\ud83d\\ude00\"", Some("\"é\\n😀\""));
        check("{\"a\":<any>, \"b\":\"x<any>\"}", Some("{\"a\":<any>,\"b\":\"x<any>\"}"));
        check("{}", Some("{}"));
        check("[]", Some("[]"));
        check("{...}", Some("{...}"));
        for wrong in ["", "{", "{\"a\"}", "[1,]", "[1 2]", "tru", "1x", "\"a", "{} x", "[... 1]"] {
            check(wrong, None);
        }
        assert!(Json::parse("[...]").is_err() && Json::parse("<any>").is_err());
    }
}
