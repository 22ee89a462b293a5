package hubcrash_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// addOn is the name of the add-on, and of the namespace of its placement.
	addOn = "mortal"
	// labelMortal is the label by which the placement selects clusters.
	labelMortal = "example.com/mortal"
	// maxConcurrency is how many clusters may move at the same time.
	maxConcurrency = 1
	// calm is how long nothing is written at the end of a phase.
	calm = time.Second
	// lives is how many lives are lived unless all are.
	lives = 3
)

//go:embed testdata/template.yaml
var templateYAML string

// phase is one order of a person, up to the state in which it is carried out.
type phase struct {
	name string
	// act gives the order and returns the version of the API server from which on it counts.
	act func(t *testing.T) int
	// leaving are the clusters that lose the add-on.
	leaving []string
	// done are texts that the end state contains; gone are some that it does not.
	done, gone []string
}

// completed is the message of a rollout that is complete on so many clusters.
func completed(n int) string {
	return fmt.Sprintf("configured addons %d/%d completed with no errors, 0 failed 0 timeout", n, n)
}

// phases are the life of an add-on.
func phases() []phase {
	return []phase{
		{name: "install", act: install, done: []string{completed(3), "agent:v1", "HostingClusterValidity"}},
		{name: "upgrade in place", act: func(t *testing.T) int {
			t.Helper()
			return update(t, template(t, "a", "v1"), func(o *addonv1alpha1.AddOnTemplate) {
				o.Spec = template(t, "a", "v2").Spec
			})
		}, done: []string{completed(3)}, gone: []string{"agent:v1"}},
		{name: "upgrade to a new template", act: uses("b"), done: []string{completed(3)}, gone: []string{"agent:v2"}},
		{name: "roll back", act: uses("a"), done: []string{completed(3)}, gone: []string{"agent:v3"}},
		{
			name: "leave a cluster", leaving: clusters[1:2], act: label(clusters[1], "false"), done: []string{completed(2)},
			gone: []string{
				"ManagedClusterAddOn " + clusters[1], "ManifestWork " + clusters[1], "RoleBinding " + clusters[1],
			},
		},
		{name: "remove", leaving: clusters, act: func(t *testing.T) int {
			t.Helper()
			cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn}}
			require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cma), cma))
			require.NoError(t, plane.Client.Delete(t.Context(), cma))
			return version(t, cma)
		}, gone: []string{"ManagedClusterAddOn", "ManifestWork", "RoleBinding", "ClusterManagementAddOn"}},
	}
}

// Shows: hub/killed-hub-manager, invariants/killed-hub
func TestAHubManagerKilledAtAnyWriteEndsTheSame(t *testing.T) {
	undisturbed := newLife(t)
	undisturbed.live(nil)
	most, deaths := 0, 0
	for i, phase := range undisturbed.phases {
		t.Logf("to %s takes %d writes", phase.name, len(undisturbed.writes[i]))
		most = max(most, len(undisturbed.writes[i]))
	}
	if *all {
		for at := *first; at <= most && !t.Failed(); at++ {
			for _, how := range []blow{answerLost, writeLost} {
				t.Run(fmt.Sprintf("%s write %d", how, at), func(t *testing.T) {
					deaths += undisturbed.again(t, func(int) (int, blow) { return at, how })
				})
			}
		}
		t.Logf("the hub manager died %d times", deaths)
		return
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test ./test/integration/hubcrash -seed %d", *seed)
	draw := rand.New(rand.NewPCG(*seed, 0))
	for n := 0; n < lives && !t.Failed(); n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			deaths += undisturbed.again(t, func(i int) (int, blow) {
				return 1 + draw.IntN(len(undisturbed.writes[i])), blow(draw.IntN(2))
			})
		})
	}
	if !t.Failed() {
		require.Greater(t, deaths, lives*len(undisturbed.phases)/2, "most of the drawn deaths must happen")
	}
}

// life is the life of an add-on from its installation to its removal.
type life struct {
	t      *testing.T
	phases []phase
	// ends are the states at the ends of the phases, and writes what the hub manager wrote in them.
	ends   []state
	hashes []string
	writes [][]string
	// deaths is how often the hub manager died. It lives on where it made fewer writes than in the undisturbed life.
	deaths int
}

