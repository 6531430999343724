//! Reads a JSON text as `JSON.parse` does.
//!
//! What is no JSON, has escapes in its names, or nests deep is left to the engine, from the beginning: reading runs no code
//! of a script, so nobody can tell.
#![expect(unsafe_code, reason = "the engine's functions are foreign ones")]

use super::held::{HeldName, HeldValue, RawContext};
use rquickjs::{Ctx, Error, Result, Value, qjs};

/// How deep values are read here.
const DEPTH_MAX: usize = 64;

/// The value of a text; what is wrong with it is thrown.
pub(crate) fn read<'js>(ctx: &Ctx<'js>, text: impl Into<Vec<u8>>) -> Result<Value<'js>> {
    let text = text.into();
    let read = std::str::from_utf8(&text).ok().map(|checked| {
        let mut reader = ValueReader { context: ctx.as_raw().as_ptr(), text: checked, at: 0 };
        reader.whole()
    });
    match read {
        Some(Ok(value)) => Ok(value.into_value(ctx)),
        Some(Err(ReadRefusal::Exception)) => Err(Error::Exception),
        Some(Err(ReadRefusal::ForEngine)) | None => ctx.json_parse(text),
    }
}

/// Why a text was not read here.
enum ReadRefusal {
    /// The engine could not go on, and has thrown.
    Exception,
    /// It is the engine's to read.
    ForEngine,
}

impl From<Error> for ReadRefusal {
    fn from(_: Error) -> ReadRefusal {
        ReadRefusal::Exception
    }
}

struct ValueReader<'a> {
    context: RawContext,
    text: &'a str,
    at: usize,
}

impl<'a> ValueReader<'a> {
    fn whole(&mut self) -> std::result::Result<HeldValue, ReadRefusal> {
        let value = self.value(0)?;
        self.skip_space();
        if self.at == self.text.len() { Ok(value) } else { Err(ReadRefusal::ForEngine) }
    }

    fn value(&mut self, depth: usize) -> std::result::Result<HeldValue, ReadRefusal> {
        self.skip_space();
        let value = match self.peek() {
            Some(b'{') if depth < DEPTH_MAX => return self.object(depth),
            Some(b'[') if depth < DEPTH_MAX => return self.array(depth),
            Some(b'"') => return self.string(),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", qjs::JS_TRUE)?,
            Some(b'f') => self.word("false", qjs::JS_FALSE)?,
            Some(b'n') => self.word("null", qjs::JS_NULL)?,
            _ => return Err(ReadRefusal::ForEngine),
        };
        Ok(HeldValue::new(self.context, value)?)
    }

