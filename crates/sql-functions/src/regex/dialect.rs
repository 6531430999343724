//! From the service's dialect of patterns (PCRE) to the one of our engines, where the two read the same text differently.
//!
//! - `\d \w \s` and their opposites mean ASCII, as in PCRE without its Unicode option.
//! - `{` that begins no count, and inside brackets `[`, `&&`, `~~`, `--`, white space and `#`, stand for themselves.
//! - `\h \H \R \e \< \> \Q..\E` have their PCRE meaning.
//!
//! Anything else passes unchanged; what the engine then refuses is a bad pattern.

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\t\\n\\x0B\\f\\r\\x20";
const HORIZONTAL: &str = "\\t\\x20";

pub(super) fn translate(pattern: &str) -> String {
    let mut translator = DialectTranslator { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    while let Some(character) = translator.next() {
        match character {
            '\\' => translator.escape(false),
            '[' => translator.class(),
            '{' if !begins_count(translator.rest) => translator.out.push_str("\\{"),
            other => translator.out.push(other),
        }
    }
    translator.out
}

/// Whether a pattern that the linear engine refuses may be one for the other: it has look-around, atomic or conditional
/// groups, possessive repetition, references to groups, or one of the rarer anchors.
pub(super) fn needs_backtracking(pattern: &str) -> bool {
    const GROUPS: [&str; 6] = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("];
    const POSSESSIVE: [&str; 4] = ["*+", "++", "?+", "}+"];
    let escaped = pattern.match_indices('\\').any(|(place, _)| {
        let next = pattern[place + 1..].chars().next();
        next.is_some_and(|letter| matches!(letter, '1'..='9' | 'k' | 'g' | 'K' | 'G' | 'Z'))
    });
    escaped || GROUPS.iter().chain(&POSSESSIVE).any(|mark| pattern.contains(mark))
}

struct DialectTranslator<'a> {
    rest: &'a str,
    out: String,
}

impl DialectTranslator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let first = characters.next();
        self.rest = characters.as_str();
        first
    }

    fn eat(&mut self, expected: &str) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, in_class: bool) {
        let Some(letter) = self.next() else { return self.out.push('\\') };
        let (members, negated) = match letter {
            'd' | 'D' => (DIGIT, letter == 'D'),
            'w' | 'W' => (WORD, letter == 'W'),
            's' | 'S' => (SPACE, letter == 'S'),
            'h' | 'H' => (HORIZONTAL, letter == 'H'),
            'R' if !in_class => return self.out.push_str("(?:\\r\\n|[\\n\\x0B\\f\\r])"),
            'e' => return self.out.push_str("\\x1B"),
            '<' | '>' => return self.out.push(letter),
            'Q' => return self.quoted(),
            _ => {
                self.out.push('\\');
                return self.out.push(letter);
            }
        };
        match (in_class, negated) {
            (true, false) => self.out.push_str(members),
            (_, true) => self.bracketed("[^", members),
            (false, false) => self.bracketed("[", members),
        }
    }

    fn bracketed(&mut self, open: &str, members: &str) {
        self.out.push_str(open);
        self.out.push_str(members);
        self.out.push(']');
    }

    /// `\Q`, up to `\E` or the end.
    fn quoted(&mut self) {
        let (literal, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
        self.out.push_str(&regex::escape(literal));
        self.rest = rest;
    }

    /// What follows an opening bracket, to the closing one.
    fn class(&mut self) {
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        // A closing bracket that comes first stands for itself.
        if self.eat("]") {
            self.out.push_str("\\]");
        }
        while let Some(character) = self.next() {
            match character {
                ']' => return self.out.push(']'),
                '\\' => self.escape(true),
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => self.posix_class(),
                '[' | '&' | '~' | '#' => {
                    self.out.push('\\');
                    self.out.push(character);
                }
                '-' if self.rest.starts_with('-') => self.out.push_str("\\-"),
                ' ' => self.out.push_str("\\x20"),
                other => self.out.push(other),
            }
        }
    }

    /// `[:name:]`, of which the opening bracket was read.
    fn posix_class(&mut self) {
        let end = self.rest.find(":]").map_or(self.rest.len(), |end| end + 2);
        let (name, rest) = self.rest.split_at(end);
        self.out.push('[');
        self.out.push_str(name);
        self.rest = rest;
    }
}

/// Whether what follows `{` is `n}`, `n,}` or `n,m}`.
fn begins_count(rest: &str) -> bool {
    let Some((count, _)) = rest.split_once('}') else { return false };
    let (least, most) = count.split_once(',').unwrap_or((count, "0"));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}
