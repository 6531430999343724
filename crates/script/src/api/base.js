// What every script finds in its global scope, whatever it is for: errors with numbers, a clock and randomness that come
// from the server, and the console. Runs once in each fresh context, before the script; `native` are the functions of
// `natives.rs`. Everything used later is taken from the language here, so that a script that overwrites parts of it
// harms nobody but itself.
(function (native) {
    "use strict";
    const { apply, construct, defineProperty } = Reflect;
    const global = globalThis;
    const hidden = (object, name, value) =>
        defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

    // ---- Errors: `new Error(404, "text")` sets `number` and `message`, as scripts for the service are written.
    const NativeError = Error;
    const captureStackTrace = Error.captureStackTrace;
    const NumberedError = function Error(message, detail) {
        const target = new.target === undefined ? NumberedError : new.target;
        const numbered = typeof message === "number" && arguments.length > 1 && typeof detail !== "object";
        const error = numbered
            ? construct(NativeError, [detail], target)
            : construct(NativeError, arguments, target);
        if (numbered) error.number = message;
        captureStackTrace(error, NumberedError);
        return error;
    };
    NumberedError.prototype = NativeError.prototype;
    hidden(NumberedError, "captureStackTrace", captureStackTrace);
    hidden(NumberedError, "isError", NativeError.isError);
    hidden(NativeError.prototype, "constructor", NumberedError);
    hidden(global, "Error", NumberedError);

    const ErrorCodes = Object.freeze({
        BadRequest: 400,
        Forbidden: 403,
        NotFound: 404,
        RequestTimeout: 408,
        Conflict: 409,
        PreconditionFailed: 412,
        RequestEntityTooLarge: 413,
        TooManyRequests: 429,
        RetryWith: 449,
        InternalServerError: 500,
    });
    defineProperty(global, "ErrorCodes", { value: ErrorCodes, enumerable: true });

    // ---- Time: the server's clock, and UTC wherever the language says local time, so that no machine's zone shows.
    const NativeDate = Date;
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
    hidden(global, "Date", ServerDate);
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

    hidden(Math, "random", native.random);

    // ---- Jobs: an error in one is an unhandled rejection, which ends the script, and does not vanish.
    const { then } = Promise.prototype;
    const settled = Promise.resolve();
    hidden(global, "queueMicrotask", function queueMicrotask(job) {
        if (typeof job !== "function") throw new TypeError("queueMicrotask needs a function.");
        apply(then, settled, [() => { job(); }]);
    });

    // Memory shared between threads, and waiting for them, mean nothing in a script.
    delete global.SharedArrayBuffer;
    delete global.Atomics;

    // ---- Console: collected where the request asks for it.
    const { stringify, parse: parseJson } = JSON;
    const shown = value => {
        if (typeof value === "string") return value;
        if (typeof value !== "object" || value === null) return String(value);
        if (value instanceof NativeError) return `${value}`;
        const text = stringify(value);
        return text === undefined ? String(value) : text;
    };
    const { split } = String.prototype;
    const log = (...values) => {
        if (values.length === 0 || !native.logs()) return;
        let text = "";
        let used = 0;
        if (typeof values[0] === "string") {
            const parts = apply(split, values[0], ["%s"]);
            text = parts[0];
            used = 1;
            for (let index = 1; index < parts.length; index++) {
                text += (used < values.length ? shown(values[used++]) : "%s") + parts[index];
            }
        }
        for (; used < values.length; used++) text += (text === "" ? "" : " ") + shown(values[used]);
        native.log(text);
    };
    hidden(global, "console", { log, info: log, warn: log, error: log, debug: log });

    const { toWellFormed } = String.prototype;
    return {
        describe: value => {
            try {
                return apply(toWellFormed, shown(value), []);
            } catch {
                return "an object that cannot be printed";
            }
        },
        wellFormed: text => apply(toWellFormed, text, []),
        parseJson,
        stringify,
    };
})
