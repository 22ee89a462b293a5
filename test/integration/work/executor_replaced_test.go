package work_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What was allowed is not allowed for ever: the object may be replaced by one that hands out more while nobody looks.
// Shows: work/executor-same-request
func TestAnObjectThatWasReplacedIsNotWrittenForItsExecutor(t *testing.T) {
	t.Parallel()
	onChange := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".roleRef"}}
	for name, c := range map[string]struct {
		strategy *workv1.UpdateStrategy
		message  string
	}{
		"its roleRef is ignored":            {forced(paths(".roleRef")), escalation},
		"its roleRef is ignored on changes": {forced(onChange), escalation},
		"all of it is applied":              {forced(), roleRefRefused},
		"it is updated":                     {nil, roleRefRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRightsEnv(t)
			first := e.start()
			wanted := e.clusterBinding("work", e.harmless, somebody())
			w := e.executed("w", wanted)
			e.withStrategy(w, wanted, c.strategy)
			e.create(w)
			e.settled(w)
			e.quiet(first)
			first.stop()

			// The replacement bears the annotations of the object, so that the manifest seems to be applied to it.
			old := &rbacv1.ClusterRoleBinding{}
			require.True(t, e.get(old, "", wanted.GetName()))
			require.NoError(t, e.Delete(t.Context(), old))
			replacement := e.clusterBinding("admin", "cluster-admin", root())
			replacement.SetAnnotations(old.Annotations)
			e.create(replacement)
			before := content(replacement)

			again := e.start()
			e.applies(w, no)
			assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, c.message)
			e.quiet(again)
			require.True(t, e.get(replacement, "", replacement.GetName()))
			assert.Equal(t, before, content(replacement))
		})
	}
}

// Between the dry run and the request itself the object may become another one, to which the answer does not apply.
// Shows: work/executor-same-request
func TestADryRunCountsForTheObjectThatItWasMadeOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// existing is the object at first, if any, wanted the manifest, replacement what is there after the dry run.
		existing, wanted, replacement func(*rightsEnv) client.Object
		strategy                      *workv1.UpdateStrategy
		message                       string
	}{
		"an object that is applied is replaced": {
			existing:    func(e *rightsEnv) client.Object { return e.clusterBinding("admin", e.harmless, nil) },
			wanted:      func(e *rightsEnv) client.Object { return e.clusterBinding("work", e.harmless, somebody()) },
			replacement: func(e *rightsEnv) client.Object { return e.clusterBinding("admin", "cluster-admin", root()) },
			strategy:    forced(paths(".roleRef")), message: escalation,
		},
		"an object that is applied for the first time comes from elsewhere": {
			wanted: func(e *rightsEnv) client.Object { return e.roleWithoutRules("work") },
			replacement: func(e *rightsEnv) client.Object {
				return e.clusterRole("admin", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
			},
			strategy: forced(), message: escalation,
		},
		"an object that is updated is replaced": {
			existing:    func(e *rightsEnv) client.Object { return e.clusterBinding("admin", e.harmless, nil) },
			wanted:      func(e *rightsEnv) client.Object { return e.clusterBinding("work", e.harmless, somebody()) },
			replacement: func(e *rightsEnv) client.Object { return e.clusterBinding("admin", "cluster-admin", root()) },
			message:     roleRefRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRightsEnv(t)
			if c.existing != nil {
				e.create(c.existing(e))
			}
			replacement := c.replacement(e)
			var once sync.Once
			e.settings.spoke.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					res, err := next.RoundTrip(req)
					if triesWrite(req) {
						once.Do(func() {
							assert.NoError(t, client.IgnoreNotFound(e.Delete(t.Context(), c.replacement(e))))
							assert.NoError(t, e.Create(t.Context(), replacement))
						})
					}
					return res, err
				})
			})
			a := e.start()
			wanted := c.wanted(e)
			w := e.executed("w", wanted)
			e.withStrategy(w, wanted, c.strategy)
			e.create(w)
			e.applies(w, no)
			assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, c.message)
			e.quiet(a)
			before := content(replacement)
			require.True(t, e.get(replacement, "", replacement.GetName()))
			assert.Equal(t, before, content(replacement))
		})
	}
}

// triesWrite reports whether a request is the dry run of a write and not that of a manifest, which has no owner.
func triesWrite(req *http.Request) bool {
	if req.URL.Query().Get("dryRun") != metav1.DryRunAll || req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	raw, err := io.ReadAll(body)
	return err == nil && (req.Method != http.MethodPost || strings.Contains(string(raw), "AppliedManifestWork"))
}