func newLife(t *testing.T) *life {
	t.Helper()
	return &life{t: t, phases: phases()}
}

// again lives the same life with a death in each phase, and returns how often the hub manager died.
func (l *life) again(t *testing.T, death func(phase int) (at int, how blow)) int {
	t.Helper()
	again := &life{t: t, phases: l.phases, ends: l.ends, hashes: l.hashes, writes: l.writes}
	again.live(death)
	return again.deaths
}

// live goes through all phases; without deaths it notes the states, with deaths it requires them.
func (l *life) live(death func(phase int) (at int, how blow)) {
	l.t.Helper()
	l.prepare()
	h, m := record(l.t), startManager(l.t)
	var eras []era
	for i, phase := range l.phases {
		if death == nil {
			m.raise(0, answerLost)
			from := phase.act(l.t)
			eras = append(eras, era{phase: phase, from: from})
			l.note(m, phase)
			continue
		}
		at, how := death(i)
		m.raise(at, how)
		eras = append(eras, era{phase: phase, from: phase.act(l.t)})
		l.awaitEnd(m, i, fmt.Sprintf("killed %s write %d", how, at))
	}
	if m.isDead() { // It died at the very end of the last phase.
		<-m.fell
		m.revive()
	}
	l.cleanUp()
	// The next life has a hub manager of its own: a second one would do what the dead one left undone.
	m.program.Stop()
	suite.Eventually(l.t, func() error { return h.caughtUp(l.t.Context()) })
	for i := range eras {
		eras[i].hash = l.hashes[i]
	}
	h.judge(l.t, eras)
}

// prepare makes the templates; the clusters are there.
func (l *life) prepare() {
	l.t.Helper()
	for name, version := range map[string]string{"a": "v1", "b": "v3"} {
		require.NoError(l.t, plane.Client.Create(l.t.Context(), template(l.t, name, version)))
	}
}

// cleanUp removes what a person made and requires that the hub manager left nothing.
func (l *life) cleanUp() {
	l.t.Helper()
	ctx := l.t.Context()
	require.NoError(l.t, plane.Client.Delete(ctx, placement()))
	for _, name := range []string{"a", "b"} {
		require.NoError(l.t, plane.Client.Delete(ctx, template(l.t, name, "")))
	}
	label(clusters[1], "true")(l.t)
	suite.Eventually(l.t, func() error {
		s, err := look(ctx)
		return errors.Join(err, s.differs(state{}))
	})
	suite.Eventually(l.t, func() error {
		left, err := contents(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("content %s is left", left[0].GetName())
		}
		return err
	})
}

// note waits until a phase is at its end, and notes how that is.
func (l *life) note(m *manager, p phase) {
	l.t.Helper()
	suite.Eventually(l.t, func() error { return p.ended(l.t.Context()) })
	suite.Quiet(l.t, calm, func() int { return len(m.made()) })
	end, err := look(l.t.Context())
	require.NoError(l.t, err)
	l.ends, l.writes = append(l.ends, end), append(l.writes, m.made())
	// After the removal there is no add-on, and the content is that of the phase before.
	_, status, found := strings.Cut(end["ManagedClusterAddOn "+clusters[0]+"/"+addOn], "desiredConfig")
	hash := hashOf(status)
	if !found {
		hash = l.hashes[len(l.hashes)-1]
	}
	l.hashes = append(l.hashes, hash)
}

// ended returns what is missing at the end of a phase.
func (p phase) ended(ctx context.Context) error {
	s, err := look(ctx)
	if err != nil {
		return err
	}
	text := ""
	for key, object := range s {
		text += key + "\n" + object + "\n"
	}
	for _, done := range p.done {
		if !strings.Contains(text, done) {
			return fmt.Errorf("nothing has %q: %s", done, text)
		}
	}
	for _, gone := range p.gone {
		if strings.Contains(text, gone) {
			return fmt.Errorf("something has %q: %s", gone, text)
		}
	}
	return nil
}

