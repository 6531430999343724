// Throughput of databases and containers: read, replace, manual and autoscale, conditions, refusals.

package sdk

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// What databases and containers have in common here.
type scalable interface {
	readThroughput(*azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
	replaceThroughput(azcosmos.ThroughputProperties, *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error)
}

type scalableDatabase struct{ *azcosmos.DatabaseClient }

func (d scalableDatabase) readThroughput(o *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error) {
	return d.ReadThroughput(background, o)
}

func (d scalableDatabase) replaceThroughput(p azcosmos.ThroughputProperties, o *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error) {
	return d.ReplaceThroughput(background, p, o)
}

type scalableContainer struct{ *azcosmos.ContainerClient }

func (c scalableContainer) readThroughput(o *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error) {
	return c.ReadThroughput(background, o)
}

func (c scalableContainer) replaceThroughput(p azcosmos.ThroughputProperties, o *azcosmos.ThroughputOptions) (azcosmos.ThroughputResponse, error) {
	return c.ReplaceThroughput(background, p, o)
}

// Runs a test on a database and on a container that were made with the same throughput.
func onBoth(t *testing.T, throughput azcosmos.ThroughputProperties, test func(*testing.T, scalable)) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		t.Run("container", func(t *testing.T) {
			properties := azcosmos.ContainerProperties{ID: "scaled", PartitionKeyDefinition: onePath("/pk")}
			options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
			succeed(f.database.CreateContainer(background, properties, options))(t)
			test(t, scalableContainer{succeed(f.database.NewContainer("scaled"))(t)})
		})
		t.Run("database", func(t *testing.T) {
			id := f.database.ID() + "-scaled"
			options := &azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput}
			succeed(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, options))(t)
			database := succeed(f.client.NewDatabase(id))(t)
			test(t, scalableDatabase{database})
			succeed(database.Delete(background, nil))(t)
		})
	})
}

func checkManual(t *testing.T, response azcosmos.ThroughputResponse, expected int32) {
	t.Helper()
	checkAnswer(t, response.Response, http.StatusOK)
	manual, isManual := response.ThroughputProperties.ManualThroughput()
	equal(t, "manual throughput", isManual, true)
	equal(t, "throughput", manual, expected)
	equal(t, "replace pending", response.IsReplacePending, false)
	if response.MinThroughput == nil || *response.MinThroughput < 400 {
		t.Fatalf("minimum throughput %v", response.MinThroughput)
	}
}

func checkAutoscale(t *testing.T, response azcosmos.ThroughputResponse, expected int32) {
	t.Helper()
	checkAnswer(t, response.Response, http.StatusOK)
	maximum, isAutoscale := response.ThroughputProperties.AutoscaleMaxThroughput()
	equal(t, "autoscale throughput", isAutoscale, true)
	equal(t, "maximum", maximum, expected)
}

func TestManualThroughput(t *testing.T) {
	onBoth(t, azcosmos.NewManualThroughputProperties(400), func(t *testing.T, target scalable) {
		read := succeed(target.readThroughput(nil))(t)
		checkManual(t, read, 400)
		replaced := succeed(target.replaceThroughput(azcosmos.NewManualThroughputProperties(1100), nil))(t)
		checkManual(t, replaced, 1100)
		if replaced.ETag == read.ETag {
			t.Fatal("the etag did not change")
		}
		for _, bad := range []int32{0, 399, 450, 1_000_100} {
			refuse(target.replaceThroughput(azcosmos.NewManualThroughputProperties(bad), nil))(t, 400, "BadRequest")
		}
		checkManual(t, succeed(target.readThroughput(nil))(t), 1100)
	})
}

func TestAutoscaleThroughput(t *testing.T) {
	onBoth(t, azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 5), func(t *testing.T, target scalable) {
		read := succeed(target.readThroughput(nil))(t)
		checkAutoscale(t, read, 4000)
		increment, _ := read.ThroughputProperties.AutoscaleIncrement()
		equal(t, "increment", increment, int32(5))
		replaced := succeed(target.replaceThroughput(azcosmos.NewAutoscaleThroughputProperties(10_000), nil))(t)
		checkAutoscale(t, replaced, 10_000)
		for _, bad := range []int32{500, 1500} {
			refuse(target.replaceThroughput(azcosmos.NewAutoscaleThroughputProperties(bad), nil))(t, 400, "BadRequest")
		}
		checkAutoscale(t, succeed(target.readThroughput(nil))(t), 10_000)
	})
}

func TestThroughputConditions(t *testing.T) {
	onBoth(t, azcosmos.NewManualThroughputProperties(400), func(t *testing.T, target scalable) {
		current := succeed(target.readThroughput(nil))(t).ETag
		stale := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)
		more := azcosmos.NewManualThroughputProperties(500)
		// The SDK sends the condition with its own read of the offer too, where If-Match has no meaning.
		refuse(target.replaceThroughput(more, &azcosmos.ThroughputOptions{IfMatchEtag: &stale}))(t, 412, "PreconditionFailed")
		checkManual(t, succeed(target.replaceThroughput(more, &azcosmos.ThroughputOptions{IfMatchEtag: &current}))(t), 500)
	})
}

func TestThroughputAbsent(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		// The SDK makes this 404 itself, from an empty answer to its lookup.
		if _, err := f.database.ReadThroughput(background, nil); err == nil {
			t.Fatal("a database without throughput has an offer")
		}
		// A container outside a database with throughput always has some.
		checkManual(t, succeed(f.container(t, "default").ReadThroughput(background, nil))(t), 400)
	})
}

func TestThroughputRefusedAtCreation(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		properties := azcosmos.ContainerProperties{ID: "refused", PartitionKeyDefinition: onePath("/pk")}
		for _, throughput := range []azcosmos.ThroughputProperties{
			azcosmos.NewManualThroughputProperties(100),
			azcosmos.NewManualThroughputProperties(450),
			azcosmos.NewAutoscaleThroughputProperties(500),
			azcosmos.NewAutoscaleThroughputProperties(1500),
		} {
			options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
			refuse(f.database.CreateContainer(background, properties, options))(t, 400, "BadRequest")
		}
		refuse(succeed(f.database.NewContainer("refused"))(t).Read(background, nil))(t, 404, "NotFound")
	})
}

func TestSharedThroughput(t *testing.T) {
	overBothSchemes(t, func(t *testing.T, f fixture) {
		id := f.database.ID() + "-shared"
		manual := azcosmos.NewManualThroughputProperties(600)
		options := &azcosmos.CreateDatabaseOptions{ThroughputProperties: &manual}
		succeed(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, options))(t)
		own := fixture{client: f.client, database: succeed(f.client.NewDatabase(id))(t)}
		if _, err := own.container(t, "sharing").ReadThroughput(background, nil); err == nil {
			t.Fatal("a container that shares its database's throughput has its own")
		}
		checkManual(t, succeed(own.database.ReadThroughput(background, nil))(t), 600)
		succeed(own.database.Delete(background, nil))(t)
	})
}