    fn object(&mut self, depth: usize) -> std::result::Result<HeldValue, ReadRefusal> {
        self.at += 1;
        // SAFETY: the context is live.
        let object = HeldValue::new(self.context, unsafe { qjs::JS_NewObject(self.context) })?;
        self.skip_space();
        if self.take(b'}') {
            return Ok(object);
        }
        loop {
            self.skip_space();
            let name = self.name()?;
            self.skip_space();
            self.expect(b':')?;
            let member = self.value(depth + 1)?.release();
            let flags = qjs::JS_PROP_C_W_E.cast_signed();
            // SAFETY: object and name are live ones of the context; it takes over the member.
            let result =
                unsafe { qjs::JS_DefinePropertyValue(self.context, object.raw(), name.raw(), member, flags) };
            if result < 0 {
                return Err(ReadRefusal::Exception);
            }
            self.skip_space();
            if self.take(b'}') {
                return Ok(object);
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> std::result::Result<HeldValue, ReadRefusal> {
        self.at += 1;
        let mut elements = Vec::new();
        self.skip_space();
        if !self.take(b']') {
            loop {
                elements.push(self.value(depth + 1)?);
                self.skip_space();
                if self.take(b']') {
                    break;
                }
                self.expect(b',')?;
            }
        }
        let elements: Vec<qjs::JSValue> = elements.into_iter().map(HeldValue::release).collect();
        let count = i32::try_from(elements.len()).map_err(|_| ReadRefusal::ForEngine)?;
        // SAFETY: there are so many elements, and the engine takes over all of them, also where it fails.
        let array = unsafe { qjs::JS_NewArrayFrom(self.context, count, elements.as_ptr()) };
        Ok(HeldValue::new(self.context, array)?)
    }

    fn string(&mut self) -> std::result::Result<HeldValue, ReadRefusal> {
        let start = self.at;
        if let Some(text) = self.plain_string()? {
            // SAFETY: the engine copies so many bytes.
            let value = unsafe { qjs::JS_NewStringLen(self.context, text.as_ptr().cast(), text.len() as _) };
            return Ok(HeldValue::new(self.context, value)?);
        }
        // The engine's reader needs a zero after the text.
        let mut quoted = self.text.as_bytes()[start..self.at].to_vec();
        let length = quoted.len();
        quoted.push(0);
        // SAFETY: there are so many bytes and a zero, and the engine copies what it keeps.
        let value = unsafe {
            qjs::JS_ParseJSON(self.context, quoted.as_ptr().cast(), length as _, c"<input>".as_ptr())
        };
        HeldValue::new(self.context, value).map_err(|_| ReadRefusal::Exception)
    }

    fn name(&mut self) -> std::result::Result<HeldName, ReadRefusal> {
        let text = self.plain_string()?.ok_or(ReadRefusal::ForEngine)?;
        // The engine takes names of other characters for those of their bytes.
        if !text.is_ascii() {
            return Err(ReadRefusal::ForEngine);
        }
        // SAFETY: the engine copies so many bytes.
        let name = unsafe { qjs::JS_NewAtomLen(self.context, text.as_ptr().cast(), text.len() as _) };
        Ok(HeldName::new(self.context, name)?)
    }

    /// The inside of a string; nothing if it has escapes. Either way it is behind us.
    fn plain_string(&mut self) -> std::result::Result<Option<&'a str>, ReadRefusal> {
        self.expect(b'"')?;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let Some(special) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(ReadRefusal::ForEngine);
            };
            self.at += special;
            if rest[special] == b'"' {
                break;
            }
            has_escapes = true;
            self.at += 2;
            if self.at > self.text.len() {
                return Err(ReadRefusal::ForEngine);
            }
        }
        let end = self.at;
        self.at += 1;
        // Control characters are no part of a string; looked for many bytes at once.
        let inside = &self.text.as_bytes()[start..end];
        if inside.iter().map(|byte| u8::from(*byte < 0x20)).fold(0, std::ops::BitOr::bitor) != 0 {
            return Err(ReadRefusal::ForEngine);
        }
        Ok(if has_escapes { None } else { self.text.get(start..end) })
    }

    fn number(&mut self) -> std::result::Result<qjs::JSValue, ReadRefusal> {
        let bytes = &self.text.as_bytes()[self.at..];
        let length = number_length(bytes).ok_or(ReadRefusal::ForEngine)?;
        let text = &self.text[self.at..self.at + length];
        self.at += length;
        if let Ok(number) = text.parse::<i32>()
            && text != "-0"
        {
            return Ok(qjs::JS_MKVAL(qjs::JS_TAG_INT, number));
        }
        text.parse::<f64>().map(qjs::JS_NewFloat64).map_err(|_| ReadRefusal::ForEngine)
    }

    fn word(&mut self, word: &str, value: qjs::JSValue) -> std::result::Result<qjs::JSValue, ReadRefusal> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(ReadRefusal::ForEngine);
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> std::result::Result<(), ReadRefusal> {
        if self.take(byte) { Ok(()) } else { Err(ReadRefusal::ForEngine) }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }
}

/// How long the number is that a text begins with; nothing if it is none of JSON.
fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits((at + 1 + sign).min(bytes.len()));
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}
