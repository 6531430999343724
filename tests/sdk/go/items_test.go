// The life of an item: every write and read, conditions, refusals, odd ids, session tokens, time to live, lists.
//
// The SDK lists items by a query only. SELECT * FROM c is a list; what else SQL can do is not tested here.

package sdk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var (
	someKey     = azcosmos.NewPartitionKeyString("somewhere")
	withContent = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	staleEtag   = azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)
)

// A document in the partition of someKey.
func someDocument(id string, value any) document {
	return document{"id": id, "pk": "somewhere", "value": value}
}

func TestItemLife(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		refuse(container.ReadItem(background, someKey, "1", nil))(t, 404, "NotFound")

		first := someDocument("1", "first")
		created := succeed(container.CreateItem(background, someKey, encode(t, first), withContent))(t)
		checkItemAnswer(t, created, http.StatusCreated)
		checkDocument(t, created.Value, first)
		equal(t, "etag in body and header", decode(t, created.Value)["_etag"], string(created.ETag))
		refuse(container.CreateItem(background, someKey, encode(t, first), nil))(t, 409, "Conflict")

		read := succeed(container.ReadItem(background, someKey, "1", nil))(t)
		checkItemAnswer(t, read, http.StatusOK)
		equal(t, "body", string(read.Value), string(created.Value))
		equal(t, "etag", read.ETag, created.ETag)

		second := someDocument("1", "second")
		replaced := succeed(container.ReplaceItem(background, someKey, "1", encode(t, second), withContent))(t)
		checkItemAnswer(t, replaced, http.StatusOK)
		checkDocument(t, replaced.Value, second)
		if replaced.ETag == created.ETag {
			t.Fatal("the etag did not change")
		}
		equal(t, "rid", decode(t, replaced.Value)["_rid"], decode(t, created.Value)["_rid"])

		third := someDocument("1", "third")
		updated := succeed(container.UpsertItem(background, someKey, encode(t, third), withContent))(t)
		checkItemAnswer(t, updated, http.StatusOK)
		checkDocument(t, updated.Value, third)

		deleted := succeed(container.DeleteItem(background, someKey, "1", nil))(t)
		checkItemAnswer(t, deleted, http.StatusNoContent)
		refuse(container.ReadItem(background, someKey, "1", nil))(t, 404, "NotFound")
		refuse(container.DeleteItem(background, someKey, "1", nil))(t, 404, "NotFound")
		refuse(container.ReplaceItem(background, someKey, "1", encode(t, second), nil))(t, 404, "NotFound")

		inserted := succeed(container.UpsertItem(background, someKey, encode(t, first), withContent))(t)
		checkItemAnswer(t, inserted, http.StatusCreated)
		checkDocument(t, inserted.Value, first)
	})
}

// The SDK's default is to ask for no content, so a write answers with headers only.
func TestItemWithoutContent(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		text := encode(t, someDocument("1", 1))
		for _, write := range []struct {
			answer azcosmos.ItemResponse
			status int
		}{
			{succeed(container.CreateItem(background, someKey, text, nil))(t), http.StatusCreated},
			{succeed(container.ReplaceItem(background, someKey, "1", text, nil))(t), http.StatusOK},
			{succeed(container.UpsertItem(background, someKey, text, nil))(t), http.StatusOK},
		} {
			checkItemAnswer(t, write.answer, write.status)
			equal(t, "length of the body", len(write.answer.Value), 0)
			if write.answer.ETag == "" {
				t.Fatal("no etag")
			}
		}
	})
}

func TestItemConditions(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		text := encode(t, someDocument("1", 1))
		current := succeed(container.CreateItem(background, someKey, text, nil))(t).ETag
		stale := &azcosmos.ItemOptions{IfMatchEtag: &staleEtag}
		refuse(container.ReplaceItem(background, someKey, "1", text, stale))(t, 412, "PreconditionFailed")
		refuse(container.UpsertItem(background, someKey, text, stale))(t, 412, "PreconditionFailed")
		refuse(container.DeleteItem(background, someKey, "1", stale))(t, 412, "PreconditionFailed")

		replaced := succeed(container.ReplaceItem(background, someKey, "1", text, &azcosmos.ItemOptions{IfMatchEtag: &current}))(t)
		refuse(container.ReplaceItem(background, someKey, "1", text, &azcosmos.ItemOptions{IfMatchEtag: &current}))(t, 412, "PreconditionFailed")
		current = succeed(container.UpsertItem(background, someKey, text, &azcosmos.ItemOptions{IfMatchEtag: &replaced.ETag}))(t).ETag
		succeed(container.DeleteItem(background, someKey, "1", &azcosmos.ItemOptions{IfMatchEtag: &current}))(t)

		// On an item that is not there, the condition of an upsert has nothing to compare with.
		inserted := succeed(container.UpsertItem(background, someKey, text, stale))(t)
		checkItemAnswer(t, inserted, http.StatusCreated)
	})
}

