// Durability: the server is killed with -9 and started again on the same folder and port; the same client goes on.

package sdk

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestKillAndRestart(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			own := newDurableServer(t)
			f := newFixture(t, own.client(t, scheme, emulatorKey))
			properties := everyPolicy()
			throughput := azcosmos.NewManualThroughputProperties(700)
			options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
			container := succeed(f.database.NewContainer(properties.ID))(t)
			created := succeed(f.database.CreateContainer(background, properties, options))(t)
			key := azcosmos.NewPartitionKeyString("Berlin")
			place := func(id string) document {
				return document{"id": id, "email": id, "name": document{"first": id, "last": id}, "address": document{"city": "Berlin"}}
			}
			kept := succeed(container.CreateItem(background, key, encode(t, place("kept")), withContent))(t)
			succeed(container.CreateItem(background, key, encode(t, place("deleted")), nil))(t)
			succeed(container.DeleteItem(background, key, "deleted", nil))(t)

			own.restart(t)
			equal(t, "container", succeed(container.Read(background, nil))(t).ContainerProperties, created.ContainerProperties)
			checkManual(t, succeed(container.ReadThroughput(background, nil))(t), 700)
			read := succeed(container.ReadItem(background, key, "kept", &azcosmos.ItemOptions{SessionToken: kept.SessionToken}))(t)
			equal(t, "item", string(read.Value), string(kept.Value))
			refuse(container.ReadItem(background, key, "deleted", nil))(t, 404, "NotFound")

			replaced := succeed(container.ReplaceItem(background, key, "kept", encode(t, place("kept")), &azcosmos.ItemOptions{IfMatchEtag: &kept.ETag}))(t)
			if *replaced.SessionToken == *kept.SessionToken {
				t.Fatal("the session token did not move on after the restart")
			}
			// Rids are never given twice, not even across a restart.
			later := succeed(container.CreateItem(background, key, encode(t, place("later")), withContent))(t)
			if decode(t, later.Value)["_rid"] == decode(t, kept.Value)["_rid"] {
				t.Fatal("a resource id was given twice")
			}
		})
	}
}

// Several writers at once, and the kill in the middle of their writes: what was acknowledged is there.
func TestKillUnderWrites(t *testing.T) {
	const writers, rounds = 4, 3
	own := newDurableServer(t)
	f := newFixture(t, own.client(t, "http", emulatorKey))
	container := f.container(t, "items")
	for round := range rounds {
		acknowledged := writeUntil(t, container, writers, round, own.kill)
		own.restart(t)
		for _, id := range acknowledged {
			checkDocument(t, succeed(container.ReadItem(background, someKey, id, nil))(t).Value, someDocument(id, id))
		}
		if len(acknowledged) == 0 {
			t.Fatal("nothing was written before the kill")
		}
	}
}

// Writes from several goroutines, runs stop while they write, and gives the ids whose creation was answered with 201.
func writeUntil(t *testing.T, container *azcosmos.ContainerClient, writers, round int, stop func()) []string {
	t.Helper()
	// Cancelled after the stop, as the SDK would otherwise try again until the server is back.
	running, cancel := context.WithCancel(background)
	defer cancel()
	var group sync.WaitGroup
	acknowledged := make([][]string, writers)
	var answered atomic.Int64
	for writer := range writers {
		group.Go(func() {
			for number := 0; running.Err() == nil; number++ {
				id := fmt.Sprintf("%d-%d-%d", round, writer, number)
				body := fmt.Appendf(nil, `{"id":%q,"pk":"somewhere","value":%q}`, id, id)
				response, err := container.CreateItem(running, someKey, body, nil)
				if err == nil && response.RawResponse.StatusCode == http.StatusCreated {
					acknowledged[writer] = append(acknowledged[writer], id)
					answered.Add(1)
				}
			}
		})
	}
	// In the middle of writes, however slow the machine is.
	for deadline := time.Now().Add(30 * time.Second); answered.Load() < int64(5*writers) && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	cancel()
	group.Wait()
	return slices.Concat(acknowledged...)
}
