// What every script finds in its global scope, whatever it is for: errors with numbers, randomness and a clock (its own
// program, `clock.js`) that come from the server, and the console. Runs once in each fresh context, before the script; `native` are the functions of
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

    // ---- Time: most scripts do not ask for it, so its part is loaded by the first who does. There is no way to a date
    // but this name.
    const NativeDate = Date;
    defineProperty(global, "Date", {
        get() { return native.load("clock")(native, { apply, construct, hidden, NativeDate }); },
        set(value) { hidden(global, "Date", value); },
        enumerable: false,
        configurable: true,
    });

    hidden(Math, "random", native.random);

    // ---- Jobs: an error in one is an unhandled rejection, which ends the script, and does not vanish.
    const { then } = Promise.prototype;
    const settled = Promise.resolve();
    hidden(global, "queueMicrotask", function queueMicrotask(job) {
        if (typeof job !== "function") throw new TypeError("queueMicrotask needs a function.");
        apply(then, settled, [() => { job(); }]);
    });

    // ---- Code from text: scripts cannot make any, but libraries ask for the global object this way.
    const NativeFunction = Function;
    const { trim } = String.prototype;
    const FunctionOfText = function Function(text) {
        if (arguments.length === 1 && /^return this;?$/.test(apply(trim, text, []))) return () => global;
        throw new EvalError("Scripts cannot make functions from text.");
    };
    FunctionOfText.prototype = NativeFunction.prototype;
    hidden(NativeFunction.prototype, "constructor", FunctionOfText);
    hidden(global, "Function", FunctionOfText);
    hidden(global, "eval", () => { throw new EvalError("Scripts cannot run code from text."); });

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
    const { split, toWellFormed } = String.prototype;
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
        native.log(apply(toWellFormed, text, []));
    };
    hidden(global, "console", { log, info: log, warn: log, error: log, debug: log });

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
        stringify: native.print,
    };
})
