package lies

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/cert"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

func TestASeedIsAPlay(t *testing.T) {
	scenes := map[scene]bool{}
	for seed := range uint64(200) {
		p := draw(seed, DefaultClusters, DefaultScenes)
		assert.Equal(t, p, draw(seed, DefaultClusters, DefaultScenes))
		assert.GreaterOrEqual(t, len(p.steps), DefaultScenes)
		for _, s := range p.steps {
			scenes[s.scene] = true
		}
	}
	assert.Len(t, scenes, len(weights())+1)
	var short []string
	for _, seed := range Short() {
		short = append(short, draw(seed, DefaultClusters, DefaultScenes).scenes())
	}
	for s := range weights() {
		t.Logf("%s is in the short form: %t", s, strings.Contains(strings.Join(short, ", "), string(s)))
	}
}

// judged is a judge of a fleet in which nothing runs but what the test says.
func judged(available ...pair) *judge {
	j := newJudge()
	j.who = func(string, string) []string { return nil }
	j.deployment = func(_ context.Context, p pair) *appsv1.Deployment {
		if !slices.Contains(available, p) {
			return nil
		}
		return deployment(p.addOn, "v2", true)
	}
	return j
}

func deployment(name, image string, available bool) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	if available {
		d.Status.AvailableReplicas = 1
	}
	return d
}

func workOfAddOn(cluster, image string) *workv1.ManifestWork {
	d := deployment("a", image, false)
	d.Kind, d.APIVersion = "Deployment", "apps/v1"
	w := work(cluster, "addon-a-deploy-0")
	w.UID, w.Labels = types.UID(cluster+"a"), map[string]string{names.LabelAddonName: "a"}
	w.Spec.Workload.Manifests = []workv1.Manifest{manifest(d)}
	return w
}

func request(name, user string, approved bool) *certificatesv1.CertificateSigningRequest {
	o := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{names.LabelClusterName: "c1"},
		CreationTimestamp: metav1.Now(),
	}}
	o.Spec.Username = user
	if approved {
		o.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.Now()},
		}
	}
	return o
}

// certificate is one that is valid until a time.
func certificate(t *testing.T, until time.Time) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until}
	signed, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed})
}

// Shows: invariants/lies-delete-nothing, invariants/lies-approve-nothing, invariants/slots, invariants/hook-first
func TestTheJudgeNoticesWhatNobodyAskedFor(t *testing.T) {
	a, b, c := pair{"c1", "a"}, pair{"c2", "a"}, pair{"c3", "a"}
	agent := csr.ClusterUser("c1", "x")
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
	going := addOn.DeepCopy()
	now := metav1.Now()
	going.DeletionTimestamp = &now
	settled := func(j *judge) {
		j.rolls("a", 1, false)
		for _, p := range []pair{a, b, c} {
			j.workload(watch.Added, p.cluster, deployment("a", "v1", true))
			j.work(t.Context(), watch.Added, workOfAddOn(p.cluster, "v1"))
		}
	}
	move := func(j *judge, p pair) { j.work(t.Context(), watch.Modified, workOfAddOn(p.cluster, "v2")) }
	kept := id{"c1", kindConfigMap, "kept"}
	for name, tc := range map[string]struct {
		available []pair
		happens   func(*judge)
		want      string
	}{
		"an add-on that is selected goes": {want: "deleted: ", happens: func(j *judge) {
			j.protect("it is selected", id{"c1", kindAddOn, "a"})
			j.addOn(watch.Modified, going)
			j.addOn(watch.Deleted, going) // once is enough
		}},
		"one that is deselected goes": {happens: func(j *judge) {
			j.protect("it is selected", id{"c1", kindAddOn, "a"})
			j.free(a)
			j.addOn(watch.Modified, going)
		}},
		"a work goes": {want: "deleted: ", happens: func(j *judge) {
			j.protect("it is selected", workOf(a))
			j.work(t.Context(), watch.Deleted, workOfAddOn("c1", "v1"))
		}},
		"a Deployment goes": {want: "deleted: ", happens: func(j *judge) {
			j.protect("it is selected", id{"c1", kindDeployment, "a"})
			j.workload(watch.Deleted, "c1", deployment("a", "v1", true))
		}},
		"what others keep is overwritten": {want: "overwritten: ", happens: func(j *judge) {
			j.keep(kept, owner)
			j.configMap(watch.Modified, "c1", configMap("kept", owner))
			j.configMap(watch.Modified, "c1", configMap("kept", "1"))
		}},
		"two move, and one may": {want: "slots: ", happens: func(j *judge) {
			settled(j)
			move(j, a)
			move(j, b)
		}},
		"one moves after the other, which is on its way, was denied": {happens: func(j *judge) {
			settled(j)
			move(j, a)
			j.leaves(a.cluster)
			move(j, b)
		}},
		"one moves after the other": {available: []pair{a}, happens: func(j *judge) {
			settled(j)
			move(j, a)
			move(j, b)
		}},
		"a Deployment goes before its hook": {want: "hook: ", happens: func(j *judge) {
			j.rolls("a", 1, true)
			j.workload(watch.Deleted, "c1", deployment("a", "v1", true))
		}},
		"a denied cluster gets a certificate": {want: "approved: ", happens: func(j *judge) {
			j.deny("c1")
			j.request(watch.Modified, request("r"+afterwards, agent, true))
		}},
		"one that was decided on before": {happens: func(j *judge) {
			j.deny("c1")
			j.request(watch.Modified, request("r", agent, true))
		}},
		"one that is accepted again": {happens: func(j *judge) {
			j.deny("c1")
			j.welcome("c1")
			j.request(watch.Modified, request("r"+afterwards, agent, true))
		}},
		"an agent asks too early": {want: "early: ", happens: func(j *judge) {
			j.issued[pair{"c1", ""}] = life{time.Now(), time.Now().Add(time.Hour)}
			j.request(watch.Added, request("r", agent, false))
		}},
		"one whose last certificate is from before and was seen again": {happens: func(j *judge) {
			before := request("before", agent, true)
			before.Status.Certificate = certificate(t, time.Now().Add(time.Hour))
			j.request(watch.Modified, before)
			j.excuse(pair{"c1", ""})
			j.forget()
			j.request(watch.Added, before)
			j.request(watch.Added, request("r", agent, false))
		}},
		"one whose certificate is half as old as it gets, and was just seen for the first time": {happens: func(j *judge) {
			before := request("before", agent, true)
			before.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Now().Add(-time.Hour))
			before.Status.Certificate = certificate(t, time.Now().Add(10*time.Minute))
			j.request(watch.Added, before)
			j.request(watch.Added, request("r", agent, false))
		}},
		"one whose certificate is new and of this play": {want: "early: ", happens: func(j *judge) {
			before := request("before", agent, true)
			before.Status.Certificate = certificate(t, time.Now().Add(time.Hour))
			j.request(watch.Modified, before)
			j.request(watch.Added, request("r", agent, false))
		}},
		"one that lost its certificate": {happens: func(j *judge) {
			j.issued[pair{"c1", ""}] = life{time.Now(), time.Now().Add(time.Hour)}
			j.excuse(pair{"c1", ""})
			j.request(watch.Added, request("r", agent, false))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judged(tc.available...)
			tc.happens(j)
			if tc.want == "" {
				assert.Empty(t, j.found())
				return
			}
			require.Len(t, j.found(), 1)
			assert.Contains(t, j.found()[0], tc.want)
		})
	}
}

