// A project of somebody who uses the test helper, with the official SDK.
package stranger

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"astrarium/go/astrariumtest"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestTheServerAnswersTheSDK(t *testing.T) {
	server := astrariumtest.Start(t)
	client, err := azcosmos.NewClientFromConnectionString(server.ConnectionString(), nil)
	must(t, err)
	ctx := context.Background()
	_, err = client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "library"}, nil)
	must(t, err)
	database, err := client.NewDatabase("library")
	must(t, err)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/author"}}
	_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "books", PartitionKeyDefinition: key}, nil)
	must(t, err)
	books, err := client.NewContainer("library", "books")
	must(t, err)
	lem := azcosmos.NewPartitionKeyString("Lem")
	_, err = books.CreateItem(ctx, lem, []byte(`{"id":"1","author":"Lem","title":"Solaris"}`), nil)
	must(t, err)
	read, err := books.ReadItem(ctx, lem, "1", nil)
	must(t, err)
	var book struct{ Title string }
	must(t, json.Unmarshal(read.Value, &book))
	if book.Title != "Solaris" {
		t.Fatalf("read %q", book.Title)
	}
}

// How soon a server is ready is shown, and judged by the benches only: it depends on what else the machine does.
func TestTheEndOfATestEndsAServer(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 5 {
		endpoint := ""
		t.Run("inner", func(t *testing.T) {
			began := time.Now()
			endpoint = astrariumtest.Start(t).Endpoint
			least, most = min(least, time.Since(began)), max(most, time.Since(began))
		})
		if _, err := http.Get(endpoint); err == nil {
			t.Fatal("the server outlived its test")
		}
	}
	t.Logf("go: a server in %d ms, the slowest of 5 in %d ms", least.Milliseconds(), most.Milliseconds())
}

func TestRefusalsAreTold(t *testing.T) {
	_, err := astrariumtest.Launch("--memory", "--consistency", "whatever")
	if err == nil || !strings.Contains(err.Error(), "--consistency") {
		t.Fatalf("told %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
