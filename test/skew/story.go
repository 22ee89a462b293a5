package skew

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// held is how long a rollout that must not go on is watched.
	held = 5 * time.Second
	// long and short are the deadlines of versions that get well and of one that does not.
	long, short = "10m", "10s"
)

// step is a step of the story.
type step struct {
	name string
	do   func(*world, context.Context) error
}

func steps() []step {
	return []step{
		{"clusters joined", (*world).join},
		{"add-on installed", (*world).install},
		{"rollout, one cluster at a time", (*world).rollOut},
		{"bad version stopped", (*world).stop},
		{"fix went through", (*world).fix},
		{"certificates replaced", (*world).rotate},
		{"add-on removed from a cluster", (*world).remove},
		{"nothing written at rest", (*world).rest},
		{"everything compared", (*world).compare},
	}
}

func stepNames() []string {
	var all []string
	for _, s := range steps() {
		all = append(all, s.name)
	}
	return all
}

func (w *world) join(ctx context.Context) error {
	if err := w.fleet.InstallHubOf(ctx, w.release(w.path.Hub), nil); err != nil {
		return err
	}
	for _, cluster := range w.fleet.Clusters() {
		if err := w.fleet.StartAgentOf(ctx, w.release(w.path.Agents), cluster); err != nil {
			return err
		}
	}
	for _, cluster := range w.fleet.Clusters() {
		if err := w.fleet.Accept(ctx, cluster.Name, map[string]string{selected: "yes"}); err != nil {
			return err
		}
		if err := w.fleet.WaitAvailable(ctx, cluster, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) install(ctx context.Context) error {
	if err := w.version(ctx, "v1", long); err != nil {
		return err
	}
	var err error
	w.first, err = w.await(ctx, func(seen map[string]Cluster) []string {
		wrong := everywhere("v1", seen)
		for name, c := range seen {
			if c.Certificates[ofAddOn] == "" {
				wrong = append(wrong, name+": the add-on has no credential")
			}
		}
		return wrong
	})
	return err
}

// version applies the add-on with a version and a deadline.
func (w *world) version(ctx context.Context, version, deadline string) error {
	text := strings.NewReplacer("VERSION", version, "DEADLINE", deadline).Replace(addOnFile)
	return w.fleet.Hub.Apply(ctx, []byte(text))
}

// everywhere says which clusters do not have a version, and well.
func everywhere(version string, seen map[string]Cluster) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		wrong = append(wrong, problems(name, seen[name], version)...)
	}
	return wrong
}

func (w *world) rollOut(ctx context.Context) error { return w.through(ctx, "v2", rolling) }

func (w *world) fix(ctx context.Context) error { return w.through(ctx, "v4", fixing) }

// through rolls out a version that gets well, with a moment when one cluster has it, the second is on its way and the
// third waits.
func (w *world) through(ctx context.Context, version string, m moment) error {
	w.kubelets.limit(version, 1)
	if err := w.version(ctx, version, long); err != nil {
		return err
	}
	if _, err := w.await(ctx, func(seen map[string]Cluster) []string {
		if n := having(version, seen); n != 2 {
			return []string{fmt.Sprintf("%d clusters have version %s, and not 2", n, version)}
		}
		return nil
	}); err != nil {
		return err
	}
	// The agent of the second cluster has told that its pods do not run. Hub managers up to 2026-11-25 took one that ended
	// before it could for one that was done.
	if err := w.hold(ctx, version, 2, held); err != nil {
		return err
	}
	if err := w.at(ctx, m); err != nil {
		return err
	}
	if err := w.hold(ctx, version, 2, held); err != nil {
		return err
	}
	w.kubelets.open(version)
	_, err := w.await(ctx, func(seen map[string]Cluster) []string { return everywhere(version, seen) })
	return err
}

