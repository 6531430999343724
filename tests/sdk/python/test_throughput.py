"""Throughput of containers and databases: manual, autoscale, shared, and moving between them."""

import urllib.request

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties

from support import fresh, refused

MIGRATE = {
    "autoscale": "x-ms-cosmos-migrate-offer-to-autopilot",
    "manual": "x-ms-cosmos-migrate-offer-to-manual-throughput",
}


@pytest.fixture
def make_database(client):
    """Makes databases with throughput; they are deleted after the test."""
    made = []

    def make(**options):
        made.append(client.create_database(fresh("throughput"), **options))
        return made[-1]

    yield make
    for database in made:
        client.delete_database(database)


@pytest.fixture
def offered(connection):
    """The links of all resources with throughput; get_throughput of this SDK fails by itself where there is none."""
    return lambda: [offer["resource"] for offer in connection.ReadOffers()]


def autoscale(maximum, percent=0):
    return ThroughputProperties(auto_scale_max_throughput=maximum, auto_scale_increment_percent=percent)


def migrate(connection, target, kind):
    """The SDK has no method for it: the offer as it is, with the header that asks for the move."""
    offer = dict(target.get_throughput().properties)
    headers = {**connection.default_headers, MIGRATE[kind]: "true"}
    return connection.Replace(offer, f"/offers/{offer['id']}/", "offers", offer["id"], headers)


def test_a_container_has_four_hundred_by_itself(container):
    throughput = container.get_throughput()
    assert throughput.offer_throughput == 400 and throughput.auto_scale_max_throughput is None
    offer, properties = throughput.properties, container.read()
    assert offer["resource"] == properties["_self"] and offer["offerResourceId"] == properties["_rid"]
    assert offer["offerVersion"] == "V2" and offer["id"] == offer["_rid"] and len(offer["id"]) == 4
    assert offer["_self"] == f"offers/{offer['id']}/" and offer["_etag"] and offer["_ts"]
    assert offer["content"]["offerThroughput"] == 400


@pytest.mark.parametrize("throughput", [400, 500, 1000, 10000])
def test_manual_throughput_is_shown_again(make_container, throughput):
    assert make_container(offer_throughput=throughput).get_throughput().offer_throughput == throughput


@pytest.mark.parametrize("maximum, percent", [(1000, 0), (4000, 0), (5000, 2)])
def test_autoscale_is_shown_again(make_container, maximum, percent):
    throughput = make_container(offer_throughput=autoscale(maximum, percent)).get_throughput()
    assert throughput.auto_scale_max_throughput == maximum
    assert throughput.auto_scale_increment_percent == percent
    assert throughput.properties["content"]["offerThroughput"] == maximum // 10


@pytest.mark.parametrize("throughput", [100, 399, 450, -1, 1_000_100])
def test_bad_manual_throughput_is_refused(database, throughput):
    with refused(400):
        database.create_container(fresh("container"), PartitionKey("/pk"), offer_throughput=throughput)


@pytest.mark.parametrize("maximum", [100, 999, 1500, 0])
def test_bad_autoscale_is_refused(database, maximum):
    with refused(400):
        database.create_container(fresh("container"), PartitionKey("/pk"), offer_throughput=autoscale(maximum))


def test_autoscale_below_the_minimum_names_the_minimum(database):
    with refused(400, "Requested throughput -200 is less than required minimum throughput 1000"):
        database.create_container(fresh("container"), PartitionKey("/pk"), offer_throughput=autoscale(-200))


def test_manual_and_autoscale_together_are_refused(database):
    both = ThroughputProperties(auto_scale_max_throughput=4000, offer_throughput=400)
    with refused(400):
        database.create_container(fresh("container"), PartitionKey("/pk"), offer_throughput=both)


def test_manual_throughput_is_replaced(make_container):
    container = make_container()
    replaced = container.replace_throughput(700)
    assert replaced.offer_throughput == 700
    headers = replaced.get_response_headers()
    assert headers["x-ms-offer-replace-pending"] == "false" and int(headers["x-ms-cosmos-min-throughput"]) >= 400
    assert container.get_throughput().offer_throughput == 700


@pytest.mark.parametrize("throughput", [100, 399, 450])
def test_replacing_with_bad_throughput_changes_nothing(make_container, throughput):
    container = make_container()
    with refused(400):
        container.replace_throughput(throughput)
    assert container.get_throughput().offer_throughput == 400


