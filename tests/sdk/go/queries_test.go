// Queries: the shared cases in any page size, tokens, refusals, scopes, metrics, charges, many items at once, and the
// other resources that this SDK can query.
//
// The SDK has no query engine of its own: what the server answers is what the application gets.

package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A query of ../cases/queries.json with its answer.
type queryCase struct {
	Name       string
	Kind       string
	Query      string
	Parameters map[string]any
	Partition  *string
	Rows       []any
	IDs        []string
	Ordered    bool
	NotIn      []string `json:"not_in"`
}

// A query that is refused, with what the refusal says.
type refusalCase struct {
	Name    string
	Query   string
	Code    string
	Message string
	Start   *int
	End     int
}

type queryCases struct {
	IndexingPolicy azcosmos.IndexingPolicy
	Documents      []document
	Queries        []queryCase
	Refusals       []refusalCase
}

func readQueryCases(t *testing.T) queryCases {
	t.Helper()
	text := succeed(os.ReadFile(filepath.Join("..", "cases", "queries.json")))(t)
	var cases queryCases
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// A container with the documents of the cases.
func (f fixture) people(t *testing.T, cases queryCases) *azcosmos.ContainerClient {
	t.Helper()
	container := f.containerOf(t, azcosmos.ContainerProperties{
		ID: "people", PartitionKeyDefinition: onePath("/pk"), IndexingPolicy: &cases.IndexingPolicy,
	})
	fill(t, container, cases)
	return container
}

func fill(t *testing.T, container *azcosmos.ContainerClient, cases queryCases) {
	t.Helper()
	for _, one := range cases.Documents {
		key := azcosmos.NewPartitionKeyString(one["pk"].(string))
		succeed(container.CreateItem(background, key, encode(t, one), nil))(t)
	}
}

func (c queryCase) key() azcosmos.PartitionKey {
	if c.Partition == nil {
		return azcosmos.NewPartitionKey()
	}
	return azcosmos.NewPartitionKeyString(*c.Partition)
}

func (c queryCase) options(pageSize int32) *azcosmos.QueryOptions {
	options := &azcosmos.QueryOptions{PageSizeHint: pageSize}
	for name, value := range c.Parameters {
		options.QueryParameters = append(options.QueryParameters, azcosmos.QueryParameter{Name: name, Value: value})
	}
	// Tokens belong to the whole request, so two requests must have the parameters in the same order.
	slices.SortFunc(options.QueryParameters, func(a, b azcosmos.QueryParameter) int { return strings.Compare(a.Name, b.Name) })
	return options
}

// The pages of a query.
func queried(t *testing.T, container *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) []azcosmos.QueryItemsResponse {
	t.Helper()
	var pages []azcosmos.QueryItemsResponse
	pager := container.NewQueryItemsPager(query, key, options)
	for pager.More() {
		page := succeed(pager.NextPage(background))(t)
		checkAnswer(t, page.Response, 200)
		if options.PageSizeHint > 0 && len(page.Items) > int(options.PageSizeHint) {
			t.Fatalf("%d rows on a page of %d", len(page.Items), options.PageSizeHint)
		}
		pages = append(pages, page)
	}
	return pages
}

// Rows in a form that can be compared: members sorted, without the properties that the server adds.
func rowTexts(t *testing.T, pages []azcosmos.QueryItemsResponse) []string {
	t.Helper()
	rows := []string{}
	for _, page := range pages {
		for _, item := range page.Items {
			var value any
			if err := json.Unmarshal(item, &value); err != nil {
				t.Fatalf("%v in %q", err, item)
			}
			if members, ok := value.(document); ok {
				for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
					delete(members, name)
				}
			}
			rows = append(rows, string(succeed(json.Marshal(value))(t)))
		}
	}
	return rows
}

func (c queryCase) check(t *testing.T, cases queryCases, actual []string) {
	t.Helper()
	expected := []string{}
	for _, row := range c.Rows {
		expected = append(expected, string(succeed(json.Marshal(row))(t)))
	}
	for _, id := range c.IDs {
		for _, one := range cases.Documents {
			if one["id"] == id {
				expected = append(expected, string(encode(t, one)))
			}
		}
	}
	if !c.Ordered {
		actual = slices.Clone(actual)
		slices.Sort(actual)
		slices.Sort(expected)
	}
	equal(t, "rows", actual, expected)
}

