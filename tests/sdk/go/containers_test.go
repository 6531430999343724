// The life of a container: its policies, what may be changed, its key ranges.
//
// Unique keys are defined and echoed here; that they bind is tested with the index, which comes later.

package sdk

import (
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestContainerLife(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		properties := azcosmos.ContainerProperties{ID: "a container", PartitionKeyDefinition: onePath("/pk")}
		container := succeed(f.database.NewContainer(properties.ID))(t)
		refuse(container.Read(background, nil))(t, 404, "NotFound")

		created := succeed(f.database.CreateContainer(background, properties, nil))(t)
		checkAnswer(t, created.Response, http.StatusCreated)
		checkDefaults(t, created.ContainerProperties)
		refuse(f.database.CreateContainer(background, properties, nil))(t, 409, "Conflict")

		read := succeed(container.Read(background, nil))(t)
		checkAnswer(t, read.Response, http.StatusOK)
		equal(t, "properties", read.ContainerProperties, created.ContainerProperties)

		properties.DefaultTimeToLive = pointer[int32](-1)
		replaced := succeed(container.Replace(background, properties, nil))(t)
		checkAnswer(t, replaced.Response, http.StatusOK)
		equal(t, "time to live", *replaced.ContainerProperties.DefaultTimeToLive, int32(-1))
		equal(t, "resource id", replaced.ContainerProperties.ResourceID, created.ContainerProperties.ResourceID)
		if replaced.ETag == created.ETag {
			t.Fatal("the etag did not change")
		}

		deleted := succeed(container.Delete(background, nil))(t)
		checkAnswer(t, deleted.Response, http.StatusNoContent)
		refuse(container.Read(background, nil))(t, 404, "NotFound")
		again := succeed(f.database.CreateContainer(background, properties, nil))(t)
		if again.ContainerProperties.ResourceID == created.ContainerProperties.ResourceID {
			t.Fatal("a resource id was given twice")
		}
	})
}

// What the service fills in when a definition has only an id and a partition key.
func checkDefaults(t *testing.T, properties *azcosmos.ContainerProperties) {
	t.Helper()
	equal(t, "partition key", properties.PartitionKeyDefinition, onePath("/pk"))
	equal(t, "indexing policy", properties.IndexingPolicy, &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  "consistent",
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: `/"_etag"/?`}},
	})
	equal(t, "conflict policy", properties.ConflictResolutionPolicy, &azcosmos.ConflictResolutionPolicy{
		Mode:           azcosmos.ConflictResolutionModeLastWriteWins,
		ResolutionPath: "/_ts",
	})
	if properties.DefaultTimeToLive != nil {
		t.Fatalf("time to live %d", *properties.DefaultTimeToLive)
	}
}

func TestContainerPolicies(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		sent := everyPolicy()
		container := f.containerOf(t, sent)
		received := succeed(container.Read(background, nil))(t).ContainerProperties
		equal(t, "partition key", received.PartitionKeyDefinition, sent.PartitionKeyDefinition)
		equal(t, "time to live", received.DefaultTimeToLive, sent.DefaultTimeToLive)
		equal(t, "unique keys", received.UniqueKeyPolicy, sent.UniqueKeyPolicy)
		equal(t, "conflict policy", received.ConflictResolutionPolicy, sent.ConflictResolutionPolicy)
		equal(t, "vector policy", received.VectorEmbeddingPolicy, sent.VectorEmbeddingPolicy)
		equal(t, "full-text policy", received.FullTextPolicy, sent.FullTextPolicy)
		equal(t, "composite indexes", received.IndexingPolicy.CompositeIndexes, sent.IndexingPolicy.CompositeIndexes)
		equal(t, "spatial indexes", received.IndexingPolicy.SpatialIndexes, sent.IndexingPolicy.SpatialIndexes)
		equal(t, "vector indexes", received.IndexingPolicy.VectorIndexes, sent.IndexingPolicy.VectorIndexes)
		equal(t, "full-text indexes", received.IndexingPolicy.FullTextIndexes, sent.IndexingPolicy.FullTextIndexes)
		equal(t, "included paths", received.IndexingPolicy.IncludedPaths, sent.IndexingPolicy.IncludedPaths)
		for _, path := range sent.IndexingPolicy.ExcludedPaths {
			if !slices.Contains(received.IndexingPolicy.ExcludedPaths, path) {
				t.Fatalf("%v is not in %v", path, received.IndexingPolicy.ExcludedPaths)
			}
		}
	})
}