def test_autoscale_is_replaced(make_container):
    container = make_container(offer_throughput=autoscale(4000))
    container.replace_throughput(autoscale(7000))
    assert container.get_throughput().auto_scale_max_throughput == 7000
    with refused(400):
        container.replace_throughput(autoscale(900))
    assert container.get_throughput().auto_scale_max_throughput == 7000


def test_manual_moves_to_autoscale_and_back(connection, make_container):
    container = make_container(offer_throughput=400)
    moved = migrate(connection, container, "autoscale")
    assert moved["content"]["offerAutopilotSettings"]["maxThroughput"] >= 1000
    assert container.get_throughput().auto_scale_max_throughput >= 1000
    moved = migrate(connection, container, "manual")
    assert "offerAutopilotSettings" not in moved["content"]
    assert container.get_throughput().offer_throughput >= 400


def test_without_the_header_the_kind_does_not_change(connection, make_container):
    container = make_container(offer_throughput=400)
    offer = dict(container.get_throughput().properties)
    offer["content"] = {"offerThroughput": -1, "offerAutopilotSettings": {"maxThroughput": 4000}}
    with refused(400):
        connection.ReplaceOffer(offer["_self"], offer)
    assert container.get_throughput().offer_throughput == 400


def test_a_database_has_no_throughput_by_itself(offered, database):
    assert database.read()["_self"] not in offered()


def test_the_throughput_of_a_database_is_shared(make_database, offered):
    database = make_database(offer_throughput=600)
    assert database.get_throughput().offer_throughput == 600
    shared = database.create_container("shared", PartitionKey("/pk"))
    assert shared.read()["_self"] not in offered()
    dedicated = database.create_container("dedicated", PartitionKey("/pk"), offer_throughput=500)
    assert dedicated.get_throughput().offer_throughput == 500
    assert database.replace_throughput(800).offer_throughput == 800
    assert database.get_throughput().offer_throughput == 800


def test_a_database_with_autoscale(make_database):
    database = make_database(offer_throughput=autoscale(2000))
    assert database.get_throughput().auto_scale_max_throughput == 2000
    database.replace_throughput(autoscale(3000))
    assert database.get_throughput().auto_scale_max_throughput == 3000


def test_an_offer_goes_with_its_container(connection, database, make_container):
    container = make_container()
    offer = container.get_throughput().properties
    database.delete_container(container)
    with refused(404):
        connection.ReadOffer(offer["_self"])
    assert offer["id"] not in [one["id"] for one in connection.ReadOffers()]


def test_offers_are_listed_in_pages(connection, make_container):
    mine = {make_container().get_throughput().properties["id"] for _ in range(3)}
    pages = [list(page) for page in connection.ReadOffers({"maxItemCount": 2}).by_page()]
    assert all(len(page) <= 2 for page in pages)
    assert mine <= {offer["id"] for page in pages for offer in page}


def test_an_offer_is_replaced_only_if_its_etag_is_current(connection, make_container):
    offer = dict(make_container().get_throughput().properties)
    condition = {"accessCondition": {"type": "IfMatch", "condition": offer["_etag"]}}
    replace = lambda value: connection.Replace(
        {**offer, "content": {**offer["content"], "offerThroughput": value}},
        f"/offers/{offer['id']}/",
        "offers",
        offer["id"],
        None,
        condition,
    )
    assert replace(500)["_etag"] != offer["_etag"]
    with refused(412):
        replace(600)


def test_requests_beyond_the_throughput_are_refused_and_repeated(make_container, connection, server):
    """The SDK waits as it is told and asks again: the application hears nothing of it."""
    count = 5
    limited = make_container()
    offer = dict(limited.get_throughput().properties)
    offer["content"]["astrariumThrottling"] = True
    connection.ReplaceOffer(offer["_self"], offer)
    assert limited.get_throughput().properties["content"]["astrariumThrottling"] is True
    for number in range(count):
        # More than 400 RU each, which is what a second has: every one is followed by a wait, on whatever machine it is sent in less.
        limited.create_item({"id": str(number), "pk": "a", "text": "x" * 1_500_000})
    with urllib.request.urlopen(server.endpoint("http") + "metrics") as page:
        told = [line.split() for line in page.read().decode().splitlines() if limited.read()["_rid"] in line]
    counts = {line[0].split("{")[0]: float(line[1]) for line in told if 'operation="create"' in line[0]}
    assert counts["astrarium_item_requests_throttled_total"] > 0
    assert counts["astrarium_item_requests_total"] == count + counts["astrarium_item_requests_throttled_total"]
    # Others are not concerned.
    make_container().create_item({"id": "1", "pk": "a"})
