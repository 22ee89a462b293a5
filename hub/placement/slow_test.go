package placement

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/hub/fleet"
)

// A Placement selects two of three clusters by a claim, such as a version of Kubernetes. The clusters are upgraded, and
// a user edits the Placement. The cache shows that edit, but not yet the claim of c0001. The page must not drop it for
// that (ADR 0019): c0002 would take its place, and keep it.
func TestAPageDropsNoClusterByAClaimThatOnlyTheCacheHas(t *testing.T) {
	for _, by := range []string{"a label (control)", "a claim"} {
		t.Run(by, func(t *testing.T) {
			set := func(c *clusterv1.ManagedCluster, version string) {
				if by == "a claim" {
					c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version", Value: version}}
				} else {
					c.Labels = map[string]string{"version": version}
				}
			}
			hub, r, key := hubOf(t, 3, interceptor.Funcs{})
			selects := func(version string) {
				edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
					p.Generation++
					p.Spec.NumberOfClusters = new(int32(2))
					p.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
					required := &p.Spec.Predicates[0].RequiredClusterSelector
					is := metav1.LabelSelectorRequirement{Key: "version", Operator: metav1.LabelSelectorOpIn, Values: []string{version}}
					if by == "a claim" {
						required.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{is}
					} else {
						required.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{is}
					}
				})
			}
			has := func(version string, names ...string) {
				for _, name := range names {
					edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{},
						func(c *clusterv1.ManagedCluster) { set(c, version) })
				}
			}
			has("1", clusters(0, 3)...)
			selects("1")
			for range 3 {
				passOf(t, r, key)
			}
			require.ElementsMatch(t, []string{"c0000", "c0001"}, union(pagesOf(t, hub)))

			selects("2")
			has("2", "c0000", "c0002") // c0001 has it, too, which the cache does not show
			r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				set(c, "2")
				c.ResourceVersion = "999"
			}}
			for range 3 {
				passOf(t, r, key)
			}
			has("2", "c0001") // the cache is as the API server
			r.Live = hub
			for range 3 {
				passOf(t, r, key)
			}
			assert.ElementsMatch(t, []string{"c0000", "c0001"}, union(pagesOf(t, hub)),
				"both were selected before the edit, and after it")
		})
	}
}

// slowAPI is an API server with many clusters that takes ten seconds for a request, as one that is overloaded does, and
// that compacts its history every five minutes, as all do.
type slowAPI struct {
	client.Reader
	clusters int
	requests int
	takes    time.Duration
}

func (s *slowAPI) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, is := into.(*metav1.PartialObjectMetadataList)
	if !is {
		return fmt.Errorf("nobody is to list %T", into)
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	time.Sleep(s.takes)
	s.requests++
	from, began := 0, time.Now()
	if o.Continue != "" {
		var unix int64
		if _, err := fmt.Sscanf(o.Continue, "%d/%d", &unix, &from); err != nil {
			return err
		}
		if began = time.Unix(unix, 0); time.Since(began) > 5*time.Minute {
			err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
			err.ErrStatus.Continue = fmt.Sprintf("%d/%d", time.Now().Unix(), from)
			return err
		}
	}
	for i := from; i < min(s.clusters, from+int(o.Limit)); i++ {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "c" + strconv.Itoa(100000+i)}})
	}
	if from += int(o.Limit); from < s.clusters {
		list.Continue = fmt.Sprintf("%d/%d", began.Unix(), from)
	}
	return nil
}

// A Placement drops 21 of 3,000 clusters.
func TestAPlacementThatDropsManyIsDecidedByASlowHub(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 10 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := &slowAPI{clusters: 3000, takes: takes}
				r := &Reconciler{Live: live}
				var names []string
				for i := range fleet.AskedEach + 1 {
					names = append(names, "c"+strconv.Itoa(100000+i*100))
				}
				began := time.Now()
				var err error
				for time.Since(began) < 12*time.Hour { // passes, each after the one that failed
					if _, err = r.liveClusters(t.Context(), names); err == nil {
						break
					}
				}
				assert.NoError(t, err, "after %d requests in %s", live.requests, time.Since(began))
			})
		})
	}
}

// As TestOneAgentThatWritesAllTheTimeHoldsUpNoPlacement, where a tenant has sixty clusters.
func TestTheAgentsOfOneTenantHoldUpNoPlacement(t *testing.T) {
	for _, bad := range []int{40, 60} {
		t.Run(fmt.Sprint(bad, " agents"), func(t *testing.T) {
			hub, r, key := hubOf(t, bad+2, interceptor.Funcs{})
			edit(t, hub, key, &clusterv1beta1.Placement{}, func(p *clusterv1beta1.Placement) {
				p.Spec.DecisionStrategy = clusterv1beta1.DecisionStrategy{}
			})
			theirs, other, fresh := clusters(0, bad), clusters(bad, bad+1)[0], clusters(bad+1, bad+2)[0]
			selecting(t, hub, key, append(clusters(0, bad), other))
			passOf(t, r, key)
			passOf(t, r, key)
			require.Len(t, union(pagesOf(t, hub)), bad+1)
			for _, name := range append(clusters(0, bad), other) {
				edit(t, hub, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) { c.Labels = nil })
			}
			edit(t, hub, client.ObjectKey{Name: fresh}, &clusterv1.ManagedCluster{}, func(c *clusterv1.ManagedCluster) { c.Labels = wantedLabels() })
			r.Live = ahead{hub, func(_ *clusterv1beta1.Placement, c *clusterv1.ManagedCluster) {
				if c.Name <= theirs[bad-1] && c.Name != "" {
					c.Labels = map[string]string{"agent.open-cluster-management.io/n": "1"}
				}
			}}
			for range 100 {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				require.NoError(t, err)
			}
			assert.Equal(t, []string{fresh}, union(pagesOf(t, hub)), "what agents of others write holds nobody up")
		})
	}
}
