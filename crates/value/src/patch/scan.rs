//! Finding the items of an object or array in minimal JSON text, by offsets so that the text can be changed there.
//!
//! In: text without spaces between tokens and the offset of a bracket. Out: where an item is, or where the closing
//! bracket is. Nothing is validated: text of another form gives `None` or wrong offsets inside of it, but no panic.
//! Not here: values and slices of such text (`json::seek`).

use crate::json::seek;
use std::ops::Range;

/// An item of a container.
pub(super) struct Item {
    /// Where its name starts, or the value of one that has no name.
    pub(super) start: usize,
    /// Where its value is.
    pub(super) value: Range<usize>,
}

/// What looking for an item gives.
pub(super) enum MemberSearch {
    /// The item.
    Found(Item),
    /// There is none.
    Absent {
        /// Where the closing bracket is.
        close: usize,
        /// How many items the container has.
        count: usize,
    },
}

/// Looks for a member of the object that begins at `open`.
pub(super) fn member(text: &[u8], open: usize, name: &str) -> Option<MemberSearch> {
    search(text, open, |text, _, item| seek::is_name(&text[item.start..item.value.start - 1], name))
}

/// Looks for an element of the array that begins at `open`; without an index, for its end.
pub(super) fn element(text: &[u8], open: usize, index: Option<usize>) -> Option<MemberSearch> {
    search(text, open, |_, count, _| index == Some(count))
}

fn search(text: &[u8], open: usize, is_wanted: impl Fn(&[u8], usize, &Item) -> bool) -> Option<MemberSearch> {
    let (is_object, closing) = match text.get(open)? {
        b'{' => (true, b'}'),
        b'[' => (false, b']'),
        _ => return None,
    };
    let (mut start, mut count) = (open + 1, 0);
    if *text.get(start)? == closing {
        return Some(MemberSearch::Absent { close: start, count });
    }
    loop {
        let mut value = start;
        if is_object {
            value = start + seek::string_end(text.get(start..)?)?.0 + 1;
            (text.get(value - 1) == Some(&b':')).then_some(())?;
        }
        let length = seek::value_end(text.get(value..)?).filter(|length| *length > 0)?;
        let end = value + length;
        let item = Item { start, value: value..end };
        if is_wanted(text, count, &item) {
            return Some(MemberSearch::Found(item));
        }
        count += 1;
        match text.get(end)? {
            b',' => start = end + 1,
            byte if *byte == closing => return Some(MemberSearch::Absent { close: end, count }),
            _ => return None,
        }
    }
}
