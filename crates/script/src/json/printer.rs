//! Prints a value as `JSON.stringify` does.
//!
//! Plain objects and arrays are gone through here; dates, boxed values, proxies and the like, objects with a `toJSON`, and
//! what nests deep are printed by the engine, each within an object that has it under its name, so that its `toJSON` is
//! given that name. The engine also finds circles: they end up nesting deep.
#![expect(unsafe_code, reason = "the engine's functions are foreign ones")]

use super::held::{HeldName, HeldText, HeldValue, RawContext};
use rquickjs::{Ctx, Error, Result, Value, qjs};
use std::io::Write as _;

/// How deep values are gone through here.
const DEPTH_MAX: usize = 64;
/// The longest text. More is a want of memory, as it is to the engine, which has its texts in the script's own memory.
const TEXT_BYTES_MAX: usize = 32 << 20;
/// The engine's class of plain objects; a test asks the engine.
pub(super) const PLAIN_CLASS: u32 = 1;

/// The JSON of a value; nothing for what has none, such as a function.
pub(crate) fn print<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Option<Vec<u8>>> {
    let context = ctx.as_raw().as_ptr();
    // SAFETY: the context is live, the text is a constant.
    let to_json = unsafe { qjs::JS_NewAtom(context, c"toJSON".as_ptr()) };
    let to_json = HeldName::new(context, to_json)?;
    let mut printer = ValuePrinter { context, to_json, out: Vec::new() };
    Ok(printer.value(value.as_raw(), None, 0)?.then_some(printer.out))
}

struct ValuePrinter {
    context: RawContext,
    to_json: HeldName,
    out: Vec<u8>,
}