// Whether a query over all partitions is refused with the plan by which a client merges: without a query engine this SDK
// cannot. TestQueriesOfSeveralRanges looks at the refusal.
func needsMerging(container *azcosmos.ContainerClient, query string, options *azcosmos.QueryOptions) bool {
	_, err := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), options).NextPage(background)
	var refusal *azcore.ResponseError
	return errors.As(err, &refusal) && refusal.RawResponse.Header.Get("x-ms-substatus") == "1004"
}

func TestQueries(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		for _, one := range cases.Queries {
			if slices.Contains(one.NotIn, "go") {
				continue
			}
			t.Run(one.Name, func(t *testing.T) {
				if one.Kind != "stream" && one.Partition == nil && needsMerging(container, one.Query, one.options(1)) {
					return
				}
				whole := rowTexts(t, queried(t, container, one.Query, one.key(), one.options(-1)))
				one.check(t, cases, whole)
				for _, size := range []int32{1, 4} {
					equal(t, "rows in pages", rowTexts(t, queried(t, container, one.Query, one.key(), one.options(size))), whole)
				}
			})
		}
	})
}

// With several key ranges, and no query engine in the SDK, a query that needs merging is refused as the service does; the
// refusal carries the plan for clients that can use one.
func TestQueriesOfSeveralRanges(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		throughput := azcosmos.NewManualThroughputProperties(30_000)
		properties := azcosmos.ContainerProperties{
			ID: "people", PartitionKeyDefinition: onePath("/pk"), IndexingPolicy: &cases.IndexingPolicy,
		}
		succeed(f.database.CreateContainer(background, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}))(t)
		container := succeed(f.database.NewContainer("people"))(t)
		equal(t, "feed ranges", len(succeed(container.ReadFeedRanges(background, nil))(t)), 5)
		fill(t, container, cases)
		for _, one := range cases.Queries {
			if slices.Contains(one.NotIn, "go-ranges") {
				continue
			}
			t.Run(one.Name, func(t *testing.T) {
				if one.Kind == "stream" || one.Partition != nil {
					for _, size := range []int32{-1, 2} {
						one.check(t, cases, rowTexts(t, queried(t, container, one.Query, one.key(), one.options(size))))
					}
					return
				}
				// A filter that names the partition leaves nothing to merge.
				page, err := container.NewQueryItemsPager(one.Query, one.key(), one.options(100)).NextPage(background)
				if err == nil && strings.Contains(one.Query, "c.pk = ") {
					one.check(t, cases, rowTexts(t, []azcosmos.QueryItemsResponse{page}))
					return
				}
				refusal := refuse(page, err)(t, 400, "BadRequest")
				equal(t, "substatus", refusal.RawResponse.Header.Get("x-ms-substatus"), "1004")
				body := decode(t, succeed(runtime.Payload(refusal.RawResponse))(t))
				plan := decode(t, []byte(body["additionalErrorInfo"].(string)))
				if plan["queryInfo"] == nil || plan["queryRanges"] == nil {
					t.Fatalf("no plan in %v", body)
				}
			})
		}
	})
}

// A query that was begun by one client goes on in another.
func TestQueryTokens(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		scheme, _, _ := strings.Cut(f.client.Endpoint(), ":")
		other := shared.client(t, scheme, emulatorKey)
		again := succeed(other.NewContainer(f.database.ID(), container.ID()))(t)
		for _, one := range cases.Queries {
			if len(one.Rows)+len(one.IDs) < 4 || one.Kind != "stream" && one.Partition == nil && needsMerging(container, one.Query, one.options(1)) {
				continue
			}
			t.Run(one.Name, func(t *testing.T) {
				first := succeed(container.NewQueryItemsPager(one.Query, one.key(), one.options(3)).NextPage(background))(t)
				if first.ContinuationToken == nil || *first.ContinuationToken == "" {
					t.Fatal("no token")
				}
				options := one.options(2)
				options.ContinuationToken = first.ContinuationToken
				rest := queried(t, again, one.Query, one.key(), options)
				one.check(t, cases, rowTexts(t, append([]azcosmos.QueryItemsResponse{first}, rest...)))
			})
		}
		for _, token := range []string{"garbage", "{}", "[]", `{"token":"x","range":{"min":"","max":"FF"}}`} {
			options := &azcosmos.QueryOptions{ContinuationToken: &token}
			for _, key := range []azcosmos.PartitionKey{azcosmos.NewPartitionKey(), azcosmos.NewPartitionKeyString("north")} {
				refusal := refuse(container.NewQueryItemsPager("SELECT * FROM c", key, options).NextPage(background))(t, 400, "BadRequest")
				contains(t, refusal.Error(), "Invalid Continuation Token")
			}
		}
	})
}

