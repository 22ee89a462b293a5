package accounts_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// refused begins the message of the API server to the account of works.
const refused = `User "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa" cannot `

// newWork returns a work of the cluster with one manifest, in JSON or YAML.
func (s *site) newWork(t *testing.T, manifest string) *workv1.ManifestWork {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: suite.UniqueName("work")},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
			Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}},
		}},
	}
}

// condition creates a work and returns the condition Applied of its manifest, once there is one.
func condition(t *testing.T, work *workv1.ManifestWork) metav1.Condition {
	t.Helper()
	require.NoError(t, hub.Client.Create(t.Context(), work))
	var applied metav1.Condition
	suite.Eventually(t, func() error {
		var found workv1.ManifestWork
		if err := hub.Client.Get(t.Context(), client.ObjectKeyFromObject(work), &found); err != nil {
			return err
		}
		for _, status := range found.Status.ResourceStatus.Manifests {
			if c := meta.FindStatusCondition(status.Conditions, workv1.ManifestApplied); c != nil {
				applied = *c
				assert.Empty(t, status.StatusFeedbacks.Values, "nothing of the object is reported")
				return nil
			}
		}
		return fmt.Errorf("the work says nothing yet: %v", found.Status)
	})
	return applied
}

// deployment is the manifest of a Deployment, whose pods have these fields besides their container.
func deployment(namespace, name string, fields ...string) string {
	return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": %q, "name": %q}, "spec": {
		"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
		"containers": [{"name": "c", "image": "i"}]%s}}}}`, namespace, name, strings.Join(append([]string{""}, fields...), ", "))
}

func TestAWorkIsAppliedUnderItsOwnServiceAccount(t *testing.T) {
	t.Parallel()
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.newWork(t, deployment(works, "one"))
			applied := condition(t, w)
			assert.Equal(t, metav1.ConditionTrue, applied.Status, applied.Message)
			one := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: works, Name: "one"}}
			require.NoError(t, s.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(one), one))

			// Drift is repaired from a watch, and deletion follows the work.
			require.NoError(t, s.plane.Client.Delete(t.Context(), one))
			suite.Eventually(t, func() error { return s.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(one), one) })
			require.NoError(t, hub.Client.Delete(t.Context(), w))
			suite.Eventually(t, func() error {
				err := s.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(one), one)
				if client.IgnoreNotFound(err) != nil || err == nil {
					return fmt.Errorf("the object is still there: %w", err)
				}
				return nil
			})
			for line := range strings.Lines(s.agent.Log.String()) {
				assert.False(t, strings.Contains(line, "forbidden") && strings.Contains(line, own), "the rights suffice: %s", line)
			}
		})
	}
}

// Shows: security/works-in-their-namespaces
func TestAWorkRunsNoPodAsAnAccountOfOthers(t *testing.T) {
	t.Parallel()
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := s.plane.Namespace(t, "elsewhere")
			for name, attack := range map[string]struct{ manifest, right string }{
				"in the namespace of the agent": {
					deployment(names.NamespaceAgent, "taken"), `resource "deployments" in API group "apps"`,
				},
				"as the agent": {
					deployment(names.NamespaceAgent, "agent", `"serviceAccountName": "klusterlet-registration-sa"`),
					`resource "deployments" in API group "apps"`,
				},
				"as a controller": {
					deployment(metav1.NamespaceSystem, "taken", `"serviceAccountName": "clusterrole-aggregation-controller"`),
					`resource "deployments" in API group "apps"`,
				},
				"in the namespace of add-ons": {
					deployment("open-cluster-management-agent-addon", "taken"), `resource "deployments" in API group "apps"`,
				},
				"in a namespace of others": {deployment(elsewhere, "taken"), `resource "deployments" in API group "apps"`},
				"on each node": {
					strings.Replace(deployment(metav1.NamespaceSystem, "taken"), `"Deployment"`, `"DaemonSet"`, 1),
					`resource "daemonsets" in API group "apps"`,
				},
				"in a namespace that it makes": {
					`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management-works-more"}}`,
					`resource "namespaces" in API group ""`,
				},
				"by rights that it gives itself": {
					`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"namespace": "kube-system",
					"name": "taken"}, "subjects": [{"kind": "ServiceAccount", "name": "klusterlet-work-sa",
					"namespace": "open-cluster-management-agent"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
					"kind": "ClusterRole", "name": "spokelet:work-rights"}}`,
					`resource "rolebindings" in API group "rbac.authorization.k8s.io"`,
				},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					applied := condition(t, s.newWork(t, attack.manifest))
					assert.Equal(t, metav1.ConditionFalse, applied.Status, applied.Message)
					assert.Regexp(t, refused+`\w+ `+attack.right, applied.Message)
					object := &unstructured.Unstructured{}
					require.NoError(t, yaml.Unmarshal([]byte(attack.manifest), &object.Object))
					err := s.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
					assert.True(t, apierrors.IsNotFound(err), "%v", err)
				})
			}
		})
	}
}

