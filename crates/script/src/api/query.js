// Queries written in JavaScript: filter, map and their like, alone and in chains, and the functions for shapes.
// Loaded by `collection.js` when a script first asks for one of them. Each reads documents page by page and does the rest
// on arrays.
(function (native, given) {
    "use strict";
    const { base, collection, underscore, refuse, settle, paging, submit, deliverFeed, needs, respond } = given;
    const { apply } = Reflect;
    const { isArray } = Array;
    const { stringify } = base;
    const { sort, flat, concat, slice } = Array.prototype;

    const rank = value => {
        switch (typeof value) {
            case "undefined": return 0;
            case "boolean": return 2;
            case "number": return 3;
            case "string": return 4;
            default: return value === null ? 1 : 5;
        }
    };
    const compare = (a, b) => {
        const difference = rank(a) - rank(b);
        if (difference !== 0) return difference;
        return a < b ? -1 : a > b ? 1 : 0;
    };
    const sorted = (values, selector, sign) => {
        const keyed = [];
        for (let index = 0; index < values.length; index++) {
            keyed[index] = { key: selector(values[index]), value: values[index] };
        }
        apply(sort, keyed, [(a, b) => sign * compare(a.key, b.key)]);
        for (let index = 0; index < keyed.length; index++) keyed[index] = keyed[index].value;
        return keyed;
    };
    const mapped = (values, transform) => {
        const result = [];
        for (let index = 0; index < values.length; index++) result[index] = transform(values[index]);
        return result;
    };
    const unwound = (values, inner, select) => {
        let result = [];
        for (let index = 0; index < values.length; index++) {
            const item = values[index];
            const members = inner(item);
            if (!isArray(members)) continue;
            if (select === undefined) result = apply(concat, result, [members]);
            else for (let at = 0; at < members.length; at++) result = apply(concat, result, [select(item, members[at])]);
        }
        return result;
    };
    const wanted = fn => {
        if (typeof fn !== "function") throw refuse("The predicate or transform function must be given.");
        return fn;
    };
    // Each takes its own arguments from the front and leaves options and callback.
    const stages = {
        filter([predicate, ...rest]) {
            wanted(predicate);
            const run = values => {
                const result = [];
                for (let index = 0; index < values.length; index++) {
                    if (predicate(values[index])) result[result.length] = values[index];
                }
                return result;
            };
            return { run, rest };
        },
        map([transform, ...rest]) {
            wanted(transform);
            return { run: values => mapped(values, transform), rest };
        },
        pluck([name, ...rest]) {
            if (typeof name !== "string" || name === "") {
                throw refuse("The property name must be a string and cannot be empty.");
            }
            return { run: values => mapped(values, value => value?.[name]), rest };
        },
        flatten(given) {
            const has = typeof given[0] === "boolean";
            const [shallow, ...rest] = has ? given : [false, ...given];
            return { run: values => apply(flat, values, [shallow ? 1 : Infinity]), rest };
        },
        sortBy([selector, ...rest]) {
            wanted(selector);
            return { run: values => sorted(values, selector, 1), rest, needsAll: true };
        },
        sortByDescending([selector, ...rest]) {
            wanted(selector);
            return { run: values => sorted(values, selector, -1), rest, needsAll: true };
        },
        unwind([inner, ...more]) {
            if (typeof inner !== "function") throw refuse('"unwind" needs a function that selects the inner collection.');
            if (inner.length !== 1) throw refuse("The function that selects the inner collection takes one argument.");
            const [select, ...rest] = typeof more[0] === "function" && more[0].length >= 2 ? more : [undefined, ...more];
            return { run: values => unwound(values, inner, select), rest };
        },
    };
    const runStages = (chain, values) => {
        for (let index = 0; index < chain.length; index++) values = chain[index].run(values);
        return values;
    };
    // A sort needs every document before it can give the first, so its pages are parts of one whole result.
    const readAll = (chain, size, continuation) => {
        let documents = [];
        let next = "";
        do {
            const [page, more] = native.feed(1000, next);
            documents = apply(concat, documents, [page]);
            next = more;
        } while (next !== undefined);
        const from = continuation === "" ? 0 : Number(continuation);
        if (!(from >= 0)) throw refuse("Invalid Continuation Token");
        const result = runStages(chain, documents);
        if (size < 0) size = result.length;
        const to = from + size;
        return [apply(slice, result, [from, to]), to < result.length ? `${to}` : undefined];
    };
    const readPage = (chain, size, continuation) => {
        let result = [];
        let next = continuation;
        do {
            const [page, more] = native.feed(size < 0 ? size : size - result.length, next);
            result = apply(concat, result, [runStages(chain, page)]);
            next = more;
        } while (next !== undefined && (size < 0 || result.length < size) && native.accepts());
        return [result, next];
    };
    const intoResponse = (error, feed) => {
        if (error) throw error;
        respond(stringify(feed));
    };
    const start = (chain, options, callback) => {
        ({ options, callback } = settle(options, callback));
        const { size, continuation } = paging(options);
        let needsAll = false;
        for (let index = 0; index < chain.length; index++) needsAll ||= chain[index].needsAll === true;
        const run = () => (needsAll ? readAll : readPage)(chain, size, continuation);
        return { isAccepted: submit(run, callback === undefined ? intoResponse : callback, deliverFeed) };
    };
    const isCollection = value => value === collection || value === underscore || value === undefined;
    const chained = chain => {
        const query = { isAccepted: native.accepts(), value: (options, callback) => start(chain, options, callback) };
        for (const name in stages) {
            query[name] = (...given) => {
                const { rest, ...stage } = stages[name](given);
                if (rest.length > 0 && (rest[0] !== undefined || rest[1] !== undefined)) {
                    throw refuse('In a chain, options and callback can be given to the "value" function only.');
                }
                return chained([...chain, stage]);
            };
        }
        return query;
    };
    const functions = { chain: () => chained([]) };
    for (const name in stages) {
        functions[name] = (...given) => {
            if (given.length > 0 && isCollection(given[0])) [, ...given] = given;
            const { rest, ...stage } = stages[name](given);
            return start([stage], rest[0], rest[1]);
        };
    }

    for (const name of ["distance", "intersects", "within", "isValid", "isValidDetailed"]) {
        const least = (name === "isValid" || name === "isValidDetailed") ? 1 : 2;
        functions[name] = (...shapes) => {
            needs(name, least, shapes.length);
            for (let index = 0; index < least; index++) {
                if (typeof shapes[index] !== "object" || shapes[index] === null) {
                    throw refuse("The value given is not a GeoJSON object.");
                }
            }
            return native.spatial(name, stringify(shapes[0]), least === 1 ? "" : stringify(shapes[1]));
        };
    }
    return functions;
})
