package hosting

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

func cluster(name string, annotations ...string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: pairs(annotations...)}}
}

// addOn is add-on a of cluster c1.
func addOn(annotations ...string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "a", UID: "uid", Annotations: pairs(annotations...),
	}}
}

func pairs(all ...string) map[string]string {
	entries := map[string]string{}
	for i := 0; i < len(all); i += 2 {
		entries[all[i]] = all[i+1]
	}
	return entries
}

func TestWhetherAClusterHosts(t *testing.T) {
	copied := addOn(names.AnnotationCopied, "hosting-cluster-name")
	for sentence, tc := range map[string]struct {
		rules Rules
		host  *clusterv1.ManagedCluster
		addOn *addonv1beta1.ManagedClusterAddOn
		want  bool
	}{
		"whoever names it has the right to":            {host: cluster("h"), addOn: addOn(), want: true},
		"its list has the cluster":                     {host: cluster("h", names.AnnotationHosts, "c0, c1"), addOn: addOn(), want: true},
		"its list has another":                         {host: cluster("h", names.AnnotationHosts, "c10,c2"), addOn: addOn()},
		"its list is empty":                            {host: cluster("h", names.AnnotationHosts, ""), addOn: addOn()},
		"its list has all":                             {host: cluster("h", names.AnnotationHosts, "*"), addOn: addOn(), want: true},
		"a list is required":                           {rules: Rules{RequireConsent: true}, host: cluster("h"), addOn: addOn()},
		"a list is required and there":                 {rules: Rules{RequireConsent: true}, host: cluster("h", names.AnnotationHosts, "c1"), addOn: addOn(), want: true},
		"the name was copied from the cluster":         {host: cluster("h"), addOn: copied},
		"it was copied, and the list has it":           {host: cluster("h", names.AnnotationHosts, "c1"), addOn: copied, want: true},
		"it was copied, and the hub trusts as OCM":     {rules: Rules{TrustAsOCM: true}, host: cluster("h"), addOn: copied, want: true},
		"a list counts even where the hub trusts much": {rules: Rules{TrustAsOCM: true}, host: cluster("h", names.AnnotationHosts, "c2"), addOn: addOn()},
		"a cluster hosts its own add-ons": {
			rules: Rules{RequireConsent: true}, host: cluster("c1", names.AnnotationHosts, ""), addOn: addOn(), want: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, tc.rules.Consents(tc.host, tc.addOn)) })
	}
}

func TestTheListWithOneMore(t *testing.T) {
	for _, tc := range []struct{ have, want string }{{"", "c1"}, {"c2", "c2,c1"}, {" c1 ,", "c1"}} {
		assert.Equal(t, tc.want, Listing(cluster("h", names.AnnotationHosts, tc.have), "c1"))
	}
}

// Shows: security/forged-hosted-works
func TestWhichWorksOnOtherClustersCount(t *testing.T) {
	const deploy, hook = "addon-a-deploy-hosting-c1-0", "addon-a-pre-delete-hosting-c1"
	work := func(namespace, name string, annotations ...string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: pairs(annotations...)}}
	}
	const uid = names.AnnotationAddonUID
	recorded := addOn(names.AnnotationHostingCluster, "h", names.AnnotationHostedOn, "former,h")
	old := addOn(names.AnnotationHostingCluster, "h")
	old.Finalizers = []string{addonv1beta1.AddonHostingManifestFinalizer}
	for sentence, tc := range map[string]struct {
		addOn *addonv1beta1.ManagedClusterAddOn
		work  *workv1.ManifestWork
		want  bool
	}{
		"on its own cluster, where owners count":             {addOn(), work("c1", deploy), true},
		"on its host":                                        {recorded, work("h", deploy, uid, "uid"), true},
		"on its host, of an earlier version":                 {recorded, work("h", hook), true},
		"on its host, of an earlier add-on":                  {recorded, work("h", hook, uid, "other"), true},
		"on a former host":                                   {recorded, work("former", deploy, uid, "uid"), true},
		"a hook on a former host":                            {recorded, work("former", hook, uid, "uid"), true},
		"on a former host, of an earlier version":            {recorded, work("former", deploy), true},
		"not a hook there without the UID":                   {recorded, work("former", hook), false},
		"not on a former host with the UID of another":       {recorded, work("former", deploy, uid, "other"), false},
		"not elsewhere":                                      {recorded, work("evil", deploy), false},
		"not elsewhere, whatever UID it has":                 {recorded, work("evil", deploy, uid, "uid"), false},
		"not a hook elsewhere":                               {recorded, work("evil", hook, uid, "uid"), false},
		"elsewhere, of an earlier version, without a record": {old, work("former", deploy), true},
		"not a hook of an earlier version elsewhere":         {old, work("evil", hook), false},
		"not for an add-on that was never hosted":            {addOn(), work("evil", deploy), false},
		"not a hook for an add-on that was never hosted":     {addOn(), work("evil", hook, uid, "uid"), false},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, Counts(tc.addOn, tc.work)) })
	}
}