func TestQueryRefusals(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		for _, one := range cases.Refusals {
			t.Run(one.Name, func(t *testing.T) {
				for _, key := range []azcosmos.PartitionKey{azcosmos.NewPartitionKey(), azcosmos.NewPartitionKeyString("north")} {
					refusal := refuse(container.NewQueryItemsPager(one.Query, key, nil).NextPage(background))(t, 400, "BadRequest")
					message := decode(t, succeed(runtime.Payload(refusal.RawResponse))(t))["message"].(string)
					contains(t, message, one.Message)
					if one.Code != "" {
						contains(t, message, `"code":`+one.Code)
					}
					if one.Start != nil {
						contains(t, message, fmt.Sprintf(`"location":{"start":%d,"end":%d}`, *one.Start, one.End))
					}
				}
			})
		}
	})
}

func contains(t *testing.T, text, fragment string) {
	t.Helper()
	if !strings.Contains(text, fragment) {
		t.Fatalf("%q is not in %q", fragment, text)
	}
}

// Without permission to ask all partitions, the filter has to name one.
func TestQueryScopes(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		everywhere := azcosmos.NewPartitionKey()
		alone := &azcosmos.QueryOptions{EnableCrossPartitionQuery: pointer(false)}
		refusal := refuse(container.NewQueryItemsPager("SELECT * FROM c", everywhere, alone).NextPage(background))(t, 400, "BadRequest")
		contains(t, refusal.Error(), "Cross partition query is required but disabled")
		equal(t, "rows", len(rowTexts(t, queried(t, container, "SELECT * FROM c WHERE c.pk = 'south'", everywhere, alone))), 4)

		key := azcosmos.NewPartitionKeyString
		levels := f.containerOf(t, azcosmos.ContainerProperties{ID: "levels", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/tenant", "/user"}, Version: 2,
		}})
		for id, user := range []string{"u1", "u2", "u3"} {
			tenant := []string{"t1", "t1", "t2"}[id]
			item := document{"id": strconv.Itoa(id), "tenant": tenant, "user": user}
			succeed(levels.CreateItem(background, key(tenant).AppendString(user), encode(t, item), nil))(t)
		}
		for _, size := range []int32{1, 10} {
			options := &azcosmos.QueryOptions{PageSizeHint: size}
			ordered := "SELECT VALUE c.id FROM c ORDER BY c.id DESC"
			equal(t, "rows of a prefix", rowTexts(t, queried(t, levels, ordered, key("t1"), options)), []string{`"1"`, `"0"`})
			equal(t, "rows of a key", rowTexts(t, queried(t, levels, ordered, key("t2").AppendString("u3"), options)), []string{`"2"`})
			equal(t, "rows of no key", rowTexts(t, queried(t, levels, ordered, key("t3"), options)), []string{})
			plain := "SELECT VALUE c.id FROM c"
			equal(t, "rows", rowTexts(t, queried(t, levels, plain, everywhere, options)), []string{`"0"`, `"1"`, `"2"`})
		}
	})
}

