// The change feed: from the beginning, from a time and from a continuation, by feed range and by key. This SDK reads
// the latest versions only, and has no start from now.

package sdk

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const changeCount, changeKeys = 24, 6

var wholeRange = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// Makes a container of one range or of four.
func (f fixture) containerOver(t *testing.T, ranges int) *azcosmos.ContainerClient {
	t.Helper()
	throughput := azcosmos.NewManualThroughputProperties(map[int]int32{1: 400, 4: 20_000}[ranges])
	properties := azcosmos.ContainerProperties{ID: fmt.Sprintf("ranges-%d", ranges), PartitionKeyDefinition: onePath("/pk")}
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
	succeed(f.database.CreateContainer(background, properties, options))(t)
	container := succeed(f.database.NewContainer(properties.ID))(t)
	equal(t, "ranges", len(succeed(container.ReadFeedRanges(background, nil))(t)), ranges)
	return container
}

func changeKey(number int) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(fmt.Sprintf("key-%d", number%changeKeys))
}

func writeChanges(t *testing.T, container *azcosmos.ContainerClient, from, to int) {
	t.Helper()
	for number := from; number < to; number++ {
		item := document{"id": fmt.Sprintf("item-%d", number), "pk": fmt.Sprintf("key-%d", number%changeKeys), "number": number}
		succeed(container.UpsertItem(background, changeKey(number), encode(t, item), nil))(t)
	}
}

// The numbers of the items until there is nothing new, and where to go on.
func readChanges(t *testing.T, container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([]int, string) {
	t.Helper()
	numbers := []int{}
	for {
		page := succeed(container.ReadChangeFeed(background, &options))(t)
		if page.RequestCharge <= 0 || page.ContinuationToken == "" || page.ETag == "" {
			t.Fatalf("a page without charge, continuation or etag: %+v", page)
		}
		equal(t, "count", page.Count, len(page.Items))
		if options.MaxItemCount > 0 && page.Count > int(options.MaxItemCount) {
			t.Fatalf("%d items in a page of %d", page.Count, options.MaxItemCount)
		}
		options.Continuation = &page.ContinuationToken
		if page.RawResponse.StatusCode == http.StatusNotModified {
			return numbers, page.ContinuationToken
		}
		for _, item := range page.Items {
			numbers = append(numbers, int(decode(t, item)["number"].(float64)))
		}
	}
}

func upTo(from, to, step int) []int {
	numbers := []int{}
	for number := from; number < to; number += step {
		numbers = append(numbers, number)
	}
	return numbers
}

func sorted(numbers []int) []int {
	return slices.Sorted(slices.Values(numbers))
}

// Runs a test on a container with one range and on one with four, filled.
func onChanges(t *testing.T, test func(*testing.T, *azcosmos.ContainerClient)) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		for _, ranges := range []int{1, 4} {
			t.Run(fmt.Sprint(ranges), func(t *testing.T) {
				container := f.containerOver(t, ranges)
				writeChanges(t, container, 0, changeCount)
				test(t, container)
			})
		}
	})
}

func TestChangesFromTheBeginning(t *testing.T) {
	onChanges(t, func(t *testing.T, container *azcosmos.ContainerClient) {
		for _, size := range []int32{0, 1, 5, 100} {
			found, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{FeedRange: wholeRange, MaxItemCount: size})
			equal(t, "everything", sorted(found), upTo(0, changeCount, 1))
		}
		parts := []int{}
		for _, one := range succeed(container.ReadFeedRanges(background, nil))(t) {
			found, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{FeedRange: &one, MaxItemCount: 2})
			parts = append(parts, found...)
		}
		equal(t, "the feed ranges together", sorted(parts), upTo(0, changeCount, 1))
	})
}

// The SDK sends the key to every range of the feed range; only the one that has it has an answer.
func TestChangesOfAKey(t *testing.T) {
	onChanges(t, func(t *testing.T, container *azcosmos.ContainerClient) {
		for number := range changeKeys {
			key := changeKey(number)
			found, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{FeedRange: wholeRange, PartitionKey: &key, MaxItemCount: 3})
			equal(t, "changes of a key", found, upTo(number, changeCount, changeKeys))
		}
	})
}

func TestChangesAfterAContinuation(t *testing.T) {
	onChanges(t, func(t *testing.T, container *azcosmos.ContainerClient) {
		options := azcosmos.ChangeFeedOptions{FeedRange: wholeRange, MaxItemCount: 1}
		seen := []int{}
		for {
			page := succeed(container.ReadChangeFeed(background, &options))(t)
			for _, item := range page.Items {
				seen = append(seen, int(decode(t, item)["number"].(float64)))
			}
			rest, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{Continuation: &page.ContinuationToken})
			equal(t, "what was seen and the rest", sorted(slices.Concat(seen, rest)), upTo(0, changeCount, 1))
			options.Continuation = &page.ContinuationToken
			if page.RawResponse.StatusCode == http.StatusNotModified {
				break
			}
		}
		writeChanges(t, container, 100, 103)
		succeed(container.DeleteItem(background, changeKey(100), "item-100", nil))(t)
		later, _ := readChanges(t, container, options)
		equal(t, "what is new", sorted(later), []int{101, 102})
	})
}

func TestChangesFromATime(t *testing.T) {
	onChanges(t, func(t *testing.T, container *azcosmos.ContainerClient) {
		time.Sleep(1100 * time.Millisecond)
		middle := time.Now()
		time.Sleep(1100 * time.Millisecond)
		writeChanges(t, container, 100, 106)
		found, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{FeedRange: wholeRange, StartFrom: &middle})
		equal(t, "what came after the time", sorted(found), upTo(100, 106, 1))
	})
}

func TestChangesAfterAKill(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			own := newDurableServer(t)
			container := newFixture(t, own.client(t, scheme, emulatorKey)).containerOver(t, 4)
			writeChanges(t, container, 0, changeCount)
			_, end := readChanges(t, container, azcosmos.ChangeFeedOptions{FeedRange: wholeRange})
			own.restart(t)
			writeChanges(t, container, 100, 102)
			found, _ := readChanges(t, container, azcosmos.ChangeFeedOptions{Continuation: &end})
			equal(t, "what came after the kill", sorted(found), []int{100, 101})
		})
	}
}