// stop rolls out a version that does not start: its first cluster times out, and no other gets it.
func (w *world) stop(ctx context.Context) error {
	w.kubelets.breaks("v3")
	if err := w.version(ctx, "v3", short); err != nil {
		return err
	}
	seen, err := w.await(ctx, func(seen map[string]Cluster) []string {
		if n := having("v3", seen); n != 1 {
			return []string{fmt.Sprintf("%d clusters have version v3, and not 1", n)}
		}
		return w.timedOut(ctx)
	})
	if err != nil {
		return err
	}
	// The agent of the broken cluster is replaced first.
	slices.SortStableFunc(w.order, func(a, b string) int {
		broken := func(name string) int { return having("v3", map[string]Cluster{name: seen[name]}) }
		return broken(b) - broken(a)
	})
	if err := w.at(ctx, stopped); err != nil {
		return err
	}
	return w.hold(ctx, "v3", 1, held)
}

// timedOut says what the placement of the add-on counts when no cluster has timed out.
func (w *world) timedOut(ctx context.Context) []string {
	management, err := addonapi.Client{Client: w.fleet.HubClient}.GetClusterManagementAddOn(ctx, addOnName)
	if err != nil {
		return []string{err.Error()}
	}
	var counts []string
	for _, progression := range management.Status.InstallProgressions {
		for _, c := range progression.Conditions {
			if c.Type == addonv1beta1.ManagedClusterAddOnConditionProgressing && strings.Contains(c.Message, "1 timeout") {
				return nil
			}
			counts = append(counts, c.Message)
		}
	}
	return append(counts, "no cluster has timed out")
}

// rotate waits until all certificates were replaced, after the last agent was, too, and reads with those of add-ons.
func (w *world) rotate(ctx context.Context) error {
	before, err := w.look(ctx)
	if err != nil {
		return err
	}
	all := len(unreplaced(before, before))
	seen, err := w.await(ctx, func(seen map[string]Cluster) []string {
		if same := unreplaced(before, seen); len(same) == all {
			return same
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.at(ctx, rotating); err != nil {
		return err
	}
	if w.path.Replaced {
		before = seen
	}
	if _, err := w.await(ctx, func(seen map[string]Cluster) []string { return unreplaced(before, seen) }); err != nil {
		return err
	}
	for _, cluster := range w.fleet.Clusters() {
		if err := readAsAddOn(ctx, cluster); err != nil {
			return fmt.Errorf("reading from the hub as the add-on on %s: %w", cluster.Name, err)
		}
	}
	return nil
}

// readAsAddOn reads from the hub what the add-on may, with its credential.
func readAsAddOn(ctx context.Context, cluster *fleet.Cluster) error {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: secretAddOn}
	if err := cluster.Client.Get(ctx, key, &secret); err != nil {
		return err
	}
	kubeconfig, err := clientcmd.Load(secret.Data[csr.KeyKubeconfig])
	if err != nil {
		return err
	}
	for _, user := range kubeconfig.AuthInfos {
		user.ClientCertificate, user.ClientKey = "", ""
		user.ClientCertificateData, user.ClientKeyData = secret.Data[csr.KeyCertificate], secret.Data[csr.KeyPrivateKey]
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = clients.CoreV1().ConfigMaps(cluster.Name).List(ctx, metav1.ListOptions{})
	return err
}

// want is the version that each cluster should have in the end: the last one has lost the add-on.
func want() map[string]string {
	all := map[string]string{}
	for _, name := range clusterNames() {
		all[name] = "v4"
	}
	all[unselected] = ""
	return all
}

// unselected is the cluster that is not selected any more.
const unselected = "skew3"

func (w *world) remove(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: unselected}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+selected+`":null}}}`))
	if err := w.fleet.HubClient.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("taking the label from %s: %w", unselected, err)
	}
	_, err := w.await(ctx, w.asWanted)
	return err
}

// asWanted says what is not as it should be in the end.
func (w *world) asWanted(seen map[string]Cluster) []string { return Judge(w.first, seen, want()) }

func (w *world) compare(ctx context.Context) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	for _, what := range w.asWanted(seen) {
		w.violate("%s", what)
	}
	w.report.Works = map[string]string{}
	for name, c := range seen {
		for work, have := range c.Works {
			w.report.Works[name+"/"+work] = have.Spec
		}
	}
	return nil
}
