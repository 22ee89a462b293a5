package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	now   = time.Date(2026, 11, 21, 12, 0, 0, 700, time.UTC)
	stamp = now.Truncate(time.Second)
	older = stamp.Add(-time.Hour)
)

// cluster returns a ManagedCluster in a set, with taints.
func cluster(set string, taints ...clusterv1.Taint) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	if set != "" {
		c.Labels = map[string]string{clusterv1beta2.ClusterSetLabel: set}
	}
	c.Spec.Taints = taints
	return c
}

func taint(key, value string, added time.Time) clusterv1.Taint {
	t := clusterv1.Taint{Key: key, Value: value, Effect: clusterv1.TaintEffectNoSelect}
	if !added.IsZero() {
		t.TimeAdded = metav1.NewTime(added)
	}
	return t
}

// Row: webhook/v1/managedcluster_mutating_test.go:23
func TestComplete(t *testing.T) {
	never := time.Time{}
	prefer := taint("a", "", never)
	prefer.Effect = clusterv1.TaintEffectPreferNoSelect
	preferStamped := prefer
	preferStamped.TimeAdded = metav1.NewTime(older)
	for sentence, tc := range map[string]struct {
		before, after *clusterv1.ManagedCluster
		set           string
		stamps        map[int]time.Time
		wrong         string
	}{
		"a new cluster in no set joins the default one":     {nil, cluster(""), "default", nil, ""},
		"a new cluster in a set stays there":                {nil, cluster("s"), "", nil, ""},
		"an old cluster in no set joins the default one":    {cluster(""), cluster(""), "default", nil, ""},
		"a cluster that leaves its set joins the default":   {cluster("s"), cluster(""), "default", nil, ""},
		"taints of a new cluster are stamped":               {nil, cluster("s", taint("a", "", never), taint("b", "", never)), "", map[int]time.Time{0: stamp, 1: stamp}, ""},
		"what a new cluster says of their time is put away": {nil, cluster("s", taint("a", "", older)), "", map[int]time.Time{0: stamp}, ""},
		"a taint that was there keeps its time":             {cluster("s", taint("a", "", older)), cluster("s", taint("a", "", older)), "", nil, ""},
		"also when its time is left out":                    {cluster("s", taint("a", "", older)), cluster("s", taint("a", "", never)), "", map[int]time.Time{0: older}, ""},
		"its time cannot be changed":                        {cluster("s", taint("a", "", older)), cluster("s", taint("a", "", now)), "", nil, `timeAdded of taint "a"`},
		"a new taint is stamped":                            {cluster("s", taint("a", "", older)), cluster("s", taint("a", "", older), taint("b", "", never)), "", map[int]time.Time{1: stamp}, ""},
		"the time of a new taint cannot be chosen":          {cluster("s"), cluster("s", taint("b", "", older)), "", nil, `timeAdded of taint "b"`},
		"a taint with a new value is stamped anew":          {cluster("s", taint("a", "", older)), cluster("s", taint("a", "v", never)), "", map[int]time.Time{0: stamp}, ""},
		"also when its old time was left standing":          {cluster("s", taint("a", "", older)), cluster("s", taint("a", "v", older)), "", map[int]time.Time{0: stamp}, ""},
		"but its time cannot be chosen":                     {cluster("s", taint("a", "", older)), cluster("s", taint("a", "v", now)), "", nil, `timeAdded of taint "a"`},
		"a taint with a new effect is stamped anew":         {cluster("s", taint("a", "", older)), cluster("s", prefer), "", map[int]time.Time{0: stamp}, ""},
		"two effects of one key are two taints":             {cluster("s", taint("a", "", older), preferStamped), cluster("s", preferStamped, taint("a", "", older)), "", nil, ""},
		"a taint from before there were times is stamped":   {cluster("s", taint("a", "", never)), cluster("s", taint("a", "", never)), "", map[int]time.Time{0: stamp}, ""},
		"all that is wrong is told":                         {cluster("s"), cluster("s", taint("a", "", older), taint("b", "", older)), "", nil, `"a", "b"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := complete(tc.before, tc.after, now)
			assert.Equal(t, tc.set, got.set)
			if tc.wrong != "" {
				require.Len(t, got.wrong, 1)
				assert.Contains(t, got.wrong[0], tc.wrong)
				return
			}
			assert.Empty(t, got.wrong)
			assert.Len(t, got.stamps, len(tc.stamps))
			for i, want := range tc.stamps {
				assert.True(t, want.Equal(got.stamps[i]), "taint %d: %s", i, got.stamps[i])
			}
		})
	}
}

// Row: webhook/v1/managedcluster_validating_test.go:20
func TestCheckOf(t *testing.T) {
	accepted := func(c *clusterv1.ManagedCluster) *clusterv1.ManagedCluster {
		c.Spec.HubAcceptsClient = true
		return c
	}
	called := func(name string) *clusterv1.ManagedCluster {
		c := cluster("s")
		c.Name = name
		return c
	}
	at := func(urls ...string) *clusterv1.ManagedCluster {
		c := cluster("s")
		for _, url := range urls {
			c.Spec.ManagedClusterClientConfigs = append(c.Spec.ManagedClusterClientConfigs, clusterv1.ClientConfig{URL: url})
		}
		return c
	}
	for sentence, tc := range map[string]struct {
		before, after *clusterv1.ManagedCluster
		wrong         []string
		rights        []string
	}{
		"a new cluster joins its set":                       {nil, cluster("s"), nil, []string{"create managedclustersets/join s"}},
		"a new cluster may be accepted at once":             {nil, accepted(cluster("s")), nil, []string{"update managedclusters/accept c1", "create managedclustersets/join s"}},
		"to accept takes a right":                           {cluster("s"), accepted(cluster("s")), nil, []string{"update managedclusters/accept c1"}},
		"what is accepted needs no more":                    {accepted(cluster("s")), accepted(cluster("s")), nil, nil},
		"to deny takes none":                                {accepted(cluster("s")), cluster("s"), nil, nil},
		"to move takes both sets":                           {cluster("s"), cluster("t"), nil, []string{"create managedclustersets/join s", "create managedclustersets/join t"}},
		"to leave takes the old set":                        {cluster("s"), cluster(""), nil, []string{"create managedclustersets/join s"}},
		"to come takes the new set":                         {cluster(""), cluster("t"), nil, []string{"create managedclustersets/join t"}},
		"taints are nobody's business":                      {cluster("s"), cluster("s", taint("a", "", now)), nil, nil},
		"W-33 a name that cannot be, without addresses":     {nil, called("bad.name"), []string{"name of the namespace"}, []string{"create managedclustersets/join s"}},
		"W-08 the name of all clusters":                     {nil, called("managed-clusters"), []string{"reserved"}, []string{"create managedclustersets/join s"}},
		"a cluster that exists is not judged by its name":   {called("bad.name"), called("bad.name"), nil, nil},
		"addresses are https":                               {nil, at("https://x", "http://y"), []string{`[1].url: "http://y"`}, []string{"create managedclustersets/join s"}},
		"addresses can be read":                             {nil, at("https://%zz"), []string{"no URL"}, []string{"create managedclustersets/join s"}},
		"addresses have a server":                           {cluster("s"), at("https:///path"), []string{"[0].url"}, nil},
		"addresses that were there before are let be":       {at("http://x"), at("http://x"), nil, nil},
		"addresses that are added are looked at with them":  {at("http://x"), at("http://x", "https://y"), []string{"[0].url"}, nil},
		"everything that is wrong is told, addresses, too":  {nil, func() *clusterv1.ManagedCluster { c := at("x", "y"); c.Name = "a.b"; return c }(), []string{"name of the namespace", "[0].url", "[1].url"}, []string{"create managedclustersets/join s"}},
		"an IP address and a port are an address of course": {nil, at("https://10.0.0.1:6443", "https://[::1]:6443"), nil, []string{"create managedclustersets/join s"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := checkOf(tc.before, tc.after)
			require.Len(t, got.wrong, len(tc.wrong), "%v", got.wrong)
			for i, want := range tc.wrong {
				assert.Contains(t, got.wrong[i], want)
			}
			var rights []string
			for _, r := range got.rights {
				a := r.attributes
				rights = append(rights, a.Verb+" "+a.Resource+"/"+a.Subresource+" "+a.Name)
			}
			assert.Equal(t, tc.rights, rights)
			accepting := len(tc.rights) > 0 && tc.rights[0] == "update managedclusters/accept c1"
			assert.Equal(t, accepting, got.namespace)
		})
	}
}

// reviewer answers access reviews: allowed are verb, resource and name of what is allowed.
func reviewer(t *testing.T, allowed func(*authorizationv1.SubjectAccessReviewSpec) (bool, error)) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review, isReview := o.(*authorizationv1.SubjectAccessReview)
			require.True(t, isReview)
			var err error
			review.Status.Allowed, err = allowed(&review.Spec)
			return err
		},
	}).Build()
}

func request(t *testing.T, before, after *clusterv1.ManagedCluster) admission.Request {
	t.Helper()
	encode := func(c *clusterv1.ManagedCluster) runtime.RawExtension {
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		return runtime.RawExtension{Raw: raw}
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "r", Name: after.Name, Operation: admissionv1.Create, Object: encode(after),
		UserInfo: authenticationv1.UserInfo{
			Username: "alice", UID: "7", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
		},
	}}
	if before != nil {
		r.Operation, r.OldObject = admissionv1.Update, encode(before)
	}
	return r
}

// Row: webhook/v1/managedcluster_validating_test.go:234
func TestCheckAsksInTheNameOfWhoeverWrites(t *testing.T) {
	everything := func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	terminating.Status.Phase = corev1.NamespaceTerminating
	accepted := cluster("t")
	accepted.Spec.HubAcceptsClient = true
	bad := accepted.DeepCopy()
	bad.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "http://x"}}
	for sentence, tc := range map[string]struct {
		after     *clusterv1.ManagedCluster
		allowed   func(*authorizationv1.SubjectAccessReviewSpec) (bool, error)
		namespace client.Object
		code      int32
		says      []string
	}{
		"who may do it all does it": {after: accepted, allowed: everything, code: http.StatusOK},
		"a namespace that is there is no obstacle": {
			after: accepted, allowed: everything, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
			code: http.StatusOK,
		},
		"one that is going is": {
			after: accepted, allowed: everything, namespace: terminating, code: http.StatusForbidden,
			says: []string{"while namespace c1 is being deleted"},
		},
		"who may not is told everything": {
			after: accepted, allowed: func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return false, nil },
			code: http.StatusForbidden,
			says: []string{`user "alice" is not allowed to accept cluster c1`, "ManagedClusterSet s ", "ManagedClusterSet t "},
		},
		"what is wrong is told as well": {
			after: bad, allowed: func(s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
				return s.ResourceAttributes.Subresource == "join", nil
			},
			code: http.StatusBadRequest, says: []string{"no https address", "to accept cluster c1"},
		},
		"unknown is no yes": {
			after:   accepted,
			allowed: func(*authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, errors.New("down") },
			code:    http.StatusInternalServerError, says: []string{"asking whether user alice", "down"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked []authorizationv1.SubjectAccessReviewSpec
			live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if tc.namespace != nil {
				live = live.WithObjects(tc.namespace)
			}
			a := &Admission{Live: live.Build(), Client: reviewer(t,
				func(s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
					asked = append(asked, *s)
					return tc.allowed(s)
				},
			)}
			response := a.Check(t.Context(), request(t, cluster("s"), tc.after))
			assert.Equal(t, tc.code == http.StatusOK, response.Allowed)
			for _, says := range tc.says {
				assert.Contains(t, response.Result.Message, says)
			}
			if !response.Allowed {
				assert.Equal(t, tc.code, response.Result.Code)
			}
			require.NotEmpty(t, asked)
			for _, s := range asked {
				assert.Equal(t, "alice", s.User)
				assert.Equal(t, "7", s.UID)
				assert.Equal(t, []string{"g"}, s.Groups)
				assert.Equal(t, authorizationv1.ExtraValue{"v"}, s.Extra["k"])
			}
		})
	}
}

func TestCompleteKeepsWhatWeDoNotKnow(t *testing.T) {
	a := &Admission{Clock: testclock.NewFakePassiveClock(now)}
	r := request(t, nil, cluster(""))
	r.Object.Raw = []byte(`{"metadata":{"name":"c1","x":{"y":1}},"spec":{"taints":[{"key":"a","effect":"NoSelect","z":[1]}],` +
		`"future":12345}}`)
	response := a.Complete(t.Context(), r)
	require.True(t, response.Allowed)
	patch, err := json.Marshal(response.Patches)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"op":"add","path":"/metadata/labels","value":{"cluster.open-cluster-management.io/clusterset":"default"}},
		{"op":"add","path":"/spec/taints/0/timeAdded","value":"2026-11-21T12:00:00Z"}
	]`, sorted(t, patch))

	r.Object.Raw = []byte(`{"metadata":{"name":"c1","labels":{"cluster.open-cluster-management.io/clusterset":"s"}}}`)
	assert.Empty(t, a.Complete(t.Context(), r).Patches, "what is complete is not touched")
}

// sorted puts the operations of a patch in the order of their paths.
func sorted(t *testing.T, patch []byte) string {
	t.Helper()
	var operations []map[string]any
	require.NoError(t, json.Unmarshal(patch, &operations))
	require.Len(t, operations, 2)
	if operations[0]["path"] != "/metadata/labels" {
		operations[0], operations[1] = operations[1], operations[0]
	}
	out, err := json.Marshal(operations)
	require.NoError(t, err)
	return string(out)
}

func TestRequestsThatCannotBeReadAreRefused(t *testing.T) {
	a := &Admission{Clock: testclock.NewFakePassiveClock(now)}
	for sentence, edit := range map[string]func(*admission.Request){
		"no JSON":                 func(r *admission.Request) { r.Object.Raw = []byte("{") },
		"no object":               func(r *admission.Request) { r.Object.Raw = nil },
		"spec that is a list":     func(r *admission.Request) { r.Object.Raw = []byte(`{"spec":[]}`) },
		"an update of nothing":    func(r *admission.Request) { r.Operation = admissionv1.Update },
		"an old object of no use": func(r *admission.Request) { r.Operation, r.OldObject.Raw = admissionv1.Update, []byte("[]") },
		"an operation not wanted": func(r *admission.Request) { r.Operation = admissionv1.Delete },
	} {
		t.Run(sentence, func(t *testing.T) {
			r := request(t, nil, cluster("s"))
			edit(&r)
			for _, response := range []admission.Response{a.Complete(t.Context(), r), a.Check(t.Context(), r)} {
				assert.False(t, response.Allowed)
				assert.EqualValues(t, http.StatusBadRequest, response.Result.Code)
			}
		})
	}
}

func TestTheConfigurationsAskForAsLittleAsPossible(t *testing.T) {
	serving := Serving{
		User: `odd"user\`, At: func(path string) admissionregistrationv1.WebhookClientConfig {
			return admissionregistrationv1.WebhookClientConfig{URL: &path}
		},
	}
	mutating, validating := Mutating(serving).Webhooks[0], Validating(serving).Webhooks[0]
	assert.Equal(t, PathMutate, *mutating.ClientConfig.URL)
	assert.Equal(t, PathValidate, *validating.ClientConfig.URL)
	for _, conditions := range [][]admissionregistrationv1.MatchCondition{mutating.MatchConditions, validating.MatchConditions} {
		require.Len(t, conditions, 2)
		assert.Equal(t, `request.userInfo.username != "odd\"user\\"`, conditions[0].Expression)
	}
	for _, rules := range [][]admissionregistrationv1.RuleWithOperations{mutating.Rules, validating.Rules} {
		require.Len(t, rules, 1)
		assert.Equal(t, []string{"managedclusters"}, rules[0].Resources, "neither the status nor anything else")
	}
	assert.Equal(t, admissionregistrationv1.Fail, *mutating.FailurePolicy)
	assert.Equal(t, admissionregistrationv1.Fail, *validating.FailurePolicy)
}
