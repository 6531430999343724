// The life of a database, and what the account answers to keys.

package sdk

import (
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestDatabaseLife(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			client := shared.client(t, scheme, emulatorKey)
			id := "life of a dätabase " + scheme
			database := succeed(client.NewDatabase(id))(t)
			refuse(database.Read(background, nil))(t, 404, "NotFound")

			created := succeed(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))(t)
			checkAnswer(t, created.Response, http.StatusCreated)
			equal(t, "id", created.DatabaseProperties.ID, id)
			equal(t, "etag in body and header", *created.DatabaseProperties.ETag, created.ETag)
			equal(t, "self link", created.DatabaseProperties.SelfLink, "dbs/"+created.DatabaseProperties.ResourceID+"/")

			read := succeed(database.Read(background, nil))(t)
			checkAnswer(t, read.Response, http.StatusOK)
			equal(t, "properties", read.DatabaseProperties, created.DatabaseProperties)
			refuse(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))(t, 409, "Conflict")

			deleted := succeed(database.Delete(background, nil))(t)
			checkAnswer(t, deleted.Response, http.StatusNoContent)
			refuse(database.Read(background, nil))(t, 404, "NotFound")
			refuse(database.Delete(background, nil))(t, 404, "NotFound")

			again := succeed(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))(t)
			if again.DatabaseProperties.ResourceID == created.DatabaseProperties.ResourceID {
				t.Fatal("a resource id was given twice")
			}
			succeed(database.Delete(background, nil))(t)
		})
	}
}

func TestDatabaseConditions(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		etag := succeed(f.database.Read(background, nil))(t).ETag
		other := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)

		// The SDK takes 304 for a success, with nothing to decode.
		unchanged, _ := f.database.Read(background, &azcosmos.ReadDatabaseOptions{IfNoneMatchEtag: &etag})
		equal(t, "status", unchanged.RawResponse.StatusCode, http.StatusNotModified)
		changed := succeed(f.database.Read(background, &azcosmos.ReadDatabaseOptions{IfNoneMatchEtag: &other}))(t)
		checkAnswer(t, changed.Response, http.StatusOK)
		refuse(f.database.Delete(background, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &other}))(t, 412, "PreconditionFailed")
		succeed(f.database.Read(background, nil))(t)
	})
}

// The SDK lists databases by a query only. This one the server answers, as it has no condition.
func TestDatabaseList(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		var ids []string
		pager := f.client.NewQueryDatabasesPager("SELECT * FROM c", nil)
		for pager.More() {
			page := succeed(pager.NextPage(background))(t)
			for _, database := range page.Databases {
				ids = append(ids, database.ID)
			}
		}
		if !slices.Contains(ids, f.database.ID()) {
			t.Fatalf("%q is not in %q", f.database.ID(), ids)
		}
	})
}

func TestDatabaseIds(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		for _, id := range []string{"a/b", "a\\b", "a?b", "a#b", "", "trailing "} {
			// The SDK writes the id into JSON as it is, so a backslash has to be escaped here.
			escaped := id
			if id == "a\\b" {
				escaped = "a\\\\b"
			}
			refuse(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: escaped}, nil))(t, 400, "BadRequest")
		}
	})
}

func TestKeys(t *testing.T) {
	const wrongKey = "d3Jvbmcta2V5LW9mLXRoZS10ZXN0LXN1aXRlcw=="
	f := newFixture(t, shared.client(t, "http", emulatorKey))

	stranger := succeed(shared.client(t, "http", wrongKey).NewDatabase(f.database.ID()))(t)
	if _, err := stranger.Read(background, nil); err == nil {
		t.Fatal("a wrong key was accepted")
	}

	reader := shared.client(t, "http", readOnlyKey)
	succeed(succeed(reader.NewDatabase(f.database.ID()))(t).Read(background, nil))(t)
	refuse(reader.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "by a reader"}, nil))(t, 401, "Unauthorized")
}