func TestTheRecordOfHosts(t *testing.T) {
	on := func(namespaces ...string) (all []*workv1.ManifestWork) {
		for _, namespace := range namespaces {
			all = append(all, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
		}
		return all
	}
	for sentence, tc := range map[string]struct {
		before, next string
		works        []*workv1.ManifestWork
		want         string
		changed      bool
	}{
		"nothing is hosted":               {works: on("c1")},
		"the first host":                  {next: "h", works: on("c1"), want: "h", changed: true},
		"it is known":                     {before: "h", next: "h", works: on("h", "h"), want: "h"},
		"another one":                     {before: "h", next: "a", want: "a,h", changed: true},
		"what an earlier version left":    {next: "h", works: on("former"), want: "former,h", changed: true},
		"a cluster that hosts itself":     {next: "c1"},
		"a former host stays in the list": {before: "former", want: "former"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var a *addonv1beta1.ManagedClusterAddOn
			if a = addOn(); tc.before != "" {
				a = addOn(names.AnnotationHostedOn, tc.before)
			}
			got, changed := Record(a, tc.works, tc.next)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.changed, changed)
		})
	}
}

// Shows: security/hosted-content
func TestWhatInfluencesObjectsOnTheHost(t *testing.T) {
	const mirrors, values = names.AnnotationImageRegistries, names.AnnotationValues
	for sentence, tc := range map[string]struct {
		rules                Rules
		cluster, host, addOn []string
		mirrors, values      string
		differs              bool
	}{
		"nothing to leave out":                  {cluster: []string{"x", "y"}},
		"the mirrors of the managed cluster":    {cluster: []string{mirrors, "evil"}, differs: true},
		"those of the host count":               {cluster: []string{mirrors, "evil"}, host: []string{mirrors, "good"}, mirrors: "good", differs: true},
		"the same on both":                      {cluster: []string{mirrors, "good"}, host: []string{mirrors, "good"}, mirrors: "good"},
		"values that were copied":               {addOn: []string{values, "{}", names.AnnotationCopied, "hosting-cluster-name,values"}, differs: true},
		"values that somebody set on the addon": {addOn: []string{values, "{}", names.AnnotationCopied, ""}, values: "{}"},
		"all of it where the hub trusts much": {
			rules: Rules{TrustAsOCM: true}, cluster: []string{mirrors, "evil"}, addOn: []string{values, "{}", names.AnnotationCopied, "values"},
			mirrors: "evil", values: "{}",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := addon.Request{Cluster: cluster("c1", tc.cluster...), Hosting: cluster("h", tc.host...), AddOn: addOn(tc.addOn...)}
			before := in.Cluster.DeepCopy()
			out, differs := tc.rules.ForHost(in)
			assert.Equal(t, tc.differs, differs)
			assert.Equal(t, tc.mirrors, out.Cluster.Annotations[mirrors])
			assert.Equal(t, tc.values, out.AddOn.Annotations[values])
			assert.Equal(t, before, in.Cluster, "the cache is not changed")
		})
	}
	_, differs := Rules{}.ForHost(addon.Request{Cluster: cluster("c1", mirrors, "x"), AddOn: addOn()})
	assert.False(t, differs, "in default mode")
}

func TestTheObjectsOfTwoRenderings(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetName(name)
		return u
	}
	hosted := func(u *unstructured.Unstructured) bool { return u.GetName() == "there" }
	one, two := object("here"), object("there")
	got := Merge([]*unstructured.Unstructured{one, object("there")}, []*unstructured.Unstructured{object("here"), two}, hosted)
	require.Len(t, got, 2)
	assert.Same(t, one, got[0])
	assert.Same(t, two, got[1])
}
