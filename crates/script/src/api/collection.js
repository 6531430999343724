// The objects of the server-side API: context, request, response, collection, and `__`.
//
// Operations are put into a queue and done one after the other once the script's own code has returned; each result
// goes to its callback before the next operation is done. `native` are the functions of `natives.rs`; `begin` gives this
// execution its texts, `step` does the next operation, `finish` hands over the result.
(function (native, base) {
    "use strict";
    const { apply, defineProperty } = Reflect;
    const { create } = Object;
    const { isArray } = Array;
    const { parseJson, stringify } = base;
    const { ErrorCodes, Error, Infinity } = globalThis;
    const { startsWith, slice, indexOf, toLowerCase, endsWith } = String.prototype;
    const { sort, flat, concat } = Array.prototype;
    const text = (method, value, ...rest) => apply(method, value, rest);
    const refuse = message => new Error(ErrorCodes.BadRequest, message);
    const needs = (name, least, given) => {
        if (given < least) {
            throw refuse(`The function "${name}" needs at least ${least} argument(s) but was called with ${given}.`);
        }
    };

    let execution;

    // ---- The queue
    let first;
    let last;
    const submit = (run, callback, deliver) => {
        if (!native.accepts()) return false;
        const entry = { run, callback, deliver, next: undefined };
        if (first === undefined) first = entry;
        else last.next = entry;
        last = entry;
        return true;
    };
    const step = () => {
        if (first === undefined) return false;
        const { run, callback, deliver } = first;
        first = first.next;
        let result;
        try {
            result = run();
        } catch (error) {
            if (callback === undefined) throw error;
            callback(error);
            return true;
        }
        if (callback !== undefined) deliver(callback, result);
        return true;
    };

    // ---- Links
    const withoutSlash = link => (text(endsWith, link, "/") ? text(slice, link, 0, -1) : link);
    const outside = link =>
        refuse(
            "The function is not allowed to operate on resources outside current collection. " +
                `Make sure that the link provided, "${link}", belongs to the current collection.`,
        );
    const checkCollectionLink = link => {
        if (typeof link !== "string") throw refuse(`Invalid collection link: "${base.describe(link)}".`);
        const plain = withoutSlash(link);
        if (plain !== execution.selfLink && plain !== execution.altLink) throw outside(link);
    };
    // Returns what follows `docs/`, and whether it is a rid.
    const documentOf = link => {
        if (typeof link !== "string") throw refuse(`Invalid document link: "${base.describe(link)}".`);
        const owners = [execution.selfLink, execution.altLink];
        for (let index = 0; index < 2; index++) {
            const owner = owners[index];
            if (!text(startsWith, link, owner + "/")) continue;
            const rest = text(slice, link, owner.length + 1);
            const id = withoutSlash(text(slice, rest, 5));
            if (text(toLowerCase, text(slice, rest, 0, 5)) !== "docs/" || id === "" || text(indexOf, id, "/") >= 0) {
                throw refuse(`Invalid document link: "${link}".`);
            }
            return { id, isRid: index === 0 };
        }
        throw outside(link);
    };

    // ---- Arguments
    const settle = (options, callback) => {
        if (callback === undefined && typeof options === "function") return { options: {}, callback: options };
        if (options === undefined || options === null) options = {};
        else if (typeof options !== "object") {
            throw refuse(`The "options" parameter must be of type "object". Actual type is: "${typeof options}".`);
        }
        if (callback !== undefined && callback !== null && typeof callback !== "function") {
            throw refuse(`The "callback" parameter must be of type "function". Actual type is: "${typeof callback}".`);
        }
        return { options, callback: callback === null ? undefined : callback };
    };
    const optional = value => (value === undefined || value === null ? "" : `${value}`);
    const bodyText = (body, options, generatesId) => {
        if (body === null || (typeof body !== "object" && typeof body !== "string")) {
            throw refuse("The document body must be an object or a string holding the JSON of an object.");
        }
        if (generatesId && options.disableAutomaticIdGeneration !== true) {
            let parsed = body;
            if (typeof body === "string") {
                try {
                    parsed = parseJson(body);
                } catch {
                    throw refuse("The document body is a string that is not JSON.");
                }
            }
            if (parsed !== null && typeof parsed === "object" && !isArray(parsed) && !parsed.id) {
                body = { ...parsed, id: native.uuid() };
            }
        }
        return typeof body === "string" ? body : stringify(body);
    };
    const paging = options => ({
        size: typeof options.pageSize === "number" && options.pageSize !== 0 ? options.pageSize : 100,
        continuation: optional(options.continuation),
    });
    const answer = (statusCode, more) => ({
        statusCode,
        currentCollectionSizeInMB: execution.quotaCurrent,
        maxCollectionSizeInMB: execution.quotaMax,
        ...more,
    });
    const deliverDocument = (callback, [document, status]) => callback(undefined, document, answer(status));
    const deliverFeed = (callback, [documents, continuation]) =>
        callback(undefined, documents, answer(200, continuation === undefined ? {} : { continuation }));

    // ---- Documents
    const collection = {
        getSelfLink: () => execution.selfLink + "/",
        getAltLink: () => execution.altLink,
        createDocument(collectionLink, body, options, callback) {
            needs("createDocument", 2, arguments.length);
            checkCollectionLink(collectionLink);
            ({ options, callback } = settle(options, callback));
            const document = bodyText(body, options, true);
            const indexAction = optional(options.indexAction);
            return submit(() => native.create(document, indexAction), callback, deliverDocument);
        },
        upsertDocument(collectionLink, body, options, callback) {
            needs("upsertDocument", 2, arguments.length);
            checkCollectionLink(collectionLink);
            ({ options, callback } = settle(options, callback));
            const document = bodyText(body, options, true);
            const indexAction = optional(options.indexAction);
            const etag = optional(options.etag);
            return submit(() => native.upsert(document, etag, indexAction), callback, deliverDocument);
        },
        readDocument(documentLink, options, callback) {
            needs("readDocument", 1, arguments.length);
            const { id, isRid } = documentOf(documentLink);
            ({ options, callback } = settle(options, callback));
            const ifNoneMatch = optional(options.ifNoneMatch);
            return submit(() => native.read(isRid, id, ifNoneMatch), callback, (callback, document) => {
                if (document === undefined) callback(undefined, undefined, answer(304, { notModified: true }));
                else callback(undefined, document, answer(200));
            });
        },
        replaceDocument(documentLink, body, options, callback) {
            needs("replaceDocument", 2, arguments.length);
            const { id, isRid } = documentOf(documentLink);
            ({ options, callback } = settle(options, callback));
            const document = bodyText(body, options, false);
            const indexAction = optional(options.indexAction);
            const etag = optional(options.etag);
            return submit(() => native.replace(isRid, id, document, etag, indexAction), callback, deliverDocument);
        },
        deleteDocument(documentLink, options, callback) {
            needs("deleteDocument", 1, arguments.length);
            const { id, isRid } = documentOf(documentLink);
            ({ options, callback } = settle(options, callback));
            const etag = optional(options.etag);
            return submit(() => native.remove(isRid, id, etag), callback, callback =>
                callback(undefined, answer(204)));
        },
        readDocuments(collectionLink, options, callback) {
            needs("readDocuments", 1, arguments.length);
            checkCollectionLink(collectionLink);
            ({ options, callback } = settle(options, callback));
            const { size, continuation } = paging(options);
            return submit(() => native.feed(size, continuation), callback, deliverFeed);
        },
        queryDocuments(collectionLink, query, options, callback) {
            needs("queryDocuments", 2, arguments.length);
            checkCollectionLink(collectionLink);
            ({ options, callback } = settle(options, callback));
            const { size, continuation } = paging(options);
            let parameters = "";
            if (typeof query === "object" && query !== null) {
                parameters = query.parameters === undefined ? "" : stringify(query.parameters);
                query = query.query;
            }
            if (typeof query !== "string") {
                throw refuse('The "filterQuery" parameter must be of type "string" or "object" with a "query".');
            }
            const scan = options.enableScan === true;
            const run = () => native.query(query, parameters, size, continuation, scan);
            return submit(run, callback, deliverFeed);
        },
    };
    const attachments = "create upsert read replace delete".split(" ").map(verb => verb + "Attachment");
    attachments.push("readAttachments", "queryAttachments");
    for (const name of attachments) {
        collection[name] = () => {
            throw refuse(`The function "${name}" is not available: attachments are not supported.`);
        };
    }
    defineProperty(collection, "getPartitionKeyDefinition", { value: () => execution.partitionKeyPaths });

    // ---- Queries written in JavaScript
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
        return [apply(Array.prototype.slice, result, [from, to]), to < result.length ? `${to}` : undefined];
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
        if (execution.response === undefined) {
            throw refuse("A callback must be given where there is no response, as in a pre-trigger.");
        }
        execution.response.appendBody(stringify(feed));
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
    for (const name in stages) {
        collection[name] = (...given) => {
            if (given.length > 0 && isCollection(given[0])) [, ...given] = given;
            const { rest, ...stage } = stages[name](given);
            return start([stage], rest[0], rest[1]);
        };
    }
    collection.chain = () => chained([]);

    collection.spatial = {};
    for (const name of ["distance", "intersects", "within", "isValid", "isValidDetailed"]) {
        const least = text(startsWith, name, "is") ? 1 : 2;
        collection.spatial[name] = (...shapes) => {
            needs(name, least, shapes.length);
            for (let index = 0; index < least; index++) {
                if (typeof shapes[index] !== "object" || shapes[index] === null) {
                    throw refuse("The value given is not a GeoJSON object.");
                }
            }
            return native.spatial(name, stringify(shapes[0]), least === 1 ? "" : stringify(shapes[1]));
        };
    }

    // ---- Request and response
    const tooLarge = name =>
        new Error(
            ErrorCodes.RequestEntityTooLarge,
            `The resulting message would be too large because of "${name}". Return from the script with the current ` +
                "message and use a continuation token to call the script again, or change the script.",
        );
    const measure = (name, value) => {
        if (value === undefined || value === null) return value;
        const shown = typeof value === "object" ? stringify(value) : `${value}`;
        if (shown !== undefined && shown.length > execution.messageBytesMax) throw tooLarge(name);
        return value;
    };
    const messageOf = properties => {
        const writable = name => {
            const property = properties[name];
            if (property === undefined) throw refuse(`Cannot set new values: ${name}`);
            if (!property.isWritable) throw new Error(ErrorCodes.Forbidden, `Not a writable property: ${name}`);
            return property;
        };
        const get = name => properties[name]?.value;
        const set = (name, value) => { writable(name).value = measure(name, value); };
        const append = (name, value) => {
            const property = writable(name);
            const old = property.value;
            property.value = measure(name, old === undefined || old === null ? value : old + value);
        };
        const message = { getValue: get, setValue: set, appendValue: append };
        for (const name in properties) {
            message["get" + name] = () => get(name);
            message["set" + name] = value => set(name, value);
            message["append" + name] = value => append(name, value);
        }
        message.getMaxDocumentSize = () => execution.documentBytesMax;
        return message;
    };
    const properties = (body, bodyIsWritable, more, values, valuesAreWritable) => {
        const all = create(null);
        all.Body = { value: body, isWritable: bodyIsWritable };
        for (const name in more) all[name] = { value: more[name], isWritable: false };
        for (let index = 0; index < values.length; index++) {
            const [name, value] = values[index];
            all[name] = { value, isWritable: valuesAreWritable };
        }
        return all;
    };

    const context = {
        getCollection: () => collection,
        abort(error) { native.abort(error); throw error; },
    };
    const underscore = create(collection);

    // `given` comes from the server: kind, links, bodies, and what the request said.
    const begin = given => {
        execution = given;
        const { kind, operation, requestBody, responseBody, requestValues } = given;
        const trigger = operation === "" ? {} : { OperationType: operation };
        const request = properties(requestBody, kind === "pre", trigger, requestValues, kind === "pre");
        execution.requestProperties = request;
        underscore.request = messageOf(request);
        context.getRequest = () => underscore.request;
        if (kind === "pre") return;
        const quota = { ResourceQuotaCurrentUsage: given.quotaCurrent, MaxResourceQuota: given.quotaMax };
        const response = properties(responseBody, true, kind === "post" ? quota : {}, [], false);
        execution.responseProperties = response;
        execution.response = messageOf(response);
        underscore.response = execution.response;
        context.getResponse = () => underscore.response;
    };
    const finish = () => {
        const { kind, requestProperties, responseProperties } = execution;
        return (kind === "pre" ? requestProperties : responseProperties).Body.value;
    };

    const expose = (name, value) =>
        defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
    expose("getContext", () => context);
    expose("__", underscore);
    return { begin, step, finish };
})
