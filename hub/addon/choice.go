package addon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Choice is the configuration that an add-on on a cluster runs with. It follows from specs, from the rollout and from
// contents that the hub manager stored; of a status that the agent may write, only which of the stored contents the
// cluster had before.
type Choice struct {
	// Configs are the configurations, ordered by group and resource, and within a resource in the order of the spec.
	Configs []ChosenConfig
	// Desired lists the configurations that the specs name, of any content, including those that are not chosen yet.
	Desired []addonv1beta1.AddOnConfig
	// Held is why Configs are not yet those of the specs; empty when they are.
	Held string
	// Undo reports that Configs are what the add-on had before a content that was undone.
	Undo bool
	// Precedence says which of several configurations of one kind counts.
	Precedence Precedence
}

// Precedence says which of several configurations of one kind counts for an add-on. The zero value is LastCounts.
type Precedence string

const (
	// LastCounts means that the last configuration of a kind counts, as OCM documents it.
	LastCounts Precedence = "Last"
	// FirstCounts means that the first one counts, as OCM 1.3 and earlier choose.
	FirstCounts Precedence = "First"
)

// Check returns an error for a value that is neither; the empty one is not taken either, because a flag has a default.
func (p Precedence) Check() error {
	if p == LastCounts || p == FirstCounts {
		return nil
	}
	return fmt.Errorf("--config-precedence: %q is neither %s nor %s", string(p), LastCounts, FirstCounts)
}

// ChosenConfig is one configuration with the content that was chosen, identified by its hash.
type ChosenConfig struct {
	addonv1beta1.ConfigGroupResource
	addonv1beta1.ConfigSpecHash
	// Object is the content; nil for a kind that the hub manager does not read. It must not be changed.
	Object *unstructured.Unstructured
}

// First returns the first chosen configuration of a kind; nil when there is none.
func (c Choice) First(resource addonv1beta1.ConfigGroupResource) *ChosenConfig {
	for i := range c.Configs {
		if c.Configs[i].ConfigGroupResource == resource {
			return &c.Configs[i]
		}
	}
	return nil
}

// Counting returns the chosen configuration of a kind that counts; nil when there is none. Several are not merged.
func (c Choice) Counting(resource addonv1beta1.ConfigGroupResource) *ChosenConfig {
	if c.Precedence == FirstCounts {
		return c.First(resource)
	}
	for i := range slices.Backward(c.Configs) {
		if c.Configs[i].ConfigGroupResource == resource {
			return &c.Configs[i]
		}
	}
	return nil
}

// several reports whether another configuration counts than the first one of its kind.
func (c Choice) several() bool {
	return slices.ContainsFunc(c.Configs, func(config ChosenConfig) bool {
		return c.First(config.ConfigGroupResource) != c.Counting(config.ConfigGroupResource)
	})
}

// Configuration is the decision about the configuration of one add-on in one pass.
type Configuration struct {
	// Choice holds what the add-on runs with; it is unknown while Err is set.
	Choice Choice
	// Err is a NotReadyError when nothing can be chosen yet.
	Err error
	// Recheck is when time alone may change the configuration; zero for never.
	Recheck time.Time
	// Unstored is why contents could not be stored; the caller asks again within a minute.
	Unstored error
	// Record writes the configuration and its progress into the status of a copy of the add-on. It calls nothing and
	// reads no clock. A nil Record leaves the status alone, because others manage the add-on.
	Record func(after *addonv1beta1.ManagedClusterAddOn, p Progress)
	// Admitted reports that a rollout admitted the add-on to this configuration and that its status does not show that
	// yet. Then the status is written before any work, because a hub manager that ends forgets admissions.
	Admitted bool
}

// Progress holds what a pass knows about the works of an add-on at its end.
type Progress struct {
	// Now is the time of the pass.
	Now time.Time
	// Works are the ManifestWorks that deploy the add-on, on all its clusters, without pre-delete hooks.
	Works []*workv1.ManifestWork
	// Orders are the orders of several configurations of a kind from which Works are known to be rendered, as annotation
	// addon.spokelet.io/config-order has them. A work of which that is not known has none.
	Orders []string
	// Nothing reports that there are no works because the agent has no objects with this configuration.
	Nothing bool
	// RollingOut lists the workloads whose pods are not all of the present version and ready.
	RollingOut []string
	// Err is why they are not known.
	Err error
}

// Configurer determines the configurations of add-ons.
type Configurer interface {
	// Configure decides the configuration of an add-on. The error is one of reading; nothing is known then.
	Configure(ctx context.Context, addOn *addonv1beta1.ManagedClusterAddOn) (Configuration, error)
	// Named returns all configurations of a kind that any spec names for the add-on with this name, on any cluster, and
	// those that clusters are to run with until a rollout reaches them, in any order. Contents that are not known are an
	// error.
	Named(ctx context.Context, addOn string, kind addonv1beta1.ConfigGroupResource) ([]ChosenConfig, error)
	// Runs reports whether the add-on with this name is to run with a stored content of a kind on any cluster.
	Runs(ctx context.Context, addOn string, kind addonv1beta1.ConfigGroupResource) (bool, error)
}
