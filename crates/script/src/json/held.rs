//! What the engine counts references of, given back when it goes out of scope.
#![expect(unsafe_code, reason = "the engine's functions are foreign ones")]

use rquickjs::{Ctx, Error, Result, Value, qjs};
use std::ffi::c_char;

pub(super) type RawContext = *mut qjs::JSContext;

/// A value that is ours. It must not outlive the context.
pub(super) struct HeldValue(RawContext, qjs::JSValue);

impl HeldValue {
    /// Takes over what the engine returned; an exception is an error, which is pending.
    pub(super) fn new(context: RawContext, value: qjs::JSValue) -> Result<HeldValue> {
        // SAFETY: looks at the tag only.
        if unsafe { qjs::JS_IsException(value) } {
            return Err(Error::Exception);
        }
        Ok(HeldValue(context, value))
    }

    pub(super) fn raw(&self) -> qjs::JSValue {
        self.1
    }

    /// Gives the reference to somebody else.
    pub(super) fn release(self) -> qjs::JSValue {
        let value = self.1;
        std::mem::forget(self);
        value
    }

    pub(super) fn into_value<'js>(self, ctx: &Ctx<'js>) -> Value<'js> {
        // SAFETY: the reference was ours, and is the `Value`'s from here on.
        unsafe { Value::from_raw(ctx.clone(), self.release()) }
    }
}

impl Drop for HeldValue {
    fn drop(&mut self) {
        // SAFETY: one reference was ours.
        unsafe { qjs::JS_FreeValue(self.0, self.1) };
    }
}

/// A name of a property.
pub(super) struct HeldName(RawContext, qjs::JSAtom);

impl HeldName {
    pub(super) fn new(context: RawContext, name: qjs::JSAtom) -> Result<HeldName> {
        // The engine has no name zero.
        if name == 0 { Err(Error::Exception) } else { Ok(HeldName(context, name)) }
    }

    pub(super) fn raw(&self) -> qjs::JSAtom {
        self.1
    }
}

impl Drop for HeldName {
    fn drop(&mut self) {
        // SAFETY: one reference was ours.
        unsafe { qjs::JS_FreeAtom(self.0, self.1) };
    }
}

/// The bytes of a string: UTF-8, except that half a pair of surrogates is there as its three bytes.
pub(super) struct HeldText {
    context: RawContext,
    start: *const c_char,
    length: usize,
}

impl HeldText {
    /// The text of a primitive value.
    pub(super) fn of(context: RawContext, value: qjs::JSValue) -> Result<HeldText> {
        let mut length = 0;
        // SAFETY: the value is a live one of the context, and `length` is written before a text is returned.
        let start = unsafe { qjs::JS_ToCStringLen2(context, &raw mut length, value, false) };
        HeldText::new(context, start, length as usize)
    }

    /// A name as text.
    pub(super) fn of_name(context: RawContext, name: qjs::JSAtom) -> Result<HeldText> {
        let mut length = 0;
        // SAFETY: as above.
        let start = unsafe { qjs::JS_AtomToCStringLen(context, &raw mut length, name) };
        HeldText::new(context, start, length as usize)
    }

    fn new(context: RawContext, start: *const c_char, length: usize) -> Result<HeldText> {
        if start.is_null() { Err(Error::Exception) } else { Ok(HeldText { context, start, length }) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the engine gave so many bytes, and keeps them until they are given back.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for HeldText {
    fn drop(&mut self) {
        // SAFETY: the text came from the engine.
        unsafe { qjs::JS_FreeCString(self.context, self.start) };
    }
}
