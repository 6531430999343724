"""Stored procedures, triggers and user-defined functions as resources; running them is another matter."""

import pytest

from support import fresh, ids, refused

KINDS = {
    "stored_procedure": {"body": "function () { getContext().getResponse().setBody('done'); }"},
    "trigger": {"body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"},
    "user_defined_function": {"body": "function (x) { return x + 1; }"},
}


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
    assert name in ids(getattr(scripts, f"list_{kind}s")())
    delete(name)
    with refused(404):
        read(name)
    with refused(404):
        delete(name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_script_without_a_name_is_refused(container, kind):
    with refused(400):
        getattr(container.scripts, f"create_{kind}")({"id": "", **KINDS[kind]})


@pytest.mark.parametrize("wrong", [{"triggerType": "During"}, {"triggerOperation": "Read"}], ids=repr)
def test_a_bad_trigger_is_refused(container, wrong):
    with refused(400):
        container.scripts.create_trigger({"id": fresh("trigger"), **KINDS["trigger"], **wrong})