func TestWhatPeopleWantIsCompared(t *testing.T) {
	w := newWants("p1-")
	w.image["p1-a"] = "v1"
	w.selected[pair{"c1", "p1-a"}] = true
	w.works[id{"c1", kindWork, "p1-w"}] = true
	w.values[id{"c1", kindConfigMap, "p1-m"}] = "1"
	wrong := strings.Join(w.differences("c1", &seen{
		works:       map[string]*workv1.ManifestWork{"p1-other": {}},
		deployments: map[string]*appsv1.Deployment{"p1-a": deployment("p1-a", "v2", true), "p1-b": {}},
		configMaps:  map[string]*corev1.ConfigMap{"p1-m": configMap("p1-m", "2"), "p1-n": {}},
		addOns:      map[string]*addonv1alpha1.ManagedClusterAddOn{"p1-b": {}},
	}), "\n")
	for _, want := range []string{
		"it is not HubAcceptedManagedCluster", "add-on p1-a is not there", "has image v2 ( in its work) and not v1",
		"has no credential", "work p1-w is not there", "work p1-other is there", "0 works are applied () of 2", "has value 2, and not 1",
		"ConfigMap p1-n is there", "add-on p1-b is there", "Deployment p1-b is there",
	} {
		assert.Contains(t, wrong, want)
	}
}

// A cluster was denied and accepted again, and came to rest. In the next rollout of the same play the hub moves both at
// once, and one may.
func TestTheJudgeSeesTwoThatMoveAlsoWhenOneWasDeniedLongAgo(t *testing.T) {
	a, b := pair{"c1", "a"}, pair{"c2", "a"}
	j := judged()
	j.rolls("a", 1, false)
	j.leaves(a.cluster)
	j.deny(a.cluster)
	j.welcome(a.cluster)
	for _, p := range []pair{a, b} {
		j.workload(watch.Added, p.cluster, deployment("a", "v1", true))
		j.work(t.Context(), watch.Added, workOfAddOn(p.cluster, "v1"))
	}
	for _, p := range []pair{a, b} {
		j.work(t.Context(), watch.Modified, workOfAddOn(p.cluster, "v2"))
	}
	assert.Len(t, j.found(), 1, "two move, and one may")
}
