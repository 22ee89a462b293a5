package hosting

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/names"
)

// claims returns a cluster that says where its agent runs, in a set of the name.
func claims(name, host, set string) *clusterv1.ManagedCluster {
	c := cluster(name)
	c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: set}
	if host != "" {
		c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
			{Name: "id.k8s.io", Value: "x"}, {Name: names.ClaimHostingCluster, Value: host},
		}
	}
	return c
}

func set(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// Shows: hub/hosting-found
func TestWhichClusterIsFound(t *testing.T) {
	gone := metav1.Now()
	everything := set("all")
	everything.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{},
	}
	wrong := set("wrong")
	wrong.Spec.ClusterSelector.SelectorType = "Other"
	going := set("s")
	going.DeletionTimestamp = &gone
	consents := func(c *clusterv1.ManagedCluster, list string) *clusterv1.ManagedCluster {
		c.Annotations = map[string]string{names.AnnotationHosts: list}
		return c
	}
	leaves := consents(claims("h", "", "s"), "c1")
	leaves.DeletionTimestamp = &gone
	for sentence, tc := range map[string]struct {
		rules   Rules
		cluster *clusterv1.ManagedCluster
		host    *clusterv1.ManagedCluster
		sets    []*clusterv1beta2.ManagedClusterSet
		unread  error
		found   string
		pending string
	}{
		"both are in a set, and the host consents": {
			cluster: claims("c1", "h", "s"), host: consents(claims("h", "", "s"), "c0,c1"), sets: []*clusterv1beta2.ManagedClusterSet{set("s")},
			found: "h",
		},
		"a set of labels counts": {
			cluster: claims("c1", "h", "a"), host: consents(claims("h", "", "b"), "*"), sets: []*clusterv1beta2.ManagedClusterSet{wrong, everything},
			found: "h",
		},
		"it says nothing":           {cluster: claims("c1", "", "s"), pending: "does not say on which cluster its agent runs"},
		"what it says is unknown":   {cluster: claims("c1", "h", "s"), pending: `"h", which is not a ManagedCluster of this hub`},
		"the host is being deleted": {cluster: claims("c1", "h", "s"), host: leaves, pending: "is being deleted"},
		"the sets are unknown":      {cluster: claims("c1", "h", "s"), host: claims("h", "", "s"), unread: errors.New("forbidden"), pending: "forbidden"},
		"they are in no set":        {cluster: claims("c1", "h", "s"), host: claims("h", "", "t"), sets: []*clusterv1beta2.ManagedClusterSet{set("s"), set("t")}, pending: "no ManagedClusterSet besides default and global has both"},
		"sets of all do not count": {
			cluster: claims("c1", "h", "default"), host: claims("h", "", "default"), sets: []*clusterv1beta2.ManagedClusterSet{set("default"), set("global")},
			pending: "no ManagedClusterSet",
		},
		"nor one that goes": {cluster: claims("c1", "h", "s"), host: claims("h", "", "s"), sets: []*clusterv1beta2.ManagedClusterSet{going}, pending: "no ManagedClusterSet"},
		"a claim is no consent": {
			cluster: claims("c1", "h", "s"), host: claims("h", "", "s"), sets: []*clusterv1beta2.ManagedClusterSet{set("s")},
			pending: "kubectl annotate managedcluster h --overwrite addon.spokelet.io/hosts=c1",
		},
		"but where the hub trusts as OCM": {
			rules: Rules{TrustAsOCM: true}, cluster: claims("c1", "h", "s"), host: claims("h", "", "s"), sets: []*clusterv1beta2.ManagedClusterSet{set("s")},
			found: "h",
		},
		"a cluster hosts itself": {
			cluster: claims("c1", "c1", "s"), host: claims("c1", "c1", "s"), sets: []*clusterv1beta2.ManagedClusterSet{set("s")}, found: "c1",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, pending := tc.rules.Find(Search{Cluster: tc.cluster, Host: tc.host, Sets: tc.sets, Unread: tc.unread})
			assert.Equal(t, tc.found, found)
			assert.Equal(t, tc.pending == "", pending == "")
			assert.Contains(t, pending, tc.pending)
		})
	}
}

func TestWhoAsksForAHostingCluster(t *testing.T) {
	gone := metav1.Now()
	leaves := addOn(names.AnnotationInstallMode, "Hosted")
	leaves.DeletionTimestamp = &gone
	for sentence, tc := range map[string]struct {
		addOn *addonv1beta1.ManagedClusterAddOn
		want  bool
	}{
		"it asks":             {addOn(names.AnnotationInstallMode, "Hosted"), true},
		"it does not ask":     {addOn(names.AnnotationInstallMode, "Default"), false},
		"it has one":          {addOn(names.AnnotationInstallMode, "Hosted", names.AnnotationHostingCluster, "h"), false},
		"it is being deleted": {leaves, false},
	} {
		assert.Equal(t, tc.want, Asks(tc.addOn), sentence)
	}
}

// Shows: hub/hosting-allowed
func TestWhoAllowsTheHubToFindHostingClusters(t *testing.T) {
	for _, tc := range []struct {
		annotation, mode string
		want             bool
	}{
		{"", "", false},
		{"", "Enable", true},
		{"", "Disable", false},
		{"", "Other", false},
		{"Enable", "", true},
		{"Disable", "", false},
		{"Enable", "Disable", false},
		{"Disable", "Enable", true},
	} {
		cma := &addonv1beta1.ClusterManagementAddOn{}
		if tc.annotation != "" {
			cma.Annotations = map[string]string{names.AnnotationAutoDiscovery: tc.annotation}
		}
		assert.Equal(t, tc.want, Allows(cma, tc.mode), "annotation %q, field %q", tc.annotation, tc.mode)
	}
}

func TestTheNameThatIsWritten(t *testing.T) {
	const mode, host, by = names.AnnotationInstallMode, names.AnnotationHostingCluster, names.AnnotationHostManagedBy
	for sentence, tc := range map[string]struct {
		before, after []string
		found         string
	}{
		"what was found":                  {before: []string{mode, "Hosted"}, found: "h", after: []string{mode, "Hosted", host, "h", by, "auto-discovery"}},
		"it stays":                        {before: []string{mode, "Hosted", host, "h", by, "auto-discovery"}},
		"nobody asks any more":            {before: []string{host, "h", by, "auto-discovery"}, after: []string{}},
		"the name of a person stays":      {before: []string{host, "h"}},
		"and one of another mark as well": {before: []string{host, "h", by, "me"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := addOn(tc.before...)
			assert.Equal(t, tc.after != nil, Renames(a, tc.found))
			Rename(a, tc.found)
			if tc.after == nil {
				tc.after = tc.before
			}
			assert.Equal(t, pairs(tc.after...), a.Annotations)
		})
	}
	assert.False(t, Rules{}.Consents(cluster("h"), addOn(host, "h", by, "auto-discovery")), "a claim is no consent")
	assert.True(t, Differs(addOn(host, "h"), claims("c1", "other", "")))
	assert.False(t, Differs(addOn(host, "h"), claims("c1", "h", "")))
	assert.False(t, Differs(addOn(host, "h"), claims("c1", "", "")), "it does not say so")
}