// The SDK asks for the metrics of every query.
func TestQueryMetrics(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		options := &azcosmos.QueryOptions{PageSizeHint: 2, PopulateIndexMetrics: true}
		output := 0
		for _, page := range queried(t, container, "SELECT * FROM c WHERE c.team = 'red'", azcosmos.NewPartitionKey(), options) {
			if page.QueryMetrics == nil || page.IndexMetrics == nil {
				t.Fatalf("query metrics %v, index metrics %v", page.QueryMetrics, page.IndexMetrics)
			}
			metrics := map[string]string{}
			for pair := range strings.SplitSeq(*page.QueryMetrics, ";") {
				name, value, _ := strings.Cut(pair, "=")
				succeed(strconv.ParseFloat(value, 64))(t)
				metrics[name] = value
			}
			output += succeed(strconv.Atoi(metrics["outputDocumentCount"]))(t)
		}
		equal(t, "rows according to the metrics", output, 4)
	})
}

func TestQueryCharges(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.container(t, "many")
		for number := range 60 {
			item := document{"id": strconv.Itoa(number), "pk": "somewhere", "number": number, "text": strings.Repeat("x", 500)}
			succeed(container.CreateItem(background, someKey, encode(t, item), nil))(t)
		}
		for _, query := range []string{"SELECT * FROM c", "SELECT * FROM c WHERE c.number >= 20", "SELECT * FROM c ORDER BY c.number DESC"} {
			charge := func(size int32) (total float64) {
				for _, page := range queried(t, container, query, someKey, &azcosmos.QueryOptions{PageSizeHint: size}) {
					if page.RequestCharge <= 0 {
						t.Fatalf("%s: a page for %v", query, page.RequestCharge)
					}
					total += float64(page.RequestCharge)
				}
				return total
			}
			whole, parts := charge(-1), charge(10)
			if math.Abs(parts-whole) > 0.1*whole {
				t.Fatalf("%s: %v at once, %v in pages", query, whole, parts)
			}
		}
	})
}

func TestReadManyItems(t *testing.T) {
	cases := readQueryCases(t)
	overBothSchemes(t, func(t *testing.T, f fixture) {
		container := f.people(t, cases)
		var wanted []azcosmos.ItemIdentity
		expected := []string{}
		for _, one := range cases.Documents {
			wanted = append(wanted, azcosmos.ItemIdentity{ID: one["id"].(string), PartitionKey: azcosmos.NewPartitionKeyString(one["pk"].(string))})
			expected = append(expected, string(encode(t, one)))
		}
		absent := azcosmos.ItemIdentity{ID: "99", PartitionKey: azcosmos.NewPartitionKeyString("north")}
		elsewhere := azcosmos.ItemIdentity{ID: "01", PartitionKey: azcosmos.NewPartitionKeyString("south")}
		read := succeed(container.ReadManyItems(background, append(wanted, absent, elsewhere), nil))(t)
		found := rowTexts(t, []azcosmos.QueryItemsResponse{{Items: read.Items}})
		equal(t, "items", slices.Sorted(slices.Values(found)), slices.Sorted(slices.Values(expected)))
		if read.RequestCharge <= 0 {
			t.Fatalf("request charge %v", read.RequestCharge)
		}
	})
}

func TestQueriesOverDatabasesAndContainers(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		byID := []azcosmos.QueryParameter{{Name: "@id", Value: f.database.ID()}}
		databases := f.client.NewQueryDatabasesPager("SELECT * FROM d WHERE d.id = @id", &azcosmos.QueryDatabasesOptions{QueryParameters: byID})
		page := succeed(databases.NextPage(background))(t)
		equal(t, "databases", len(page.Databases), 1)
		equal(t, "database", page.Databases[0].ID, f.database.ID())
		refuse(f.client.NewQueryDatabasesPager("SELECT * FROM d WHERE", nil).NextPage(background))(t, 400, "BadRequest")

		for _, id := range []string{"b", "c", "a"} {
			f.container(t, id)
		}
		var found []string
		containers := f.database.NewQueryContainersPager("SELECT * FROM c WHERE c.id != 'b' ORDER BY c.id", nil)
		for containers.More() {
			for _, one := range succeed(containers.NextPage(background))(t).Containers {
				found = append(found, one.ID)
				equal(t, "paths", one.PartitionKeyDefinition.Paths, []string{"/pk"})
			}
		}
		equal(t, "containers", found, []string{"a", "c"})
	})
}
