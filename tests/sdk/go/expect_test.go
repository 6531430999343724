// What every test of this suite is written with: run over both schemes, make a database or container, expect.
//
// A test gets a *fixture with a client and a database of its own, so that no test sees another one's resources.

package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var background = context.Background()

// A document as the SDK takes and gives it.
type document = map[string]any

// A client and a database to work in, which goes away with the test.
type fixture struct {
	client   *azcosmos.Client
	database *azcosmos.DatabaseClient
}

// Runs a test once over http and once over https against the shared server.
func overBothSchemes(t *testing.T, test func(*testing.T, fixture)) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			test(t, newFixture(t, shared.client(t, scheme, emulatorKey)))
		})
	}
}

func newFixture(t *testing.T, client *azcosmos.Client) fixture {
	t.Helper()
	id := strings.ReplaceAll(t.Name(), "/", "-")
	succeed(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))(t)
	database := succeed(client.NewDatabase(id))(t)
	t.Cleanup(func() { succeed(database.Delete(background, nil))(t) })
	return fixture{client: client, database: database}
}

// Makes a container with one partition key path, /pk, hashed the current way.
func (f fixture) container(t *testing.T, id string) *azcosmos.ContainerClient {
	t.Helper()
	return f.containerOf(t, azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: onePath("/pk")})
}

func (f fixture) containerOf(t *testing.T, properties azcosmos.ContainerProperties) *azcosmos.ContainerClient {
	t.Helper()
	created := succeed(f.database.CreateContainer(background, properties, nil))(t)
	equal(t, "status of the creation", created.RawResponse.StatusCode, http.StatusCreated)
	return succeed(f.database.NewContainer(properties.ID))(t)
}

func onePath(path string) azcosmos.PartitionKeyDefinition {
	return azcosmos.PartitionKeyDefinition{Kind: azcosmos.PartitionKeyKindHash, Paths: []string{path}, Version: 2}
}

// The value of a call that must succeed: succeed(container.Read(..))(t).
func succeed[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// The error of a call that the server must refuse: refuse(container.ReadItem(..))(t, 404, "NotFound").
func refuse[T any](_ T, err error) func(t *testing.T, status int, code string) *azcore.ResponseError {
	return func(t *testing.T, status int, code string) *azcore.ResponseError {
		t.Helper()
		var refusal *azcore.ResponseError
		if !errors.As(err, &refusal) {
			t.Fatalf("expected %d %s, got %v", status, code, err)
		}
		// The SDK puts the status into ErrorCode, so the service's own code is read from the body.
		body := decode(t, succeed(runtime.Payload(refusal.RawResponse))(t))
		if refusal.StatusCode != status || body["code"] != code || body["message"] == "" {
			t.Fatalf("expected %d %s, got %v", status, code, err)
		}
		return refusal
	}
}

func equal(t *testing.T, what string, actual, expected any) {
	t.Helper()
	if !reflect.DeepEqual(actual, expected) {
		t.Fatalf("%s: expected %#v, got %#v", what, expected, actual)
	}
}

// What the service sends with every answer.
func checkAnswer(t *testing.T, response azcosmos.Response, status int) {
	t.Helper()
	equal(t, "status", response.RawResponse.StatusCode, status)
	if response.RequestCharge <= 0 {
		t.Fatalf("request charge %v", response.RequestCharge)
	}
	if response.ActivityID == "" {
		t.Fatal("no activity id")
	}
}

// What the service sends with every answer about an item, which session consistency needs.
func checkItemAnswer(t *testing.T, response azcosmos.ItemResponse, status int) {
	t.Helper()
	checkAnswer(t, response.Response, status)
	if response.SessionToken == nil {
		t.Fatal("no session token")
	}
	for _, header := range []string{"x-ms-alt-content-path", "x-ms-content-path"} {
		if response.RawResponse.Header.Get(header) == "" {
			t.Fatalf("no %s beside the session token", header)
		}
	}
}

func encode(t *testing.T, value document) []byte {
	t.Helper()
	return succeed(json.Marshal(value))(t)
}

func decode(t *testing.T, text []byte) document {
	t.Helper()
	var value document
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return value
}

// The document that was sent, as the server must give it back: the same properties, and the system's own.
func checkDocument(t *testing.T, text []byte, sent document) {
	t.Helper()
	received := decode(t, text)
	for _, name := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
		if _, there := received[name]; !there {
			t.Fatalf("no %s in %s", name, text)
		}
		delete(received, name)
	}
	equal(t, "document", received, decode(t, encode(t, sent)))
}

func pointer[T any](value T) *T {
	return &value
}