// awaitEnd waits until a phase ends as it did without deaths, and gives the hub manager its next life when it dies.
func (l *life) awaitEnd(m *manager, i int, how string) {
	l.t.Helper()
	same := func() error {
		s, err := look(l.t.Context())
		return errors.Join(err, s.differs(l.ends[i]))
	}
	died := false
	suite.Eventually(l.t, func() error {
		if m.isDead() {
			how += ", " + m.last()
			died = true
			return nil
		}
		return same()
	})
	if !died {
		m.raise(0, answerLost)
		return
	}
	<-m.fell
	l.deaths++
	l.t.Logf("to %s: %s", l.phases[i].name, how)
	m.revive()
	suite.Eventually(l.t, func() error {
		if err := same(); err != nil {
			return fmt.Errorf("to %s, %s: %w", l.phases[i].name, how, err)
		}
		return nil
	})
}

func placement() *clusterv1beta1.Placement {
	return &clusterv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: addOn, Name: addOn},
		Spec: clusterv1beta1.PlacementSpec{Predicates: []clusterv1beta1.ClusterPredicate{{
			RequiredClusterSelector: clusterv1beta1.ClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelMortal: "true"}},
			},
		}}},
	}
}

// install makes the placement and the add-on, which moves cluster by cluster.
func install(t *testing.T) int {
	t.Helper()
	kind := addonv1alpha1.ConfigGroupResource(confighash.Template())
	cma := &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: addOn},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			SupportedConfigs: []addonv1alpha1.ConfigMeta{{ConfigGroupResource: kind}},
			InstallStrategy: addonv1alpha1.InstallStrategy{
				Type: addonv1alpha1.AddonInstallStrategyPlacements,
				Placements: []addonv1alpha1.PlacementStrategy{{
					PlacementRef: addonv1alpha1.PlacementRef{Namespace: addOn, Name: addOn},
					Configs: []addonv1alpha1.AddOnConfig{{
						ConfigGroupResource: kind, ConfigReferent: addonv1alpha1.ConfigReferent{Name: addOn + "-a"},
					}},
					RolloutStrategy: clusterv1alpha1.RolloutStrategy{
						Type:        clusterv1alpha1.Progressive,
						Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(maxConcurrency)},
					},
				}},
			},
		},
	}
	require.NoError(t, plane.Client.Create(t.Context(), cma))
	require.NoError(t, plane.Client.Create(t.Context(), placement()))
	return version(t, cma)
}

// uses returns the order to use another template.
func uses(name string) func(*testing.T) int {
	return func(t *testing.T) int {
		t.Helper()
		cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn}}
		return update(t, cma, func(o *addonv1alpha1.ClusterManagementAddOn) {
			o.Spec.InstallStrategy.Placements[0].Configs[0].Name = addOn + "-" + name
		})
	}
}

// label returns the order to label a cluster, which selects it or not.
func label(cluster, value string) func(*testing.T) int {
	return func(t *testing.T) int {
		t.Helper()
		of := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
		return update(t, of, func(o *clusterv1.ManagedCluster) { o.Labels[labelMortal] = value })
	}
}

// update changes an object with a patch, so that it disturbs no other writer, and returns its new version.
func update[T client.Object](t *testing.T, object T, change func(T)) int {
	t.Helper()
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before, ok := object.DeepCopyObject().(client.Object)
	require.True(t, ok)
	change(object)
	require.NoError(t, plane.Client.Patch(t.Context(), object, client.MergeFrom(before)))
	return version(t, object)
}

// version returns the version of an object, which orders all objects of an API server.
func version(t *testing.T, object client.Object) int {
	t.Helper()
	n, err := strconv.Atoi(object.GetResourceVersion())
	require.NoError(t, err)
	return n
}

// template returns one of the templates of the add-on with the images of a version.
func template(t *testing.T, name, version string) *addonv1alpha1.AddOnTemplate {
	t.Helper()
	var parsed addonv1alpha1.AddOnTemplate
	text := strings.NewReplacer("NAME", addOn+"-"+name, "VERSION", version).Replace(templateYAML)
	// The arguments have {{CLUSTER_NAME}}, which is not to be replaced.
	text = strings.ReplaceAll(text, "CLUSTER_"+addOn+"-"+name, "CLUSTER_NAME")
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &parsed))
	return &parsed
}