func TestItemRefusals(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		create := func(text string) func(*testing.T, int, string) *azcore.ResponseError {
			return refuse(container.CreateItem(background, someKey, []byte(text), nil))
		}
		for _, text := range []string{
			``, `{`, `[]`, `"text"`, `{"pk":"somewhere"}`, `{"id":"","pk":"somewhere"}`, `{"id":1,"pk":"somewhere"}`,
			"{\"id\":\"\xff\",\"pk\":\"somewhere\"}", `{"id":"1","pk":"somewhere","n":1e400}`, `{"id":"1","pk":"somewhere","ttl":0}`,
			`{"id":"` + strings.Repeat("x", 1024) + `","pk":"somewhere"}`,
			`{"id":"1","pk":"somewhere","deep":` + strings.Repeat("[", 129) + strings.Repeat("]", 129) + `}`,
		} {
			create(text)(t, 400, "BadRequest")
		}
		create(`{"id":"1","pk":"somewhere","big":"`+strings.Repeat("x", 2<<20)+`"}`)(t, 413, "RequestEntityTooLarge")

		elsewhere := refuse(container.CreateItem(background, someKey, encode(t, document{"id": "1", "pk": "elsewhere"}), nil))(t, 400, "BadRequest")
		equal(t, "substatus", elsewhere.RawResponse.Header.Get("x-ms-substatus"), "1001")
		succeed(container.CreateItem(background, someKey, encode(t, someDocument("1", 1)), nil))(t)
		refuse(container.ReplaceItem(background, someKey, "1", encode(t, document{"id": "1", "pk": "elsewhere"}), nil))(t, 400, "BadRequest")
		refuse(container.ReadItem(background, azcosmos.NewPartitionKeyString("elsewhere"), "1", nil))(t, 404, "NotFound")

		absent := succeed(f.database.NewContainer("absent"))(t)
		orphan := refuse(absent.CreateItem(background, someKey, encode(t, someDocument("1", 1)), nil))(t, 404, "NotFound")
		equal(t, "substatus", orphan.RawResponse.Header.Get("x-ms-substatus"), "1003")
	})
}

// Every id that the SDK can send. It cleans paths itself, so "." and ".." are not among them.
func TestItemIds(t *testing.T) {
	ids := []string{
		"plain", "with space", " leading", "trailing ", "trailing  ", "%", "%20", "%2F", "%E9%B1%80", "a+b", "a&b=c", "a;b,c",
		"question?mark", "?", "hash#mark", "=.:~+-@()^${}[]!_", "'single' \"double\"", "tab\ttab", "line\nline", "carriage\rreturn",
		"Ωμέγα", "鱀", "ไทย", "हिन्दी", "عربى", "👩🏽‍🚀", "a\u0301", "á", "docs", "dbs", "a/b", "a\\b", "x/attachments/y", strings.Repeat("x", 255), strings.Repeat("é", 511),
	}
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		// All of them are there at once, so that two ids which are mixed up cannot pass.
		for _, id := range ids {
			created := succeed(container.CreateItem(background, someKey, encode(t, someDocument(id, id)), nil))(t)
			checkItemAnswer(t, created, http.StatusCreated)
		}
		for _, id := range ids {
			checkDocument(t, succeed(container.ReadItem(background, someKey, id, nil))(t).Value, someDocument(id, id))
			changed := someDocument(id, "changed "+id)
			succeed(container.ReplaceItem(background, someKey, id, encode(t, changed), nil))(t)
			checkDocument(t, succeed(container.ReadItem(background, someKey, id, nil))(t).Value, changed)
		}
		for _, id := range ids {
			succeed(container.DeleteItem(background, someKey, id, nil))(t)
			refuse(container.ReadItem(background, someKey, id, nil))(t, 404, "NotFound")
		}
	})
}

func TestItemValues(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		sent := someDocument("1", document{
			"null": nil, "true": true, "integer": 9007199254740991, "negative": -1.5e-300, "big": 1.7976931348623157e308,
			"text": "\u0000 \" \\ / \u2028 👩🏽‍🚀", "empty": []any{document{}, []any{}, ""}, "": "no name", "a/b": 1, "$": document{"$": 1},
		})
		created := succeed(container.CreateItem(background, someKey, encode(t, sent), withContent))(t)
		checkDocument(t, created.Value, sent)
		checkDocument(t, succeed(container.ReadItem(background, someKey, "1", nil))(t).Value, sent)

		large := someDocument("large", strings.Repeat("x", 2<<20-1000))
		succeed(container.CreateItem(background, someKey, encode(t, large), nil))(t)
		checkDocument(t, succeed(container.ReadItem(background, someKey, "large", nil))(t).Value, large)
	})
}

