"""Triggers at work: named by a request, before and after each kind of write, in the transaction of that write."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey

from support import Procedures, content, fresh, ids, refused

STAMP = """
function stamp() {
  const request = getContext().getRequest();
  const item = request.getBody();
  if (!("stamp" in item)) item.stamp = request.getOperationType();
  request.setBody(item);
}"""
FORBID = "function () { throw new Error('not today'); }"
# Keeps one item for a partition that counts the writes and knows the last.
COUNT = """
function count() {
  const collection = getContext().getCollection();
  const written = getContext().getResponse().getBody();
  const query = 'SELECT * FROM c WHERE c.id = "about"';
  const accepted = collection.queryDocuments(collection.getSelfLink(), query, (error, found) => {
    if (error) throw error;
    if (found.length !== 1) throw new Error("there is nothing to keep the count in");
    found[0].writes += 1;
    found[0].last = written.id;
    collection.replaceDocument(found[0]._self, found[0], (failure) => { if (failure) throw failure; });
  });
  if (!accepted) throw new Error("not accepted");
}"""


class Triggers:
    """Triggers of a container, made when they are first used."""

    def __init__(self, container):
        self.scripts, self.known = container.scripts, {}

    def name(self, when: str, body: str, operation: str = "All") -> str:
        key = (when, body, operation)
        if key not in self.known:
            self.known[key] = fresh("trigger")
            definition = {"id": self.known[key], "body": body, "triggerType": when, "triggerOperation": operation}
            self.scripts.create_trigger(definition)
        return self.known[key]

    def pre(self, body, operation="All"):
        return {"pre_trigger_include": self.name("Pre", body, operation)}

    def post(self, body, operation="All"):
        return {"post_trigger_include": self.name("Post", body, operation)}


@pytest.fixture(scope="module")
def triggers(container):
    """One set for the whole file: a container may have twenty-five."""
    return Triggers(container)


def stored(container, key) -> list[str]:
    return sorted(ids(container.query_items("SELECT c.id FROM c", partition_key=key)))


def write(container, operation, item, **options):
    """Does one of the writes; items to be changed are there already."""
    return {
        "Create": lambda: container.create_item(item, **options),
        "Replace": lambda: container.replace_item(item["id"], item, **options),
        "Upsert": lambda: container.upsert_item(item, **options),
        "Delete": lambda: container.delete_item(item["id"], item["pk"], **options),
    }[operation]()


def test_only_triggers_that_are_named_run(container, triggers):
    key = fresh("key")
    named = triggers.pre(STAMP)
    assert content(container.create_item({"id": "1", "pk": key})) == {"id": "1", "pk": key}
    made = container.create_item({"id": "2", "pk": key}, **named)
    assert content(made) == {"id": "2", "pk": key, "stamp": "Create"}
    assert dict(container.read_item("2", key)) == dict(made)


@pytest.mark.parametrize("operation", ["Create", "Replace", "Upsert"])
@pytest.mark.parametrize("given", ["All", "same"])
def test_a_trigger_before_every_operation(container, triggers, operation, given):
    item = {"id": fresh("item"), "pk": "before"}
    if operation != "Create":
        container.create_item({**item, "old": True})
    named = triggers.pre(STAMP, operation if given == "same" else "All")
    assert content(write(container, operation, item, **named)) == {**item, "stamp": operation}
    assert content(container.read_item(item["id"], "before")) == {**item, "stamp": operation}


def test_a_trigger_for_another_operation_is_refused(container, triggers):
    item = {"id": fresh("item"), "pk": "others"}
    for operation, other in [("Create", "Replace"), ("Create", "Delete"), ("Upsert", "Create"), ("Create", "Upsert")]:
        with refused(400):
            write(container, operation, item, **triggers.pre(STAMP, other))
    container.create_item(item)
    for operation, other in [("Replace", "Create"), ("Delete", "Replace"), ("Delete", "Create")]:
        with refused(400):
            write(container, operation, item, **triggers.pre(STAMP, other))
    assert content(container.read_item(item["id"], "others")) == item


def test_a_trigger_that_is_none_is_refused(container, triggers):
    item = {"id": fresh("item"), "pk": "wrong"}
    before, after = triggers.name("Pre", STAMP), triggers.name("Post", "function () {}")
    for options in (
        {"pre_trigger_include": "none"},
        {"post_trigger_include": "none"},
        {"pre_trigger_include": after},
        {"post_trigger_include": before},
        {"pre_trigger_include": f"{before},{triggers.name('Pre', FORBID)}"},
    ):
        with refused(400):
            container.create_item(item, **options)
    assert stored(container, "wrong") == []


@pytest.mark.parametrize("operation", ["Create", "Replace", "Upsert", "Delete"])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_a_trigger_that_throws_stops_the_write(container, triggers, operation, when):
    item = {"id": fresh("item"), "pk": fresh("key")}
    if operation != "Create":
        container.create_item({**item, "old": True})
    with refused(400, "Exception = Error: not today"):
        write(container, operation, item, **getattr(triggers, when)(FORBID))
    kept = [content(one) for one in container.query_items("SELECT * FROM c", partition_key=item["pk"])]
    assert kept == ([] if operation == "Create" else [{**item, "old": True}])


def test_a_trigger_before_may_change_the_id_and_not_the_key(container, triggers):
    key = fresh("key")
    rename = """function () {
        const item = __.request.getBody();
        item.id = item.id.toUpperCase();
        __.request.setBody(item);
    }"""
    assert container.create_item({"id": "abc", "pk": key}, **triggers.pre(rename))["id"] == "ABC"
    assert stored(container, key) == ["ABC"]
    move = "function () { __.request.setBody({ id: 'moved', pk: 'elsewhere' }); }"
    with pytest.raises(Exception) as caught:
        container.create_item({"id": "x", "pk": key}, **triggers.pre(move))
    assert caught.value.status_code == 400
    assert stored(container, key) == ["ABC"]


def test_a_trigger_before_may_write_other_items(container, triggers):
    key = fresh("key")
    journal = """
    function () {
      const item = __.request.getBody();
      __.createDocument(__.getSelfLink(), { id: "of " + item.id, pk: item.pk });
    }"""
    container.create_item({"id": "1", "pk": key}, **triggers.pre(journal))
    assert stored(container, key) == ["1", "of 1"]
    # The write itself fails: the journal has not been written either.
    container.delete_item("of 1", key)
    with refused(409):
        container.create_item({"id": "1", "pk": key}, **triggers.pre(journal))
    assert stored(container, key) == ["1"]


def test_a_trigger_after_keeps_an_aggregate(container, triggers):
    key = fresh("key")
    named = triggers.post(COUNT)
    with refused(400, "there is nothing to keep the count in"):
        container.create_item({"id": "early", "pk": key}, **named)
    assert stored(container, key) == []
    container.create_item({"id": "about", "pk": key, "writes": 0})
    container.create_item({"id": "1", "pk": key}, **named)
    container.upsert_item({"id": "2", "pk": key}, **named)
    container.replace_item("1", {"id": "1", "pk": key, "n": 1}, **named)
    about = container.read_item("about", key)
    assert (about["writes"], about["last"]) == (3, "1")


def test_both_triggers_of_one_write(container, triggers):
    look = """
    function () {
      const sent = __.request.getBody(), written = __.response.getBody();
      if (sent.stamp !== "Create" || written.stamp !== "Create") throw new Error("the first has not run");
      if (!written._etag || !written._rid) throw new Error("nothing has been written");
    }"""
    item = {"id": fresh("item"), "pk": "both"}
    made = container.create_item(item, **triggers.pre(STAMP), **triggers.post(look))
    assert content(made) == {**item, "stamp": "Create"}


def test_a_trigger_after_a_delete(container, triggers):
    key = fresh("key")
    for name in ("1", "about"):
        container.create_item({"id": name, "pk": key, "writes": 0})
    forget = """
    function () {
      __.readDocument(__.getAltLink() + "/docs/about", (error, about) => {
        if (error) throw error;
        about.writes += 1;
        __.replaceDocument(about._self, about);
      });
    }"""
    container.delete_item("1", key, **triggers.post(forget, "Delete"))
    assert stored(container, key) == ["about"]
    assert container.read_item("about", key)["writes"] == 1


def test_scripts_and_batches_run_no_triggers(container, triggers):
    key = fresh("key")
    triggers.name("Pre", FORBID)
    procedure = "function (key) { __.createDocument(__.getSelfLink(), { id: 'scripted', pk: key }); }"
    Procedures(container).run(procedure, key, key)
    container.execute_item_batch([("create", ({"id": "batched", "pk": key},))], key)
    assert stored(container, key) == ["batched", "scripted"]


def test_conditions_and_triggers_together(container, triggers):
    item = {"id": fresh("item"), "pk": "conditions"}
    old = container.create_item(item)["_etag"]
    container.replace_item(item["id"], {**item, "n": 1})
    with refused(412):
        container.replace_item(
            item["id"], item, etag=old, match_condition=MatchConditions.IfNotModified, **triggers.pre(STAMP)
        )
    assert content(container.read_item(item["id"], "conditions")) == {**item, "n": 1}


def test_a_replaced_trigger_is_the_new_one(database):
    container = database.create_container(fresh("container"), PartitionKey("/pk"))
    body = "function () {{ const i = __.request.getBody(); i.version = {}; __.request.setBody(i); }}"
    definition = {"id": "t", "triggerType": "Pre", "triggerOperation": "All"}
    container.scripts.create_trigger({**definition, "body": body.format(1)})
    assert container.create_item({"id": "1", "pk": "a"}, pre_trigger_include="t")["version"] == 1
    container.scripts.replace_trigger("t", {**definition, "body": body.format(2)})
    assert container.create_item({"id": "2", "pk": "a"}, pre_trigger_include="t")["version"] == 2
    container.scripts.delete_trigger("t")
    with refused(400):
        container.create_item({"id": "3", "pk": "a"}, pre_trigger_include="t")
