package webhook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// workOf is a work of manifests.
func workOf(manifests ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "w"}}
	for _, one := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(one)}})
	}
	return w
}

const (
	mapA = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
	mapB = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"b"}}`
)

// Row: work 6.1 WH tests: size, duplicates
func TestWrongManifests(t *testing.T) {
	for name, c := range map[string]struct {
		work  *workv1.ManifestWork
		limit int
		want  []string
	}{
		"two objects":  {work: workOf(mapA, mapB)},
		"no manifests": {work: workOf(), want: []string{"manifests should not be empty"}},
		"one object twice": {work: workOf(mapA, mapB, mapA), want: []string{
			"duplicate manifest for resource n/a with resource type v1.ConfigMap",
		}},
		"the same name of another kind": {work: workOf(mapA, strings.Replace(mapA, "ConfigMap", "Secret", 1))},
		"no name": {work: workOf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n"}}`), want: []string{
			"spec.workload.manifests[0] has no metadata.name",
		}},
		"a name to be made up": {
			work: workOf(mapA, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"n"}}`),
			want: []string{"spec.workload.manifests[1] has metadata.generateName, which is not supported: set metadata.name"},
		},
		"no kind": {
			work: workOf(`{"apiVersion":"v1","metadata":{"name":"n"}}`),
			want: []string{"spec.workload.manifests[0] needs apiVersion and kind"},
		},
		"too large": {
			work: workOf(mapA), limit: 10,
			want: []string{"the size of manifests is 80 bytes which exceeds the 10 limit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.limit == 0 {
				c.limit = DefaultManifestLimit
			}
			assert.Equal(t, c.want, wrongManifests(c.work, c.limit))
		})
	}
	wrong := wrongManifests(workOf(`[]`), DefaultManifestLimit)
	require.Len(t, wrong, 1)
	assert.Contains(t, wrong[0], "spec.workload.manifests[0] cannot be decoded")
}

// as gives a work an executor.
func as(name string) *workv1.ManifestWork {
	w := workOf(mapA)
	w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "n", Name: name},
	}}
	return w
}

// Row: work 6.1 WH tests: executor nil/set/unchanged/changed/extra
func TestWhatAnExecutorTakes(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *workv1.ManifestWork
		none          bool
		want          string
	}{
		"a work without one":                         {after: workOf(mapA)},
		"a work without one, where that is asked":    {after: workOf(mapA), none: true, want: "system:serviceaccount::klusterlet-work-sa"},
		"a work with one":                            {after: as("x"), want: "system:serviceaccount:n:x"},
		"the executor stays":                         {before: as("x"), after: as("x")},
		"the executor changes":                       {before: as("x"), after: as("y"), want: "system:serviceaccount:n:y"},
		"the executor is taken away":                 {before: as("x"), after: workOf(mapA)},
		"the executor is taken away, which is asked": {before: as("x"), after: workOf(mapA), none: true, want: "system:serviceaccount::klusterlet-work-sa"},
		"none stays none, where that is asked":       {before: workOf(mapA), after: workOf(mapB), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			needed := executing(c.before, c.after, c.none)
			if c.want == "" {
				assert.Nil(t, needed)
				return
			}
			require.NotNil(t, needed)
			assert.Equal(t, authorizationv1.ResourceAttributes{
				Group: "work.open-cluster-management.io", Resource: "manifestworks", Verb: "execute-as",
				Namespace: "cluster1", Name: c.want,
			}, needed.attributes)
		})
	}
}

// authorizer answers access reviews and keeps the last one.
type authorizer struct {
	client.Client
	allowed bool
	failure error
	asked   *authorizationv1.SubjectAccessReview
}

func (a *authorizer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	a.asked, _ = o.(*authorizationv1.SubjectAccessReview)
	a.asked.Status.Allowed = a.allowed
	return a.failure
}

func TestWorksAreChecked(t *testing.T) {
	user := authenticationv1.UserInfo{
		Username: "ann", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	}
	request := func(before, after *workv1.ManifestWork) admission.Request {
		r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Namespace: "cluster1", UserInfo: user,
		}}
		r.Object.Raw, _ = json.Marshal(after)
		if before != nil {
			r.Operation = admissionv1.Update
			r.OldObject.Raw, _ = json.Marshal(before)
		}
		return r
	}
	for name, c := range map[string]struct {
		request admission.Request
		api     authorizer
		code    int32
		says    string
	}{
		"a good work":           {request: request(nil, workOf(mapA))},
		"an executor":           {request: request(nil, as("x")), api: authorizer{allowed: true}},
		"an executor too great": {request: request(nil, as("x")), code: 400, says: `user "ann" is not allowed to have ManifestWorks in namespace cluster1 applied as system:serviceaccount:n:x`},
		"a bad update":          {request: request(workOf(mapA), workOf()), code: 400, says: "manifests should not be empty"},
		"nobody knows":          {request: request(workOf(mapA), as("x")), api: authorizer{failure: assert.AnError}, code: 500, says: "asking whether user ann"},
	} {
		t.Run(name, func(t *testing.T) {
			response := (&Works{Client: &c.api}).Check(t.Context(), c.request)
			assert.Equal(t, c.code == 0, response.Allowed)
			if c.code != 0 {
				assert.Equal(t, c.code, response.Result.Code)
				assert.Contains(t, response.Result.Message, c.says)
			}
			if c.api.asked != nil {
				spec := c.api.asked.Spec
				assert.Equal(t, []any{"ann", "1", []string{"g"}, authorizationv1.ExtraValue{"v"}},
					[]any{spec.User, spec.UID, spec.Groups, spec.Extra["k"]})
			}
		})
	}
}

func TestOnlyNewSpecsOfWorksWaitForUs(t *testing.T) {
	c := ValidatingWorks(Serving{User: "me", At: func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: &path}
	}})
	assert.Equal(t, WorkAdmissionName, c.Name)
	require.Len(t, c.Webhooks, 1)
	hook := c.Webhooks[0]
	assert.Equal(t, PathValidateWork, *hook.ClientConfig.URL)
	assert.Equal(t, []string{"manifestworks"}, hook.Rules[0].Resources)
	assert.Equal(t, admissionregistrationv1.Fail, *hook.FailurePolicy)
	assert.Equal(t, `request.userInfo.username != "me"`, hook.MatchConditions[0].Expression)
	assert.Contains(t, hook.MatchConditions[1].Expression, "generation")
}