func TestSessionTokens(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		first := succeed(container.CreateItem(background, someKey, encode(t, someDocument("1", 1)), nil))(t)
		second := succeed(container.UpsertItem(background, someKey, encode(t, someDocument("1", 2)), nil))(t)
		if *first.SessionToken == *second.SessionToken {
			t.Fatalf("two writes, one session token: %s", *first.SessionToken)
		}
		for _, token := range []*string{first.SessionToken, second.SessionToken} {
			read := succeed(container.ReadItem(background, someKey, "1", &azcosmos.ItemOptions{SessionToken: token}))(t)
			equal(t, "session token", *read.SessionToken, *second.SessionToken)
		}
		refuse(container.ReadItem(background, someKey, "1", &azcosmos.ItemOptions{SessionToken: pointer("junk")}))(t, 400, "BadRequest")
	})
}

func TestConsistencyLevels(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		succeed(container.CreateItem(background, someKey, encode(t, someDocument("1", 1)), nil))(t)
		for _, level := range []azcosmos.ConsistencyLevel{"Session", "ConsistentPrefix", "Eventual"} {
			succeed(container.ReadItem(background, someKey, "1", &azcosmos.ItemOptions{ConsistencyLevel: &level}))(t)
		}
		// Stronger than the account's level, which is Session.
		for _, level := range []azcosmos.ConsistencyLevel{"Strong", "BoundedStaleness"} {
			refuse(container.ReadItem(background, someKey, "1", &azcosmos.ItemOptions{ConsistencyLevel: &level}))(t, 400, "BadRequest")
		}
	})
}

func TestTimeToLive(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOf(t, azcosmos.ContainerProperties{
			ID: "items", PartitionKeyDefinition: onePath("/pk"), DefaultTimeToLive: pointer[int32](-1),
		})
		lasting := someDocument("lasting", 1)
		succeed(container.CreateItem(background, someKey, encode(t, lasting), nil))(t)
		brief := someDocument("brief", 1)
		brief["ttl"] = 1
		succeed(container.CreateItem(background, someKey, encode(t, brief), nil))(t)
		deadline := time.Now().Add(5 * time.Minute)
		for {
			if _, err := container.ReadItem(background, someKey, "brief", nil); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("an item outlived its time")
			}
			time.Sleep(50 * time.Millisecond)
		}
		refuse(container.ReadItem(background, someKey, "brief", nil))(t, 404, "NotFound")
		succeed(container.CreateItem(background, someKey, encode(t, someDocument("brief", 2)), nil))(t)
		checkDocument(t, succeed(container.ReadItem(background, someKey, "lasting", nil))(t).Value, lasting)
	})
}

// Lists of one partition and of the whole container, in pages of several sizes.
func TestItemList(t *testing.T) {
	const count = 7
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		var here, everywhere []string
		for number := range count {
			id := fmt.Sprintf("item %d", number)
			succeed(container.CreateItem(background, someKey, encode(t, someDocument(id, number)), nil))(t)
			elsewhere := azcosmos.NewPartitionKeyString(id)
			succeed(container.CreateItem(background, elsewhere, encode(t, document{"id": id, "pk": id}), nil))(t)
			here = append(here, id)
			everywhere = append(everywhere, id, id)
		}
		for _, size := range []int32{1, 3, count, 1000} {
			equal(t, "items of a partition", listed(t, container, someKey, size), here)
			equal(t, "items", listed(t, container, azcosmos.NewPartitionKey(), size), everywhere)
		}
		equal(t, "items of an empty partition", len(listed(t, container, azcosmos.NewPartitionKeyString("empty"), 10)), 0)
	})
}

// The ids of a list, as it comes; the service gives items in the order of their creation.
func listed(t *testing.T, container *azcosmos.ContainerClient, key azcosmos.PartitionKey, pageSize int32) []string {
	t.Helper()
	var ids []string
	pager := container.NewQueryItemsPager("SELECT * FROM c", key, &azcosmos.QueryOptions{PageSizeHint: pageSize})
	for pager.More() {
		page := succeed(pager.NextPage(background))(t)
		if len(page.Items) > int(pageSize) {
			t.Fatalf("%d items on a page of %d", len(page.Items), pageSize)
		}
		for _, item := range page.Items {
			ids = append(ids, decode(t, item)["id"].(string))
		}
	}
	return ids
}
