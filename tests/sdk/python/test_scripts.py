"""Stored procedures, triggers and user-defined functions as resources; running them is in the files of their own."""

import pytest

from support import fresh, ids, refused

KINDS = {
    "stored_procedure": {"body": "function () { getContext().getResponse().setBody('done'); }"},
    "trigger": {"body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"},
    "user_defined_function": {"body": "function (x) { return x + 1; }"},
}


def listed(scripts, kind, **options) -> list[str]:
    return ids(getattr(scripts, f"list_{kind}s")(**options))


@pytest.mark.parametrize("kind", KINDS)
def test_the_life_of_a_script(container, kind):
    scripts, definition = container.scripts, {"id": fresh(kind), **KINDS[kind]}
    name = definition["id"]
    create, read, replace, delete = (
        getattr(scripts, f"{act}_{kind}") for act in ("create", "get", "replace", "delete")
    )
    created = create(definition)
    assert {key: created[key] for key in definition} == definition
    assert created["_self"].startswith(container.read()["_self"]) and created["_etag"]
    assert dict(read(name)) == dict(created)
    with refused(409):
        create(definition)
    replaced = replace(name, {**definition, "body": "function () { return 0; }"})
    assert replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    assert name in listed(scripts, kind)
    delete(name)
    with refused(404):
        read(name)
    with refused(404):
        delete(name)
    with refused(404):
        replace(name, definition)


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_are_listed_and_found(make_container, kind):
    scripts = make_container().scripts
    names = [f"{kind}-{number}" for number in range(5)]
    for name in names:
        getattr(scripts, f"create_{kind}")({"id": name, **KINDS[kind]})
    assert listed(scripts, kind) == names
    assert listed(scripts, kind, max_item_count=2) == names
    query = getattr(scripts, f"query_{kind}s")
    found = query("SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": names[3]}])
    assert ids(found) == [names[3]]
    assert list(query("SELECT VALUE r.id FROM r ORDER BY r.id DESC", max_item_count=2)) == names[::-1]
    others = [other for other in KINDS if other != kind]
    assert [listed(scripts, other) for other in others] == [[], []]


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_without_a_name_is_refused(container, kind):
    with refused(400):
        getattr(container.scripts, f"create_{kind}")({"id": "", **KINDS[kind]})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", ["function ( {", "function () { return 1 +; }"])
def test_a_function_that_is_no_javascript_is_refused(container, kind, body):
    definition = {"id": fresh(kind), **KINDS[kind], "body": body}
    with refused(400, "Encountered exception while compiling Javascript. Exception = SyntaxError", substatus=0xFFFF):
        getattr(container.scripts, f"create_{kind}")(definition)
    with refused(404):
        getattr(container.scripts, f"get_{kind}")(definition["id"])


def test_what_is_no_function_is_refused_when_it_runs(container):
    name = fresh("text")
    container.scripts.create_stored_procedure({"id": name, "body": "Line separator (\u2028) & next line (\x85)"})
    with refused(400, "Encountered exception while compiling Javascript.", substatus=0xFFFF):
        container.scripts.execute_stored_procedure(name, "a")


@pytest.mark.parametrize("wrong", [{"triggerType": "During"}, {"triggerOperation": "Read"}], ids=repr)
def test_a_bad_trigger_is_refused(container, wrong):
    with refused(400):
        container.scripts.create_trigger({"id": fresh("trigger"), **KINDS["trigger"], **wrong})


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_go_with_their_container(database, make_container, kind):
    container = make_container()
    getattr(container.scripts, f"create_{kind}")({"id": "s", **KINDS[kind]})
    database.delete_container(container.id)
    again = database.create_container(container.id, {"paths": ["/pk"], "kind": "Hash", "version": 2})
    assert listed(again.scripts, kind) == []