// The files of a node have the tokens of all its pods. Pods that read them are refused in the namespace of works, and a
// work cannot change that.
// Shows: security/works-in-their-namespaces
func TestAWorkReachesNoFilesOfTheNode(t *testing.T) {
	t.Parallel()
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			applied := condition(t, s.newWork(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {
				"name": "open-cluster-management-works", "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`))
			assert.Equal(t, metav1.ConditionFalse, applied.Status, applied.Message)
			assert.Regexp(t, refused+`\w+ resource "namespaces"`, applied.Message)

			pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
				p := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: works, Name: "pod"},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				}
				change(&p.Spec)
				return p
			}
			suite.Eventually(t, func() error { // its default ServiceAccount comes a moment later
				return s.plane.Client.Create(t.Context(), pod(func(*corev1.PodSpec) {}), client.DryRunAll)
			})
			yes := true
			for name, change := range map[string]func(*corev1.PodSpec){
				"a folder of the node": func(spec *corev1.PodSpec) {
					spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/pods"},
					}}}
				},
				"a privileged container": func(spec *corev1.PodSpec) {
					spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
				},
				"the processes of the node": func(spec *corev1.PodSpec) { spec.HostPID = true },
			} {
				err := s.plane.Client.Create(t.Context(), pod(change), client.DryRunAll)
				assert.ErrorContains(t, err, `violates PodSecurity "baseline`, name)
			}
		})
	}
}

// Shows: security/works-without-registration-rights
func TestAWorkCannotUseTheRightsOfRegistration(t *testing.T) {
	t.Parallel()
	for name, s := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: works, Name: suite.UniqueName("victim")},
				Data:       map[string][]byte{"key": []byte("precious")},
			}
			require.NoError(t, s.plane.Client.Create(t.Context(), victim))
			for name, manifest := range map[string]string{
				"changes a Secret": `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"NAMESPACE","name":"VICTIM"},
					"data":{"key":"YQ=="}}`,
				"creates a Secret with the token of a controller": `{"apiVersion":"v1","kind":"Secret",
					"type":"kubernetes.io/service-account-token","metadata":{"namespace":"kube-system","name":"taken",
					"annotations":{"kubernetes.io/service-account.name":"clusterrole-aggregation-controller"}}}`,
				"changes the Secrets of the agent": `{"apiVersion":"v1","kind":"Secret",
					"metadata":{"namespace":"open-cluster-management-agent","name":"fresh"}}`,
				"creates a Lease": `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
					"metadata":{"namespace":"NAMESPACE","name":"x"}}`,
				"lists what it may not: a node": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"}}`,
				"creates a pod": `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"NAMESPACE","name":"x"},
					"spec":{"containers":[{"name":"c","image":"i"}]}}`,
				"hands out the rights of the agent": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",
					"metadata":{"name":"taken"},
					"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := s.newWork(t, strings.NewReplacer("NAMESPACE", works, "VICTIM", victim.Name).Replace(manifest))
					s.isRefused(t, w, victim)
				})
			}
			t.Run("reads a Secret", func(t *testing.T) {
				t.Parallel()
				w := s.newWork(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":%q,"name":%q}}`,
					victim.Namespace, victim.Name))
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
					ResourceIdentifier: workv1.ResourceIdentifier{
						Resource: "secrets", Namespace: victim.Namespace, Name: victim.Name,
					},
					UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
					FeedbackRules: []workv1.FeedbackRule{{
						Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "key", Path: ".data.key"}},
					}},
				}}
				s.isRefused(t, w, victim)
			})
		})
	}
}

// isRefused checks that a work is refused and that it left a Secret alone.
func (s *site) isRefused(t *testing.T, w *workv1.ManifestWork, victim *corev1.Secret) {
	t.Helper()
	applied := condition(t, w)
	assert.Equal(t, metav1.ConditionFalse, applied.Status, applied.Message)
	assert.Contains(t, applied.Message, refused)
	var found corev1.Secret
	require.NoError(t, s.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(victim), &found))
	assert.Equal(t, victim.Data, found.Data)
	assert.Empty(t, found.OwnerReferences)
}

// The agent may ask for tokens of the one account of works, and says where it is asked why it gets none of another.
func TestATokenThatIsRefusedIsToldAtTheWorkAndTheAgent(t *testing.T) {
	t.Parallel()
	var address string
	s := runAgent(t, suite.UniqueName("refused"), func(c *agent.Config) {
		c.Namespace = hub.Namespace(t, "refused")
		c.WorkServiceAccount, address = names.NamespaceAgent+"/"+own, c.HealthAddress
	})
	suite.Admit(t, hub, s.cluster)
	const why = "getting a token of ServiceAccount open-cluster-management-agent/klusterlet-registration-sa, under which works " +
		`are applied: serviceaccounts "klusterlet-registration-sa" is forbidden`
	applied := condition(t, s.newWork(t, deployment(works, s.cluster)))
	assert.Equal(t, metav1.ConditionFalse, applied.Status, applied.Message)
	assert.Contains(t, applied.Message, why)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz?verbose", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, answer.StatusCode, "the agent does all that it can")
	assert.Contains(t, string(text), "[-]account-of-works there is no new token for works since ")
	assert.Contains(t, string(text), why)
}
