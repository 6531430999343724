// The objects of the server-side API: context, request, response, collection, and `__`. Queries written in JavaScript are
// in `query.js`.
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
    const { ErrorCodes, Error } = globalThis;
    const { startsWith, slice, indexOf, toLowerCase, endsWith } = String.prototype;
    const { toString: functionText } = Function.prototype;
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
    // Whether a callback looks at errors only, so that nobody waits for the result. No callback is none that looks at it.
    const isUnseen = callback => callback === undefined || native.seesErrorOnly(apply(functionText, callback, []));
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
            const isRid = index === 0;
            // An id may have slashes, a rid has none.
            const isForeign = isRid && text(indexOf, id, "/") >= 0;
            if (text(toLowerCase, text(slice, rest, 0, 5)) !== "docs/" || id === "" || isForeign) {
                throw refuse(`Invalid document link: "${link}".`);
            }
            return { id, isRid };
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
    const deliverDocument = (callback, written) => {
        if (written[1] === 0) callback(undefined);
        else callback(undefined, written[0], answer(written[1]));
    };
    const deliverFeed = (callback, feed) =>
        callback(undefined, feed[0], answer(200, feed[1] === undefined ? {} : { continuation: feed[1] }));

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
            return submit(() => native.create(document, indexAction, isUnseen(callback)), callback, deliverDocument);
        },
        upsertDocument(collectionLink, body, options, callback) {
            needs("upsertDocument", 2, arguments.length);
            checkCollectionLink(collectionLink);
            ({ options, callback } = settle(options, callback));
            const document = bodyText(body, options, true);
            const indexAction = optional(options.indexAction);
            const etag = optional(options.etag);
            return submit(() => native.upsert(document, etag, indexAction, isUnseen(callback)), callback, deliverDocument);
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
            const run = () => native.replace(isRid, id, document, etag, indexAction, isUnseen(callback));
            return submit(run, callback, deliverDocument);
        },
        deleteDocument(documentLink, options, callback) {
            needs("deleteDocument", 1, arguments.length);
            const { id, isRid } = documentOf(documentLink);
            ({ options, callback } = settle(options, callback));
            const etag = optional(options.etag);
            return submit(() => native.remove(isRid, id, etag, isUnseen(callback)), callback, callback =>
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
    const refuseAttachment = () => { throw refuse("The function is not available: attachments are not supported."); };
    const attachments = ["create", "upsert", "read", "replace", "delete"];
    for (let index = 0; index < 5; index++) collection[attachments[index] + "Attachment"] = refuseAttachment;
    collection.readAttachments = collection.queryAttachments = refuseAttachment;
    defineProperty(collection, "getPartitionKeyDefinition", { value: () => execution.partitionKeyPaths });

    // ---- Queries written in JavaScript, and shapes: loaded when one of them is first asked for.
    let queries;
    const query = name => (...given) => {
        queries ??= native.load("query")(native, {
            base,
            collection,
            underscore,
            refuse,
            settle,
            paging,
            submit,
            deliverFeed,
            needs,
            respond: text => {
                if (execution.response === undefined) {
                    throw refuse("A callback must be given where there is no response, as in a pre-trigger.");
                }
                execution.response().appendBody(text);
            },
        });
        return apply(queries[name], undefined, given);
    };
    const queryNames = ["filter", "map", "pluck", "flatten", "sortBy", "sortByDescending", "unwind", "chain"];
    for (let index = 0; index < 8; index++) collection[queryNames[index]] = query(queryNames[index]);
    const shapeNames = ["distance", "intersects", "within", "isValid", "isValidDetailed"];
    collection.spatial = {};
    for (let index = 0; index < 5; index++) collection.spatial[shapeNames[index]] = query(shapeNames[index]);

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
            // Onto nothing, numbers are appended as text.
            const start = value === undefined || typeof value === "object" ? value : `${value}`;
            property.value = measure(name, old === undefined || old === null ? start : old + value);
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
    const properties = (body, bodyIsWritable, more, values) => {
        const all = create(null);
        all.Body = { value: body, isWritable: bodyIsWritable };
        for (const name in more) all[name] = { value: more[name], isWritable: false };
        for (let index = 0; index < values.length; index++) {
            const pair = values[index];
            all[pair[0]] = { value: pair[1], isWritable: false };
        }
        return all;
    };

    const context = {
        getCollection: () => collection,
        abort(error) { native.abort(error); throw error; },
    };
    const underscore = create(collection);

    // Request and response are made when they are first asked for: few scripts use both, and the request has much to say.
    const once = make => {
        let made;
        return () => (made ??= make());
    };
    const plain = { writable: true, enumerable: true, configurable: true };
    const lazily = (object, name, make) =>
        defineProperty(object, name, {
            get() {
                const value = make();
                defineProperty(object, name, { ...plain, value });
                return value;
            },
            set(value) { defineProperty(object, name, { ...plain, value }); },
            enumerable: true,
            configurable: true,
        });

    // `given` comes from the server: kind, links, bodies, and what the request said.
    const begin = given => {
        execution = given;
        const { kind, operation, requestBody, responseBody } = given;
        const trigger = operation === "" ? {} : { OperationType: operation };
        const request = once(() => properties(requestBody, kind === "pre", trigger, native.requestValues()));
        execution.written = request;
        lazily(underscore, "request", () => messageOf(request()));
        context.getRequest = () => underscore.request;
        if (kind === "pre") return;
        const quota = { ResourceQuotaCurrentUsage: given.quotaCurrent, MaxResourceQuota: given.quotaMax };
        const response = once(() => properties(responseBody, true, kind === "post" ? quota : {}, []));
        execution.written = response;
        execution.response = once(() => messageOf(response()));
        lazily(underscore, "response", execution.response);
        context.getResponse = () => underscore.response;
    };
    const finish = () => execution.written().Body.value;

    const expose = (name, value) =>
        defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
    expose("getContext", () => context);
    expose("__", underscore);
    return { begin, step, finish };
})
