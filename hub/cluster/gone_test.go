package cluster

import (
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: registration/clean-up-decided
func TestAClusterThatVanishedIsTakenApartInOrder(t *testing.T) {
	const access = "open-cluster-management:managedcluster:c1"
	addon := func(name, priority string) *addonv1beta1.ManagedClusterAddOn {
		return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{clusterv1.CleanupPriorityAnnotationKey: priority},
		}}
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	outside := []string{
		"delete *v1.ClusterRoleBinding " + access, "delete *v1.ClusterRole " + access,
		"delete *v1.RoleBinding " + access + ":registration", "delete *v1.RoleBinding " + access + ":work",
	}
	tests := map[string]struct {
		change func(*facts)
		want   [][]string
		waits  bool
	}{
		"access outside of works goes at once, add-ons first": {
			change: func(f *facts) {
				f.addons = []*addonv1beta1.ManagedClusterAddOn{addon("late", "1"), addon("early", "")}
				f.works = []*workv1.ManifestWork{work}
			},
			want: [][]string{append(append([]string{}, outside...), "delete *v1beta1.ManagedClusterAddOn early")}, waits: true,
		},
		"works go next": {
			change: func(f *facts) { f.works = []*workv1.ManifestWork{work} },
			want:   [][]string{append(append([]string{}, outside...), "delete *v1.ManifestWork w")}, waits: true,
		},
		"what only the server shows is waited for": {
			change: func(f *facts) { f.live.works = true }, want: [][]string{outside}, waits: true,
		},
		"without the mark of works all access stays until the rest is gone": {
			change: func(f *facts) {
				f.have.work, f.have.registration = nil, nil
				f.works = []*workv1.ManifestWork{work}
			},
			want: [][]string{{"delete *v1.ManifestWork w"}}, waits: true,
		},
		"lease and certificate requests go before the mark": {
			change: func(f *facts) {
				f.have = grants{work: f.have.work}
				f.have.work.DeletionTimestamp = deletedAt()
				f.requests = []*certificatesv1.CertificateSigningRequest{requestFor(t, "c1", trusted)}
			},
			want: [][]string{
				{"delete *v1.Lease managed-cluster-lease", "delete *v1.CertificateSigningRequest c1-x"},
				{"patch *v1.RoleBinding " + access + ":work"},
			},
		},
		"nothing while the server was not asked":         {change: func(f *facts) { f.live = nil }},
		"nothing when the server could not be asked":     {change: func(f *facts) { f.live.err = errors.New("down") }},
		"nothing when the cluster is there again by now": {change: func(f *facts) { f.live.cluster = true }, waits: true},
		"nothing of a cluster that nobody ever accepted": {
			change: func(f *facts) { f.have, f.works = grants{}, []*workv1.ManifestWork{work} },
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.cluster, f.live = nil, &live{}
			tc.change(&f)
			p := decide(f)
			assert.Equal(t, tc.want, steps(p))
			assert.Equal(t, tc.waits, p.remaining != "")
			assert.Nil(t, p.cluster)
			assert.Empty(t, conditions(f, p, nil))
		})
	}
}

func TestTheNamespaceOfAReservedNameIsNotCleaned(t *testing.T) {
	f := facts{name: "kube-system", now: noon(), have: renderGrants("kube-system", true), live: &live{}}
	f.works = []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "kube-system"}}}
	for _, stage := range steps(decide(f)) {
		for _, line := range stage {
			assert.NotContains(t, line, "ManifestWork w")
		}
	}

	f = settledFacts()
	f.name, f.cluster.Name, f.cluster.DeletionTimestamp = "kube-system", "kube-system", deletedAt()
	f.cluster.Finalizers = []string{"example.com/mine"}
	f.works = []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "kube-system"}}}
	assert.Empty(t, steps(decide(f)))
}

func TestWhichClustersGetTheFinalizer(t *testing.T) {
	tests := map[string]struct {
		name     string
		accepted bool
		want     bool
	}{
		"an accepted one":                          {"c1", true, true},
		"one that nobody accepted yet":             {"c1", false, true},
		"not one of a name that cannot be used":    {"managed-clusters", true, false},
		"not even when it was not accepted either": {"a.b", false, false},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := facts{name: tc.name, now: noon(), cluster: &clusterv1.ManagedCluster{}}
			f.cluster.Name, f.cluster.Spec.HubAcceptsClient = tc.name, tc.accepted
			p := decide(f)
			assert.Equal(t, tc.want, p.cluster != nil && len(p.cluster.Finalizers) == 1 &&
				p.cluster.Finalizers[0] == names.FinalizerCluster)
		})
	}
}

func TestTheCertificateRequestsGoBeforeTheFinalizer(t *testing.T) {
	f := settledFacts()
	f.cluster.DeletionTimestamp, f.have, f.lease, f.live = deletedAt(), grants{}, nil, &live{}
	f.cluster.Status.Conditions = append(f.cluster.Status.Conditions,
		condition(clusterv1.ManagedClusterConditionDeleting, metav1.ConditionTrue, "NoResource", noon()))
	f.requests = []*certificatesv1.CertificateSigningRequest{
		requestFor(t, "c1", trusted), requestFor(t, "c10", trusted),
	}
	p := decide(f)
	assert.Equal(t, [][]string{{"delete *v1.CertificateSigningRequest c1-x"}}, steps(p))
	assert.NotNil(t, p.cluster)
	assert.Empty(t, p.cluster.Finalizers)
}

func FuzzPriority(f *testing.F) {
	for _, seed := range []string{"", "0", "100", "101", "-1", "+5", "07", "1e2", "٣", "99999999999999999999", " 5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := &metav1.ObjectMeta{Annotations: map[string]string{clusterv1.CleanupPriorityAnnotationKey: text}}
		got := addonapi.CleanupPriority(o)
		if got < 0 || got > 100 {
			t.Fatalf("%q became %d", text, got)
		}
		if n, err := strconv.Atoi(text); got != 0 && (err != nil || n != got) {
			t.Fatalf("%q became %d", text, got)
		}
	})
}
