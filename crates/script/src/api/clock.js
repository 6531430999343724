// Dates: the server's clock, and UTC wherever the language says local time, so that no machine's zone shows.
// Loaded when a script first says `Date`, which it then gets from here.
(function (native, given) {
    "use strict";
    const { apply, construct, hidden, NativeDate } = given;
    const dates = NativeDate.prototype;
    const { getTime, toUTCString } = dates;
    const { UTC, parse: parseNative } = NativeDate;
    const zoned = /(?:z|gmt|utc|[+-]\d\d:?\d\d)\s*(?:\(.*\))?\s*$/i;
    const { test } = RegExp.prototype;
    const parse = text => {
        if (apply(test, zoned, [text])) return parseNative(text);
        const time = parseNative(text + "Z");
        return time === time ? time : parseNative(text);
    };
    const timeOf = value => {
        if (typeof value === "object" && value !== null) {
            try {
                return apply(getTime, value, []);
            } catch {
                const plain = value.valueOf();
                value = typeof plain === "object" ? `${value}` : plain;
            }
        }
        return typeof value === "string" ? parse(value) : value;
    };
    const ServerDate = function Date(first) {
        if (new.target === undefined) return new ServerDate().toString();
        let time;
        if (arguments.length === 0) time = native.now();
        else if (arguments.length === 1) time = timeOf(first);
        else time = apply(UTC, undefined, arguments);
        return construct(NativeDate, [time], new.target);
    };
    ServerDate.prototype = dates;
    hidden(ServerDate, "now", () => native.now());
    hidden(ServerDate, "parse", text => parse(`${text}`));
    hidden(ServerDate, "UTC", UTC);
    hidden(dates, "constructor", ServerDate);
    hidden(globalThis, "Date", ServerDate);
    const fields = ["Date", "Day", "FullYear", "Hours", "Milliseconds", "Minutes", "Month", "Seconds"];
    for (let index = 0; index < 8; index++) {
        const field = fields[index];
        hidden(dates, "get" + field, dates["getUTC" + field]);
        if (field !== "Day") hidden(dates, "set" + field, dates["setUTC" + field]);
    }
    const { getUTCFullYear, getUTCMonth, getUTCDate, getUTCHours } = dates;
    const slice = (text, from, to) => apply(String.prototype.slice, text, [from, to]);
    // "Thu, 01 Jan 1970 00:00:00 GMT", whose parts the other forms are made of.
    const written = (date, form) => {
        const text = apply(toUTCString, date, []);
        return text === "Invalid Date" ? text : form(text, date);
    };
    const day = text => `${slice(text, 0, 3)} ${slice(text, 8, 11)} ${slice(text, 5, 7)} ${slice(text, 12, -13)}`;
    const time = text => `${slice(text, -12, -4)} GMT+0000 (Coordinated Universal Time)`;
    const localDay = (text, date) =>
        `${apply(getUTCMonth, date, []) + 1}/${apply(getUTCDate, date, [])}/${apply(getUTCFullYear, date, [])}`;
    const localTime = (text, date) => {
        const hour = apply(getUTCHours, date, []);
        return `${hour % 12 || 12}${slice(text, -10, -4)} ${hour < 12 ? "AM" : "PM"}`;
    };
    const both = (first, second, between) => (text, date) => first(text, date) + between + second(text, date);
    const forms = {
        toDateString: day,
        toTimeString: time,
        toString: both(day, time, " "),
        toLocaleDateString: localDay,
        toLocaleTimeString: localTime,
        toLocaleString: both(localDay, localTime, ", "),
    };
    for (const name in forms) {
        const form = forms[name];
        hidden(dates, name, { [name]() { return written(this, form); } }[name]);
    }
    hidden(dates, "getTimezoneOffset", function getTimezoneOffset() {
        const time = apply(getTime, this, []);
        return time === time ? 0 : time;
    });
    return ServerDate;
})