func everyPolicy() azcosmos.ContainerProperties {
	return azcosmos.ContainerProperties{
		ID:                     "every policy",
		PartitionKeyDefinition: onePath("/address/city"),
		DefaultTimeToLive:      pointer[int32](3600),
		UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{
			{Paths: []string{"/email"}},
			{Paths: []string{"/name/first", "/name/last"}},
		}},
		ConflictResolutionPolicy: &azcosmos.ConflictResolutionPolicy{
			Mode:           azcosmos.ConflictResolutionModeLastWriteWins,
			ResolutionPath: "/revision",
		},
		VectorEmbeddingPolicy: &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
			Path: "/embedding", DataType: azcosmos.VectorDataTypeFloat32,
			DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 8,
		}}},
		FullTextPolicy: &azcosmos.FullTextPolicy{
			DefaultLanguage: "en-US",
			FullTextPaths:   []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}},
		},
		IndexingPolicy: &azcosmos.IndexingPolicy{
			Automatic:     true,
			IndexingMode:  azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/notes/?"}, {Path: "/embedding/*"}},
			CompositeIndexes: [][]azcosmos.CompositeIndex{{
				{Path: "/name", Order: azcosmos.CompositeIndexAscending},
				{Path: "/age", Order: azcosmos.CompositeIndexDescending},
			}},
			// All four, because the service indexes and echoes all four whichever are listed.
			SpatialIndexes: []azcosmos.SpatialIndex{{
				Path: "/place/*", SpatialTypes: []azcosmos.SpatialType{"Point", "LineString", "Polygon", "MultiPolygon"},
			}},
			VectorIndexes:   []azcosmos.VectorIndex{{Path: "/embedding", Type: azcosmos.VectorIndexTypeFlat}},
			FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
		},
	}
}

func TestContainerWithoutIndex(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "no index")
		none := azcosmos.ContainerProperties{
			ID:                     "no index",
			PartitionKeyDefinition: onePath("/pk"),
			IndexingPolicy:         &azcosmos.IndexingPolicy{Automatic: false, IndexingMode: azcosmos.IndexingModeNone},
		}
		replaced := succeed(container.Replace(background, none, nil))(t)
		equal(t, "mode", replaced.ContainerProperties.IndexingPolicy.IndexingMode, azcosmos.IndexingMode("none"))
		equal(t, "automatic", replaced.ContainerProperties.IndexingPolicy.Automatic, false)
	})
}

func TestContainerRefusals(t *testing.T) {
	cases := map[string]azcosmos.ContainerProperties{
		"no partition key path":     {PartitionKeyDefinition: onePath("")},
		"path without slash":        {PartitionKeyDefinition: onePath("pk")},
		"path with wildcard":        {PartitionKeyDefinition: onePath("/pk/*")},
		"two paths of a plain hash": {PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Kind: "Hash", Paths: []string{"/a", "/b"}, Version: 2}},
		"four paths": {PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Kind: "MultiHash", Paths: []string{"/a", "/b", "/c", "/d"}, Version: 2,
		}},
		"time to live of nothing": {PartitionKeyDefinition: onePath("/pk"), DefaultTimeToLive: pointer[int32](0)},
		"time to live below -1":   {PartitionKeyDefinition: onePath("/pk"), DefaultTimeToLive: pointer[int32](-2)},
		"composite index of one path": {
			PartitionKeyDefinition: onePath("/pk"),
			IndexingPolicy: &azcosmos.IndexingPolicy{
				Automatic: true, IndexingMode: "consistent", IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
				CompositeIndexes: [][]azcosmos.CompositeIndex{{{Path: "/a", Order: "ascending"}}},
			},
		},
		"vector index without embedding": {
			PartitionKeyDefinition: onePath("/pk"),
			IndexingPolicy: &azcosmos.IndexingPolicy{
				Automatic: true, IndexingMode: "consistent", IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
				VectorIndexes: []azcosmos.VectorIndex{{Path: "/embedding", Type: azcosmos.VectorIndexTypeFlat}},
			},
		},
	}
	overBothSchemes(t, func(t *testing.T, f fixture) {
		for name, properties := range cases {
			t.Run(name, func(t *testing.T) {
				properties.ID = "refused"
				refuse(f.database.CreateContainer(background, properties, nil))(t, 400, "BadRequest")
				refuse(succeed(f.database.NewContainer("refused"))(t).Read(background, nil))(t, 404, "NotFound")
			})
		}
	})
}

func TestContainerReplaceRefusals(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "fixed")
		before := succeed(container.Read(background, nil))(t)
		for _, changed := range []azcosmos.ContainerProperties{
			{ID: "fixed", PartitionKeyDefinition: onePath("/other")},
			{ID: "fixed", PartitionKeyDefinition: onePath("/pk"), UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{
				UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}},
			}},
		} {
			refuse(container.Replace(background, changed, nil))(t, 400, "BadRequest")
		}
		absent := succeed(f.database.NewContainer("absent"))(t)
		properties := azcosmos.ContainerProperties{ID: "absent", PartitionKeyDefinition: onePath("/pk")}
		refuse(absent.Replace(background, properties, nil))(t, 404, "NotFound")
		equal(t, "properties", succeed(container.Read(background, nil))(t).ContainerProperties, before.ContainerProperties)
	})
}

// The SDK lists containers by a query only. This one the server answers, as it has no condition.
func TestContainerList(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		expected := []string{"alpha", "beta", "gamma"}
		for _, id := range expected {
			f.container(t, id)
		}
		var ids []string
		pager := f.database.NewQueryContainersPager("SELECT * FROM c", nil)
		for pager.More() {
			for _, container := range succeed(pager.NextPage(background))(t).Containers {
				ids = append(ids, container.ID)
			}
		}
		slices.Sort(ids)
		equal(t, "containers", ids, expected)
	})
}

func TestContainerQuota(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		read := succeed(f.container(t, "quota").Read(background, &azcosmos.ReadContainerOptions{PopulateQuotaInfo: true}))(t)
		for _, header := range []string{
			"x-ms-resource-quota", "x-ms-resource-usage", "x-ms-documentdb-collection-index-transformation-progress",
		} {
			if read.RawResponse.Header.Get(header) == "" {
				t.Fatalf("no %s", header)
			}
		}
	})
}

// The SDK reads the key ranges in a loop that ends with 304 only.
func TestFeedRanges(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "ranges")
		ranges := succeed(container.ReadFeedRanges(background, nil))(t)
		next := ""
		for _, feedRange := range ranges {
			equal(t, "start of the range", feedRange.MinInclusive, next)
			next = feedRange.MaxExclusive
		}
		equal(t, "end of the ranges", next, "FF")
		if _, err := succeed(f.database.NewContainer("absent"))(t).ReadFeedRanges(background, nil); err == nil {
			t.Fatal("an absent container has ranges")
		}
	})
}
