// Partition keys of every kind the SDK can write, and items of the same id told apart by them.

package sdk

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A key and the document properties that it belongs to.
type keyCase struct {
	key        azcosmos.PartitionKey
	properties document
}

// Gives every key an item of the same id, and expects each to be found by its own key only.
func checkKeys(t *testing.T, container *azcosmos.ContainerClient, cases []keyCase) {
	t.Helper()
	documents := make([]document, len(cases))
	for i, one := range cases {
		documents[i] = document{"id": "same", "number": i}
		for name, value := range one.properties {
			documents[i][name] = value
		}
		created := succeed(container.CreateItem(background, one.key, encode(t, documents[i]), nil))(t)
		checkItemAnswer(t, created, http.StatusCreated)
		refuse(container.CreateItem(background, one.key, encode(t, documents[i]), nil))(t, 409, "Conflict")
	}
	for i, one := range cases {
		checkDocument(t, succeed(container.ReadItem(background, one.key, "same", nil))(t).Value, documents[i])
		if other := (i + 1) % len(cases); other != i {
			refuse(container.ReplaceItem(background, cases[other].key, "same", encode(t, documents[i]), nil))(t, 400, "BadRequest")
		}
		succeed(container.ReplaceItem(background, one.key, "same", encode(t, documents[i]), nil))(t)
		succeed(container.UpsertItem(background, one.key, encode(t, documents[i]), nil))(t)
	}
	for _, one := range cases {
		succeed(container.DeleteItem(background, one.key, "same", nil))(t)
		refuse(container.ReadItem(background, one.key, "same", nil))(t, 404, "NotFound")
	}
}

func scalarKeys() []keyCase {
	var cases []keyCase
	for _, text := range []string{
		"", "a", "A", " ", "5", "true", "null", "quote\" and \\ backslash", "Ωμέγα 鱀", "a\u0301", "á", strings.Repeat("x", 100),
		strings.Repeat("x", 101), strings.Repeat("x", 1024),
	} {
		cases = append(cases, keyCase{azcosmos.NewPartitionKeyString(text), document{"pk": text}})
	}
	for _, number := range []float64{0, 1, -1, 0.1, 5, 1e300, 9007199254740991} {
		cases = append(cases, keyCase{azcosmos.NewPartitionKeyNumber(number), document{"pk": number}})
	}
	for _, truth := range []bool{true, false} {
		cases = append(cases, keyCase{azcosmos.NewPartitionKeyBool(truth), document{"pk": truth}})
	}
	return append(cases, keyCase{azcosmos.NullPartitionKey, document{"pk": nil}})
}

func TestScalarPartitionKeys(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		for _, version := range []int{1, 2} {
			definition := azcosmos.PartitionKeyDefinition{Kind: "Hash", Paths: []string{"/pk"}, Version: version}
			container := f.containerOf(t, azcosmos.ContainerProperties{
				ID: []string{"", "version one", "version two"}[version], PartitionKeyDefinition: definition,
			})
			checkKeys(t, container, scalarKeys())
		}
	})
}

func TestNestedPartitionKeys(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOf(t, azcosmos.ContainerProperties{ID: "nested", PartitionKeyDefinition: onePath("/address/zip")})
		checkKeys(t, container, []keyCase{
			{azcosmos.NewPartitionKeyString("10115"), document{"address": document{"zip": "10115"}}},
			{azcosmos.NewPartitionKeyNumber(10115), document{"address": document{"zip": 10115}}},
			{azcosmos.NullPartitionKey, document{"address": document{"zip": nil}}},
		})
	})
}

func TestIdAsPartitionKey(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOf(t, azcosmos.ContainerProperties{ID: "by id", PartitionKeyDefinition: onePath("/id")})
		checkKeys(t, container, []keyCase{{azcosmos.NewPartitionKeyString("same"), document{}}})
	})
}

func TestHierarchicalPartitionKeys(t *testing.T) {
	key := azcosmos.NewPartitionKeyString
	overBothSchemes(t, func(t *testing.T, f fixture) {
		definition := azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/tenant", "/user", "/session"}, Version: 2,
		}
		container := f.containerOf(t, azcosmos.ContainerProperties{ID: "levels", PartitionKeyDefinition: definition})
		equal(t, "definition", succeed(container.Read(background, nil))(t).ContainerProperties.PartitionKeyDefinition, definition)
		checkKeys(t, container, []keyCase{
			{key("a").AppendString("b").AppendString("c"), document{"tenant": "a", "user": "b", "session": "c"}},
			{key("a").AppendString("bc").AppendString(""), document{"tenant": "a", "user": "bc", "session": ""}},
			{key("a").AppendNumber(1).AppendBool(true), document{"tenant": "a", "user": 1, "session": true}},
			{key("a").AppendNull().AppendNull(), document{"tenant": "a", "user": nil, "session": nil}},
		})
		// A prefix of the key names many partitions, so an item cannot be addressed with it.
		whole := document{"id": "1", "tenant": "a", "user": "b", "session": "c"}
		for _, prefix := range []azcosmos.PartitionKey{key("a"), key("a").AppendString("b")} {
			refuse(container.CreateItem(background, prefix, encode(t, whole), nil))(t, 400, "BadRequest")
			refuse(container.ReadItem(background, prefix, "1", nil))(t, 400, "BadRequest")
		}
	})
}

// Without components the SDK leaves the header out, which the service refuses for a point operation.
func TestMissingPartitionKey(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "items")
		refuse(container.CreateItem(background, azcosmos.NewPartitionKey(), encode(t, someDocument("1", 1)), nil))(t, 400, "BadRequest")
		refuse(container.ReadItem(background, azcosmos.NewPartitionKey(), "1", nil))(t, 400, "BadRequest")
	})
}
