// Containers of several key ranges: the SDK's own routing, reads of many items, queries and sessions over them.

package sdk

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const spreadCount = 40

func spreadID(number int) string { return fmt.Sprintf("key %d", number) }

func spreadKey(number int) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(spreadID(number)) }

// Writes an item of every key, and gives the last session token of every range by the range's id.
func writeSpread(t *testing.T, container *azcosmos.ContainerClient) map[string]string {
	t.Helper()
	tokens := map[string]string{}
	for number := range spreadCount {
		item := document{"id": spreadID(number), "pk": spreadID(number), "n": number}
		response := succeed(container.UpsertItem(background, spreadKey(number), encode(t, item), nil))(t)
		served := response.RawResponse.Header.Get("x-ms-documentdb-partitionkeyrangeid")
		id, _, found := strings.Cut(*response.SessionToken, ":-1#")
		equal(t, "the token is of the range that served", []any{found, id}, []any{true, served})
		tokens[id] = *response.SessionToken
	}
	return tokens
}

func TestOperationsOfSeveralRanges(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOver(t, 4)
		equal(t, "ranges that serve", len(writeSpread(t, container)), 4)
		for number := range spreadCount {
			read := succeed(container.ReadItem(background, spreadKey(number), spreadID(number), nil))(t)
			checkDocument(t, read.Value, document{"id": spreadID(number), "pk": spreadID(number), "n": number})
		}
		for number := range 12 {
			increment := azcosmos.PatchOperations{}
			increment.AppendIncrement("/n", 100)
			succeed(container.PatchItem(background, spreadKey(number), spreadID(number), increment, nil))(t)
			succeed(container.DeleteItem(background, spreadKey(number), spreadID(number), nil))(t)
			refuse(container.ReadItem(background, spreadKey(number), spreadID(number), nil))(t, 404, "NotFound")
		}
	})
}

func TestManyItemsOfSeveralRanges(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOver(t, 4)
		writeSpread(t, container)
		var wanted []azcosmos.ItemIdentity
		var expected []string
		for number := range spreadCount {
			wanted = append(wanted, azcosmos.ItemIdentity{ID: spreadID(number), PartitionKey: spreadKey(number)})
			expected = append(expected, spreadID(number))
		}
		wanted = append(wanted, azcosmos.ItemIdentity{ID: "absent", PartitionKey: spreadKey(0)})
		read := succeed(container.ReadManyItems(background, wanted, nil))(t)
		var found []string
		for _, item := range read.Items {
			found = append(found, decode(t, item)["id"].(string))
		}
		slices.Sort(found)
		slices.Sort(expected)
		equal(t, "items", found, expected)
		// The same by a query over everything, in small pages.
		pager := container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 3})
		found = nil
		for pager.More() {
			for _, item := range succeed(pager.NextPage(background))(t).Items {
				found = append(found, decode(t, item)["id"].(string))
			}
		}
		slices.Sort(found)
		equal(t, "rows", found, expected)
	})
}

func TestSessionsOfSeveralRanges(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOver(t, 4)
		tokens := writeSpread(t, container)
		var all []string
		for _, token := range tokens {
			all = append(all, token)
		}
		joined := strings.Join(all, ",")
		for number := range spreadCount {
			options := &azcosmos.ItemOptions{SessionToken: &joined}
			read := succeed(container.ReadItem(background, spreadKey(number), spreadID(number), options))(t)
			home := read.RawResponse.Header.Get("x-ms-documentdb-partitionkeyrangeid")
			equal(t, "how far the range is", *read.SessionToken, tokens[home])
			// Only the range that is read is looked at.
			var others []string
			for id, token := range tokens {
				if id != home {
					others = append(others, token+"000")
				}
			}
			options = &azcosmos.ItemOptions{SessionToken: pointer(strings.Join(others, ","))}
			succeed(container.ReadItem(background, spreadKey(number), spreadID(number), options))(t)
		}
	})
}