impl ValuePrinter {
    /// Prints a value that somebody holds, known to its holder by a name. Returns whether there is something to print.
    fn value(&mut self, value: qjs::JSValue, name: Option<&HeldName>, depth: usize) -> Result<bool> {
        if self.out.len() > TEXT_BYTES_MAX {
            // SAFETY: the context is live.
            unsafe { qjs::JS_ThrowOutOfMemory(self.context) };
            return Err(Error::Exception);
        }
        // SAFETY: looks at the tag, and at what the tag says is there.
        match unsafe { qjs::JS_VALUE_GET_NORM_TAG(value) } {
            qjs::JS_TAG_INT => {
                let number = unsafe { qjs::JS_VALUE_GET_INT(value) };
                self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            qjs::JS_TAG_FLOAT64 => self.number(value)?,
            qjs::JS_TAG_BOOL => {
                let is_true = unsafe { qjs::JS_VALUE_GET_BOOL(value) };
                self.out.extend_from_slice(if is_true { b"true" } else { b"false" });
            }
            qjs::JS_TAG_NULL => self.out.extend_from_slice(b"null"),
            qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => {
                let text = HeldText::of(self.context, value)?;
                push_quoted(text.bytes(), &mut self.out);
            }
            qjs::JS_TAG_OBJECT => return self.object(value, name, depth),
            qjs::JS_TAG_UNDEFINED | qjs::JS_TAG_SYMBOL => return Ok(false),
            _ => return self.by_engine(value, name),
        }
        Ok(true)
    }

    fn number(&mut self, value: qjs::JSValue) -> Result<()> {
        // SAFETY: the tag says that it is a double.
        if !unsafe { qjs::JS_VALUE_GET_FLOAT64(value) }.is_finite() {
            self.out.extend_from_slice(b"null");
            return Ok(());
        }
        let text = HeldText::of(self.context, value)?;
        self.out.extend_from_slice(text.bytes());
        Ok(())
    }

    fn object(&mut self, value: qjs::JSValue, name: Option<&HeldName>, depth: usize) -> Result<bool> {
        // SAFETY: both look at the object's class.
        let (is_array, is_plain) =
            unsafe { (qjs::JS_IsArray(value), qjs::JS_GetClassID(value) == PLAIN_CLASS) };
        if depth >= DEPTH_MAX || !(is_array || is_plain) {
            return self.by_engine(value, name);
        }
        // SAFETY: value and name are live ones of the context.
        let to_json = unsafe { qjs::JS_GetProperty(self.context, value, self.to_json.raw()) };
        let to_json = HeldValue::new(self.context, to_json)?;
        // SAFETY: the value is live.
        if unsafe { qjs::JS_IsFunction(self.context, to_json.raw()) } {
            return self.by_engine(value, name);
        }
        if is_array {
            self.array(value, depth)?;
        } else {
            self.members(value, depth)?;
        }
        Ok(true)
    }

    fn array(&mut self, array: qjs::JSValue, depth: usize) -> Result<()> {
        let mut length = 0;
        // SAFETY: the array is live; `length` is written unless there is an exception.
        if unsafe { qjs::JS_GetLength(self.context, array, &raw mut length) } < 0 {
            return Err(Error::Exception);
        }
        self.out.push(b'[');
        for index in 0..length {
            if index > 0 {
                self.out.push(b',');
            }
            // SAFETY: the array is live: whoever holds it does so until it is printed.
            let element = unsafe { qjs::JS_GetPropertyInt64(self.context, array, index) };
            let element = HeldValue::new(self.context, element)?;
            // Only objects and the like may be asked for a `toJSON`, which is told the index; the engine has names for all.
            let is_object = unsafe { qjs::JS_IsObject(element.raw()) };
            let name = if is_object {
                // SAFETY: the context is live; the length of an array is a 32-bit number.
                Some(HeldName::new(self.context, unsafe {
                    qjs::JS_NewAtomUInt32(self.context, index as u32)
                })?)
            } else {
                None
            };
            if !self.value(element.raw(), name.as_ref(), depth + 1)? {
                self.out.extend_from_slice(b"null");
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn members(&mut self, object: qjs::JSValue, depth: usize) -> Result<()> {
        let names = Names::of(self.context, object)?;
        self.out.push(b'{');
        let start = self.out.len();
        for name in names.get() {
            // SAFETY: object and name are live: the list holds its names.
            let (name, member) = unsafe {
                let name = qjs::JS_DupAtom(self.context, name.atom);
                (HeldName::new(self.context, name)?, qjs::JS_GetProperty(self.context, object, name))
            };
            let member = HeldValue::new(self.context, member)?;
            let before = self.out.len();
            if before > start {
                self.out.push(b',');
            }
            push_quoted(HeldText::of_name(self.context, name.raw())?.bytes(), &mut self.out);
            self.out.push(b':');
            if !self.value(member.raw(), Some(&name), depth + 1)? {
                self.out.truncate(before);
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Has the engine print a value, under its name.
    fn by_engine(&mut self, value: qjs::JSValue, name: Option<&HeldName>) -> Result<bool> {
        let Some(name) = name else {
            return self.text_of(value, |text| Some(text.into()));
        };
        // SAFETY: value and name are live; the holder takes over a reference of its own.
        let holder = unsafe {
            let holder = HeldValue::new(self.context, qjs::JS_NewObject(self.context))?;
            let own = qjs::JS_DupValue(self.context, value);
            let flags = qjs::JS_PROP_C_W_E.cast_signed();
            if qjs::JS_DefinePropertyValue(self.context, holder.raw(), name.raw(), own, flags) < 0 {
                return Err(Error::Exception);
            }
            holder
        };
        let mut quoted = Vec::new();
        push_quoted(HeldText::of_name(self.context, name.raw())?.bytes(), &mut quoted);
        // Of {"name":value} the value; {} if there is none.
        let inner = |text: &[u8]| text.get(quoted.len() + 2..text.len() - 1).map(<[u8]>::to_vec);
        self.text_of(holder.raw(), inner)
    }

    fn text_of(&mut self, value: qjs::JSValue, part: impl FnOnce(&[u8]) -> Option<Vec<u8>>) -> Result<bool> {
        // SAFETY: the value is a live one of the context.
        let text =
            unsafe { qjs::JS_JSONStringify(self.context, value, qjs::JS_UNDEFINED, qjs::JS_UNDEFINED) };
        let text = HeldValue::new(self.context, text)?;
        // SAFETY: looks at the tag.
        if unsafe { qjs::JS_IsUndefined(text.raw()) } {
            return Ok(false);
        }
        let text = HeldText::of(self.context, text.raw())?;
        let Some(part) = part(text.bytes()).filter(|part| !part.is_empty()) else { return Ok(false) };
        self.out.extend_from_slice(&part);
        Ok(true)
    }
}

/// The names of an object's own enumerable members, in order.
struct Names {
    context: RawContext,
    start: *mut qjs::JSPropertyEnum,
    count: u32,
}

impl Names {
    fn of(context: RawContext, object: qjs::JSValue) -> Result<Names> {
        let (mut start, mut count) = (std::ptr::null_mut(), 0);
        let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY).cast_signed();
        // SAFETY: the object is live; both are written unless there is an exception.
        let result =
            unsafe { qjs::JS_GetOwnPropertyNames(context, &raw mut start, &raw mut count, object, flags) };
        if result < 0 { Err(Error::Exception) } else { Ok(Names { context, start, count }) }
    }

    fn get(&self) -> &[qjs::JSPropertyEnum] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: the engine gave so many.
        unsafe { std::slice::from_raw_parts(self.start, self.count as usize) }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: the list came from the engine.
        unsafe { qjs::JS_FreePropertyEnum(self.context, self.start, self.count) };
    }
}

/// A string of JSON. Halves of surrogate pairs, which UTF-8 does not have, are written as escapes.
fn push_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    // Most texts have nothing special in them, which is found out many bytes at once.
    let is_plain = text.iter().map(|byte| u8::from(!is_clean(*byte))).fold(0, std::ops::BitOr::bitor) == 0;
    while !is_plain && let Some(clean) = rest.iter().position(|byte| !is_clean(*byte)) {
        let (before, special) = rest.split_at(clean);
        out.extend_from_slice(before);
        let length = push_special(special, out);
        rest = &special[length..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Whether a byte stands for itself: all but control characters, quotes, and what begins a surrogate.
const fn is_clean(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\' && byte != 0xed
}

/// Writes the character that a text begins with; returns how many bytes of the text it has.
fn push_special(text: &[u8], out: &mut Vec<u8>) -> usize {
    let escape = match text[0] {
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        byte @ (b'"' | b'\\') => byte,
        0xed => {
            let (second, third) = (text.get(1).copied(), text.get(2).copied());
            let (Some(second), Some(third)) = (second, third) else { return text.len() };
            if second < 0xa0 {
                out.extend_from_slice(&text[..3]);
            } else {
                let unit = 0xd000 | (u32::from(second & 0x3f) << 6) | u32::from(third & 0x3f);
                let _ = write!(out, "\\u{unit:04x}");
            }
            return 3;
        }
        byte => {
            let _ = write!(out, "\\u{byte:04x}");
            return 1;
        }
    };
    out.extend_from_slice(&[b'\\', escape]);
    1
}
