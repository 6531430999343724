// Indexing policies: what they refuse, what they leave alone, what the metrics say; unique keys.

package sdk

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// What ../cases/indexing.json holds.
type indexingCases struct {
	Definition struct{ IndexingPolicy azcosmos.IndexingPolicy }
	Documents  []document
	Queries    []queryCase
	Refusals   []refusalCase
	Metrics    []struct {
		Name, Query         string
		Utilized, Potential []string
		UtilizedComposite   [][]string
		PotentialComposite  [][]string
	}
	UniqueKeys struct {
		Policy  azcosmos.UniqueKeyPolicy
		Message string
		Writes  []struct {
			Act      string
			Item     document
			Conflict bool
		}
	}
}

// What index metrics say of one kind of index.
type usedIndexes struct {
	SingleIndexes    []struct{ IndexSpec string }
	CompositeIndexes []struct{ IndexSpecs []string }
}

func readIndexingCases(t *testing.T) indexingCases {
	t.Helper()
	text := succeed(os.ReadFile(filepath.Join("..", "cases", "indexing.json")))(t)
	var cases indexingCases
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func (f fixture) indexed(t *testing.T, cases indexingCases) *azcosmos.ContainerClient {
	t.Helper()
	container := f.containerOf(t, azcosmos.ContainerProperties{
		ID: "indexed", PartitionKeyDefinition: onePath("/pk"), IndexingPolicy: &cases.Definition.IndexingPolicy,
	})
	fill(t, container, queryCases{Documents: cases.Documents})
	return container
}

func TestPoliciesOfIndexing(t *testing.T) {
	cases := readIndexingCases(t)
	everywhere := azcosmos.NewPartitionKey()
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.indexed(t, cases)
		for _, one := range cases.Queries {
			t.Run(one.Name, func(t *testing.T) {
				if needsMerging(container, one.Query, nil) {
					return
				}
				for _, size := range []int32{0, 1, 4} {
					found := []string{}
					for _, page := range queried(t, container, one.Query, everywhere, one.options(size)) {
						for _, item := range page.Items {
							found = append(found, decode(t, item)["id"].(string))
						}
					}
					equal(t, "ids", found, one.IDs)
				}
			})
		}
		for _, one := range cases.Refusals {
			t.Run(one.Name, func(t *testing.T) {
				for _, key := range []azcosmos.PartitionKey{everywhere, azcosmos.NewPartitionKeyString("a")} {
					page, err := container.NewQueryItemsPager(one.Query, key, nil).NextPage(background)
					contains(t, refuse(page, err)(t, 400, "BadRequest").Error(), one.Message)
				}
			})
		}
	})
}

func TestMetricsNameIndexes(t *testing.T) {
	cases := readIndexingCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.indexed(t, cases)
		for _, one := range cases.Metrics {
			t.Run(one.Name, func(t *testing.T) {
				if needsMerging(container, one.Query, nil) {
					return
				}
				options := &azcosmos.QueryOptions{PopulateIndexMetrics: true}
				page := queried(t, container, one.Query, azcosmos.NewPartitionKey(), options)[0]
				if page.IndexMetrics == nil {
					t.Fatal("no index metrics")
				}
				// The SDK gives the header as it came: base64 of JSON.
				text := succeed(base64.StdEncoding.DecodeString(*page.IndexMetrics))(t)
				var metrics struct {
					UtilizedSingleIndexes, PotentialSingleIndexes       []struct{ IndexSpec string }
					UtilizedCompositeIndexes, PotentialCompositeIndexes []struct{ IndexSpecs []string }
				}
				if err := json.Unmarshal(text, &metrics); err != nil {
					t.Fatalf("%v in %s", err, text)
				}
				used := usedIndexes{metrics.UtilizedSingleIndexes, metrics.UtilizedCompositeIndexes}
				used.have(t, one.Utilized, one.UtilizedComposite)
				possible := usedIndexes{metrics.PotentialSingleIndexes, metrics.PotentialCompositeIndexes}
				possible.have(t, one.Potential, one.PotentialComposite)
			})
		}
	})
}

func (u usedIndexes) have(t *testing.T, single []string, composite [][]string) {
	t.Helper()
	found := map[string]bool{}
	for _, index := range u.SingleIndexes {
		found[index.IndexSpec] = true
	}
	for _, index := range u.CompositeIndexes {
		found[strings.Join(index.IndexSpecs, ", ")] = true
	}
	for _, paths := range composite {
		single = append(single, strings.Join(paths, ", "))
	}
	for _, spec := range single {
		if !found[spec] {
			t.Fatalf("%s is not among %v", spec, found)
		}
	}
}

func TestUniqueKeys(t *testing.T) {
	cases := readIndexingCases(t).UniqueKeys
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.containerOf(t, azcosmos.ContainerProperties{
			ID: "unique", PartitionKeyDefinition: onePath("/pk"), UniqueKeyPolicy: &cases.Policy,
		})
		for _, write := range cases.Writes {
			id, key := write.Item["id"].(string), azcosmos.NewPartitionKeyString(write.Item["pk"].(string))
			var response azcosmos.ItemResponse
			var err error
			switch write.Act {
			case "create":
				response, err = container.CreateItem(background, key, encode(t, write.Item), nil)
			case "upsert":
				response, err = container.UpsertItem(background, key, encode(t, write.Item), nil)
			case "replace":
				response, err = container.ReplaceItem(background, key, id, encode(t, write.Item), nil)
			case "delete":
				response, err = container.DeleteItem(background, key, id, nil)
			}
			if write.Conflict {
				contains(t, refuse(response, err)(t, 409, "Conflict").Error(), cases.Message)
			} else {
				succeed(response, err)(t)
			}
		}
	})
}
